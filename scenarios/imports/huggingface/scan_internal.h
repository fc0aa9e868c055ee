/* A first pass over JSON text from outside, so that the parser behind it meets nothing deep, huge
 * or badly encoded. */
#pragma once

#include <glib.h>

#define ZP_HF_MAX_BYTES 16777216 /* 16 MiB */
#define ZP_HF_MAX_DEPTH 64
#define ZP_HF_MAX_NUMBER_CHARS 64

/* A copy of `json` (`length` bytes, -1: NUL-terminated) that is safe to parse, or NULL with a
 * message that starts with the line ("line 3: ..."); a byte order mark is dropped, and integers
 * beyond 18 digits get a fraction so that they are read as the large numbers they are. */
char *zp_hf_scan(const char *json, gssize length, gsize *scanned_length, GError **error);

/* The line (from 1) of the first `"key":`, 0 where there is none. */
int zp_hf_scan_line(const char *json, const char *key);

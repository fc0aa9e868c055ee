/* JSON with positions, for files that people wrote.
 *
 * json-glib reports no positions inside a tree and takes the last of two equal keys silently;
 * a settings file needs both.  The reader is strict about JSON (RFC 8259) and says precisely what
 * is not: comments, trailing commas, a byte order mark, Python literals, NaN, missing commas.
 * Where the meaning is plain it reads on, so that one run reports everything. */
#pragma once

#include "scenarios/readers/message.h"
#include "scenarios/readers/tree.h"

typedef enum {
    ZP_JSON_FORGIVING, /* comments and trailing commas: a warning */
    ZP_JSON_STRICT,    /* an error */
} ZpJsonMode;

/* Reads `length` bytes; messages (never NULL) says what was found.  NULL if there is no value to
 * go on with, in which case there is an error among the messages.  Equal keys in one object are
 * an error each, and all of them stay in the tree.  Bounds: import_tree.h; anything above is
 * refused without reading on. */
ZpTree *zp_json_text_parse(const char *text, gsize length, ZpJsonMode mode,
                           ZpImportMessages *messages);

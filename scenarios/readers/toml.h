/* The part of TOML that torchtitan's files use: tables, dotted and quoted keys, strings of one
 * line, decimal numbers, booleans, arrays of these, inline tables.
 *
 * Why not a library: Debian 12 has TOML readers for C++ (toml++, toml11, cpptoml), Python, Go and
 * Rust, but none that a C program can link, and none that reports lines.  What is left out
 * (dates, multi-line strings, other bases, arrays of tables) is refused with its line, never
 * guessed. */
#pragma once

#include "scenarios/readers/message.h"
#include "scenarios/readers/tree.h"

/* A tree of OBJECTs; keys set twice, and tables opened twice, are errors among the messages, as
 * TOML demands.  NULL where nothing could be read.  Bounds: import_tree.h. */
ZpTree *zp_fsdp_toml_parse(const char *text, gsize length, ZpImportMessages *messages);

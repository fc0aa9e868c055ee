/* Text of other programs into one kind of tree, with the place of every value, and what is said
 * about it: messages and the rows of a table.  JSON, YAML and TOML are read alike: what takes
 * settings out of a tree need not know which syntax they came in. */
#pragma once

#include "scenarios/readers/json_write.h"
#include "scenarios/readers/message.h"
#include "scenarios/readers/row.h"
#include "scenarios/readers/tree.h"

/* Each reads `length` bytes; messages (never NULL) says what was found.  NULL if there is no value
 * to go on with, in which case there is an error among the messages.  Equal keys of one object are
 * an error each.  Bounds: tree.h; anything above is refused without reading on. */

typedef enum {
    ZP_JSON_FORGIVING, /* comments and trailing commas: a warning */
    ZP_JSON_STRICT,    /* an error */
} ZpJsonMode;

/* JSON, for files that people wrote.
 *
 * json-glib reports no positions inside a tree and takes the last of two equal keys silently;
 * a settings file needs both.  The reader is strict about JSON (RFC 8259) and says precisely what
 * is not: comments, trailing commas, a byte order mark, Python literals, NaN, missing commas.
 * Where the meaning is plain it reads on, so that one run reports everything.  All of equal keys
 * stay in the tree. */
ZpTree *zp_json_text_parse(const char *text, gsize length, ZpJsonMode mode,
                           ZpImportMessages *messages);

/* One document of YAML, by libyaml, with the scalars of YAML 1.1 as PyYAML resolves them: unquoted
 * yes, no, on, off are booleans, and 1e8 without a point is text.  Anchors, aliases, tags and merge
 * keys are refused: settings files have none, and aliases can blow up. */
ZpTree *zp_yaml_parse(const char *text, gsize length, ZpImportMessages *messages);

/* The part of TOML that torchtitan's files use: tables, dotted and quoted keys, strings of one
 * line, decimal numbers, booleans, arrays of these, inline tables.  A tree of OBJECTs; tables
 * opened twice are errors too, as TOML demands.
 *
 * Why not a library: Debian 12 has TOML readers for C++ (toml++, toml11, cpptoml), Python, Go and
 * Rust, but none that a C program can link, and none that reports lines.  What is left out
 * (dates, multi-line strings, other bases, arrays of tables) is refused with its line, never
 * guessed. */
ZpTree *zp_toml_parse(const char *text, gsize length, ZpImportMessages *messages);

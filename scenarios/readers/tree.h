/* A document as a tree of values that remember where they stood.
 *
 * The readers of JSON, YAML and TOML build it. */
#pragma once

#include <glib.h>

typedef enum {
    ZP_TREE_NULL,
    ZP_TREE_BOOLEAN,
    ZP_TREE_INTEGER, /* written without point or exponent, and fits in 64 bits */
    ZP_TREE_REAL,    /* any other number; `number` is finite */
    ZP_TREE_STRING,
    ZP_TREE_ARRAY,
    ZP_TREE_OBJECT,
} ZpTreeKind;

typedef struct {
    ZpTreeKind kind;
    int line, column; /* of the value, from 1 */
    char *key;        /* name in the object around it; NULL in arrays and at the root */
    int key_line, key_column;
    char *text;         /* strings: the content; scalars: as written */
    gboolean boolean;   /* BOOLEAN */
    gint64 integer;     /* INTEGER */
    double number;      /* INTEGER and REAL */
    GPtrArray *members; /* ARRAY and OBJECT: ZpTree, in order; NULL for scalars */
    GHashTable *index;  /* of a large OBJECT: its names; private */
} ZpTree;

/* Bounds that every reader keeps: a settings file is far below them. */
#define ZP_TREE_MAX_BYTES ((gsize)16 * 1024 * 1024)
#define ZP_TREE_MAX_DEPTH 64
#define ZP_TREE_MAX_VALUES 20000
#define ZP_TREE_MAX_NUMBER 64 /* characters of one number */

ZpTree *zp_tree_new(ZpTreeKind kind, int line, int column);
void zp_tree_free(ZpTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpTree, zp_tree_free)
/* Takes `member`; in an OBJECT its key is set before. */
void zp_tree_add(ZpTree *parent, ZpTree *member);
/* Last member of that name (what a lenient reader would take), or NULL. */
ZpTree *zp_tree_find(const ZpTree *object, const char *key);
/* Follows a dotted path through objects. */
ZpTree *zp_tree_path(const ZpTree *root, const char *path);
const char *zp_tree_kind_name(ZpTreeKind kind); /* "a boolean", "text", ... */
/* Reads a number strictly in decimal syntax ("12", "-3", "5e8", "1.0E+3"; no hex, inf, nan,
 * spaces or underscores) into kind, integer and number of `tree`.  FALSE if it is none or not
 * finite. */
gboolean zp_tree_parse_number(ZpTree *tree, const char *text);
/* The value as it would be written, at most about 60 characters, for messages and tables. */
char *zp_tree_show(const ZpTree *tree);
/* UTF-8 and free of NUL: else FALSE with the line of the first bad byte. */
gboolean zp_tree_check_text(const char *text, gsize length, int *line);

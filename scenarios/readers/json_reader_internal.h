/* What the two files of the JSON reader share; nobody else includes it. */
#pragma once

#include "scenarios/readers/readers.h"

/* Where a tolerated liberty was taken first, and how often. */
typedef struct {
    int line, column, count;
} ZpJsonLiberty;

typedef struct {
    const char *p, *end, *line_start;
    int line;
    int depth, n_values;
    gboolean failed; /* nothing sensible follows */
    ZpJsonLiberty comments, commas, python;
    GString *path; /* dotted keys down to here, for messages */
    ZpImportMessages *messages;
} ZpJsonReader;

int zp_json_reader_column(const ZpJsonReader *reader, const char *at);
/* An error at that place, about the key being read. */
void zp_json_reader_complain(ZpJsonReader *reader, int line, int column, const char *mend,
                             const char *format, ...) G_GNUC_PRINTF(5, 6);
void zp_json_reader_take_liberty(const ZpJsonReader *reader, ZpJsonLiberty *liberty,
                                 const char *at);
/* White space and what people take for it: comments. */
void zp_json_reader_skip_space(ZpJsonReader *reader);
/* Content of the text that opens at reader->p (before the end); NULL after a fatal complaint. */
char *zp_json_reader_string(ZpJsonReader *reader);
/* Letters, digits and what stands in numbers; may be empty. */
char *zp_json_reader_word(ZpJsonReader *reader);
/* A number, true, false, null; True, False, None as liberties; a complaint and null for other
 * words; NULL where there is none. */
ZpTree *zp_json_reader_bare(ZpJsonReader *reader);

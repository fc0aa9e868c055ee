/* The errors of one file, collected to be reported together. */
#pragma once

#include <glib.h>

/* A GError carries the reason of its first message. */
typedef enum {
    ZP_SCENARIO_ERROR_IO,
    ZP_SCENARIO_ERROR_SYNTAX,    /* not the file format, too large, not UTF-8 */
    ZP_SCENARIO_ERROR_DUPLICATE, /* a key or group twice */
    ZP_SCENARIO_ERROR_UNKNOWN,   /* unknown key, group or catalogue name */
    ZP_SCENARIO_ERROR_TYPE,      /* not a value of the key's kind */
    ZP_SCENARIO_ERROR_RANGE,     /* of the kind, but out of range */
    ZP_SCENARIO_ERROR_MISSING,
    ZP_SCENARIO_ERROR_CONFLICT, /* two settings that exclude each other */
    ZP_SCENARIO_ERROR_OVERFLOW, /* a product does not fit 64 bits */
} ZpScenarioError;
#define ZP_SCENARIO_ERROR (zp_scenario_error_quark())
GQuark zp_scenario_error_quark(void);

typedef struct {
    char *name;          /* of the file, printable */
    GPtrArray *messages; /* in the order found */
    gboolean dropped;    /* there were more */
    ZpScenarioError first;
} ZpProblems;

void zp_problems_init(ZpProblems *problems, const char *name);
void zp_problems_clear(ZpProblems *problems);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ZpProblems, zp_problems_clear)

/* `where`: "FILE:LINE" or "--set"; NULL: the file as a whole. */
void zp_problems_add(ZpProblems *problems, ZpScenarioError code, const char *where,
                     const char *format, ...) G_GNUC_PRINTF(4, 5);
/* About a key: "[section] key: what". */
void zp_problems_add_key(ZpProblems *problems, ZpScenarioError code, const char *where,
                         const char *section, const char *key, const char *what);
/* No room for another message: reading on would only cost time. */
gboolean zp_problems_full(const ZpProblems *problems);
gboolean zp_problems_any(const ZpProblems *problems);
/* FALSE and `error` set if there are problems, else TRUE. */
gboolean zp_problems_raise(const ZpProblems *problems, GError **error);
/* The reason that an error of a lower floor stands for. */
ZpScenarioError zp_problems_reason(const GError *error);

/* Whole models as they were run (tests/reference/e2e/README.md): a case becomes a scenario, is
 * simulated, and the two are compared. */
#pragma once

#include <glib.h>
#include <json-glib/json-glib.h>

/* Bytes on the device in the last step: its start, the largest of each phase, what lives when
 * backward begins. */
typedef enum {
    E2E_PEAK,
    E2E_FORWARD,
    E2E_BACKWARD,
    E2E_OPTIMIZER,
    E2E_START,
    E2E_END_OF_FORWARD,
    E2E_FIGURES,
} E2eFigure;

extern const char *const e2e_figure_names[E2E_FIGURES];

enum { E2E_UNKNOWN = -1 };

typedef struct {
    gint64 bytes[E2E_FIGURES]; /* E2E_UNKNOWN where there is none */
} E2eFigures;

typedef struct {
    char *id;
    char *family;        /* model_type */
    char *refused;       /* why it was not simulated, or NULL */
    GPtrArray *features; /* of strings: what is special about the run */
    gint64 parameters, simulated_parameters;
    E2eFigures measured, simulated;
} E2eCase;

void e2e_case_free(E2eCase *item);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(E2eCase, e2e_case_free)

/* Absolute error of a figure in percent; a figure that is not known has none. */
double e2e_error(const E2eCase *item, E2eFigure figure);

/* scenario.c: the scenario of a recorded case; `config` is the path of its model's configuration.
 */
char *e2e_scenario(JsonObject *record, const char *config);
/* The configuration with the case's overrides, as a file's text; NULL with `error`. */
char *e2e_config(JsonObject *record, const char *folder, GError **error);
GPtrArray *e2e_features(JsonObject *record);

/* simulate.c: reads and simulates the cases of a folder, sorted by name: GPtrArray of E2eCase.
 * `scratch` is a folder for files in between. */
GPtrArray *e2e_run(const char *folder, const char *configs, const char *scratch, GError **error);

/* report.c */
void e2e_report(const GPtrArray *cases, double percent);
/* Lines "id;figure;percent" of errors that are known, above `percent` which holds for all others.
 * How many figures are worse than that, each printed. */
int e2e_check_known(const GPtrArray *cases, const char *path, double percent);
gboolean e2e_write_known(const GPtrArray *cases, const char *path, double percent, GError **error);

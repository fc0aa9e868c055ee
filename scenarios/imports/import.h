/* Other programs' settings files, taken as they are: what a file is, what it says, and what is
 * wrong with it.  Works on one file alone; what only a model or a trainer's flags would tell is
 * asked for in a note, never guessed. */
#pragma once

#include "scenarios/imports/classes.h"
#include "scenarios/imports/deepspeed/config.h"
#include "scenarios/imports/settings.h"
#include "scenarios/readers/readers.h"

#include <gio/gio.h>
#include <json-glib/json-glib.h>

typedef enum {
    ZP_IMPORT_UNKNOWN,
    ZP_IMPORT_DEEPSPEED,  /* ds_config.json */
    ZP_IMPORT_ACCELERATE, /* accelerate's YAML (FSDP or DeepSpeed) */
    ZP_IMPORT_TRAINER,    /* arguments of the HF Trainer as JSON, or its fsdp_config */
    ZP_IMPORT_TORCHTITAN, /* TOML */
    ZP_IMPORT_MODEL,      /* HF config.json: scenarios/imports/huggingface/config.h reads it */
    ZP_IMPORT_SCENARIO,   /* zeropeak's own format: the scenario parser reads it */
} ZpImportKind;

/* What the file alone does not say; zero and NULL mean unknown. */
typedef struct {
    ZpDsContext deepspeed;
    const char *const *model_classes; /* module classes of the model, NULL-terminated */
    const char *block_class;          /* class of its blocks: named in messages */
    gint64 model_elements;            /* parameters of the model */
} ZpImportContext;

typedef struct {
    ZpImportKind kind;
    ZpImportVerdict verdict;
    ZpImportMessages *messages;
    GPtrArray *rows; /* ZpImportRow */
} ZpImportReport;

/* Reads a file, an inline JSON text (it begins with "{"), or such a text in base64, as the
 * launchers accept them.  Fails only where nothing can be read (G_FILE_ERROR, G_IO_ERROR): what is
 * wrong with the content is in the report.  For MODEL and SCENARIO, which other readers check, the
 * report has the kind alone. */
ZpImportReport *zp_import_check(const char *path, GError **error) G_GNUC_WARN_UNUSED_RESULT;
ZpImportReport *zp_import_check_in(const char *path, const ZpImportContext *context,
                                   GError **error) G_GNUC_WARN_UNUSED_RESULT;
/* The same for bytes in memory; `name` appears in messages, its extension is a hint. */
ZpImportReport *zp_import_check_text(const char *name, const char *text, gsize length,
                                     const ZpImportContext *context);
void zp_import_report_free(ZpImportReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ZpImportReport, zp_import_report_free)

/* A file above 16 MiB is refused without being read (G_IO_ERROR_MESSAGE_TOO_LARGE). */
gboolean zp_import_read(const char *path, char **text, gsize *length,
                        GError **error) G_GNUC_WARN_UNUSED_RESULT;
ZpImportKind zp_import_detect(const char *name, const char *text, gsize length);
const char *zp_import_kind_name(ZpImportKind kind); /* "deepspeed", "accelerate", ... */

/* For `zeropeak check`: messages, then the table; and one JSON object
 * {"file","kind","verdict","messages":[{"severity","line","column","key","text","mend"}],
 *  "keys":[{"key","value","unit","effect","origin","reason","line","ignored"}]}. */
char *zp_import_report_text(const ZpImportReport *report);
char *zp_import_report_json(const ZpImportReport *report);
/* The members of that object, for an object that has more. */
void zp_import_report_members(const ZpImportReport *report, JsonBuilder *builder);

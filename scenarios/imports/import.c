#include "scenarios/imports/import.h"
#include "scenarios/imports/fsdp/config.h"

#include <sys/stat.h>

#include <string.h>

gboolean
zp_import_read(const char *path, char **text, gsize *length, GError **error)
{
    g_return_val_if_fail(error == NULL || *error == NULL, FALSE);
    struct stat info;
    /* Sizes are looked at first: a file of 100 MB is refused without being read. */
    if (stat(path, &info) == 0 && S_ISREG(info.st_mode) &&
        info.st_size > (goffset)ZP_TREE_MAX_BYTES) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE,
                    "%s: %" G_GOFFSET_FORMAT " bytes: no settings file is that large", path,
                    (goffset)info.st_size);
        return FALSE;
    }
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) {
        g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL, "%s: not a regular file", path);
        return FALSE;
    }
    return g_file_get_contents(path, text, length, error);
}

void
zp_import_report_free(ZpImportReport *report)
{
    zp_import_message_list_free(report->messages);
    g_ptr_array_unref(report->rows);
    g_free(report);
}

static ZpImportReport *
report_new(const char *name, ZpImportKind kind)
{
    ZpImportReport *report = g_new0(ZpImportReport, 1);
    report->kind = kind;
    report->messages = zp_import_message_list_new(name);
    report->rows = zp_import_row_list_new();
    return report;
}

static void
move_messages(ZpImportReport *report, ZpImportMessages **from)
{
    zp_import_message_list_free(report->messages);
    report->messages = g_steal_pointer(from);
}

static void
move_rows(ZpImportReport *report, GPtrArray *rows)
{
    g_ptr_array_extend_and_steal(report->rows, rows);
}

static void
check_deepspeed(ZpImportReport *report, const char *name, const char *text, gsize length,
                const ZpDsContext *context)
{
    g_autoptr(ZpDsConfig) config = zp_ds_config_parse(name, text, length, context);
    move_rows(report, zp_ds_config_rows(config));
    move_messages(report, &config->messages);
    config->messages = zp_import_message_list_new(name);
}

static void
check_fsdp(ZpImportReport *report, ZpFsdpSource source, const char *name, const char *text,
           gsize length, const ZpImportContext *context)
{
    ZpFsdpContext inner = {
        .model_classes = context->model_classes,
        .block_class = context->block_class,
        .model_elements = context->model_elements,
        .deepspeed = context->deepspeed,
    };
    g_autoptr(ZpFsdpConfig) config = zp_fsdp_config_parse(source, name, text, length, &inner);
    move_rows(report, g_ptr_array_ref(config->rows));
    if (config->deepspeed)
        move_rows(report, zp_ds_config_rows(config->deepspeed));
    config->rows = zp_import_row_list_new();
    move_messages(report, &config->messages);
    config->messages = zp_import_message_list_new(name);
}

ZpImportReport *
zp_import_check_text(const char *name, const char *text, gsize length,
                     const ZpImportContext *context)
{
    static const ZpImportContext nothing = {0};
    context = context ? context : &nothing;
    ZpImportReport *report = report_new(name, zp_import_detect(name, text, length));
    switch (report->kind) {
    case ZP_IMPORT_DEEPSPEED:
        check_deepspeed(report, name, text, length, &context->deepspeed);
        break;
    case ZP_IMPORT_ACCELERATE:
        check_fsdp(report, ZP_FSDP_ACCELERATE, name, text, length, context);
        break;
    case ZP_IMPORT_TRAINER:
        check_fsdp(report, ZP_FSDP_TRAINER, name, text, length, context);
        break;
    case ZP_IMPORT_TORCHTITAN:
        check_fsdp(report, ZP_FSDP_TORCHTITAN, name, text, length, context);
        break;
    case ZP_IMPORT_MODEL:
    case ZP_IMPORT_SCENARIO:
        break;
    case ZP_IMPORT_UNKNOWN:
        zp_import_message_add(report->messages, ZP_IMPORT_ERROR, 0, 0, "",
                              "known: ds_config.json, accelerate YAML, HF Trainer JSON, torchtitan "
                              "TOML, HF config.json, zeropeak scenarios",
                              length > ZP_TREE_MAX_BYTES ? "no settings file is that large"
                                                         : "not a settings file of a known kind");
        break;
    }
    report->verdict = zp_import_message_verdict(report->messages);
    return report;
}

/* Base64 of a JSON text, plain or with the alphabet for URLs, as DeepSpeed's launcher passes it. */
static char *
decode_base64(const char *text, gsize *length)
{
    if (strlen(text) < 8 || strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                         "0123456789+/-_=") != strlen(text))
        return NULL;
    g_autofree char *plain = g_strdelimit(g_strdup(text), "-", '+');
    g_strdelimit(plain, "_", '/');
    g_autofree char *decoded = (char *)g_base64_decode(plain, length);
    return decoded && *length > 1 && *decoded == '{' ? g_steal_pointer(&decoded) : NULL;
}

ZpImportReport *
zp_import_check_in(const char *path, const ZpImportContext *context, GError **error)
{
    g_return_val_if_fail(error == NULL || *error == NULL, NULL);
    gsize length = 0;
    g_autofree char *text = NULL;
    if (*path == '{')
        return zp_import_check_text("(inline)", path, strlen(path), context);
    if (!g_file_test(path, G_FILE_TEST_EXISTS) && (text = decode_base64(path, &length)))
        return zp_import_check_text("(base64)", text, length, context);
    g_autoptr(GError) problem = NULL;
    if (zp_import_read(path, &text, &length, &problem))
        return zp_import_check_text(path, text, length, context);
    if (!g_error_matches(problem, G_IO_ERROR, G_IO_ERROR_MESSAGE_TOO_LARGE)) {
        g_propagate_error(error, g_steal_pointer(&problem));
        return NULL;
    }
    ZpImportReport *report = report_new(path, ZP_IMPORT_UNKNOWN);
    zp_import_message_add(report->messages, ZP_IMPORT_ERROR, 0, 0, "", NULL, "%s",
                          problem->message);
    report->verdict = ZP_IMPORT_REFUSED;
    return report;
}

ZpImportReport *
zp_import_check(const char *path, GError **error)
{
    return zp_import_check_in(path, NULL, error);
}

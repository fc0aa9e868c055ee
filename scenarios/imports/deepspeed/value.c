#include "models/words/nearest.h"
#include "scenarios/imports/deepspeed/ds_internal.h"

#include <math.h>
#include <string.h>

#define TOO_LARGE 9223372036854775808.0

void
zp_ds_value_clear(ZpDsValue *value)
{
    g_clear_pointer(&value->text, g_free);
    g_clear_pointer(&value->list, g_strfreev);
    g_clear_pointer(&value->detail, g_free);
    g_clear_pointer(&value->consequence, g_free);
    g_clear_pointer(&value->ignored, g_free);
}

void
zp_ds_value_reset(ZpDsValue *value, ZpDsKey key)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    zp_ds_value_clear(value);
    *value = (ZpDsValue){.origin = ZP_DS_FROM_DEFAULT, .known = entry->fallback != NULL};
    if (!entry->fallback)
        return;
    if (entry->kind == ZP_DS_COUNT || entry->kind == ZP_DS_REAL) {
        ZpTree number = {.kind = ZP_TREE_NULL};
        gboolean readable = zp_tree_parse_number(&number, entry->fallback);
        g_assert(readable);
        value->integer = number.integer;
        value->number = number.number;
    } else if (entry->kind == ZP_DS_BOOLEAN) {
        value->boolean = strcmp(entry->fallback, "true") == 0;
    } else {
        value->text = g_strdup(entry->fallback);
    }
}

static void refuse(const ZpDsReader *reader, ZpDsKey key, const char *mend, const char *format, ...)
    G_GNUC_PRINTF(4, 5);

/* The value stays the default: something must stand in the table. */
static void
refuse(const ZpDsReader *reader, ZpDsKey key, const char *mend, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    zp_ds_internal_say(reader, ZP_IMPORT_ERROR, key, mend, "%s", text);
    ZpDsValue *value = &reader->config->values[key];
    int line = value->line, column = value->column;
    zp_ds_value_reset(value, key);
    value->line = line;
    value->column = column;
    value->refused = TRUE;
}

static const char *
wanted(const ZpDsEntry *entry)
{
    switch (entry->kind) {
    case ZP_DS_BOOLEAN:
        return "true or false";
    case ZP_DS_COUNT:
        return "a whole number";
    case ZP_DS_REAL:
        return "a number";
    case ZP_DS_LIST:
        return "a list of names";
    case ZP_DS_CHOICE:
        return entry->choices;
    case ZP_DS_TEXT:
    case ZP_DS_ANY:
    case ZP_DS_BLOCK_STRICT:
    case ZP_DS_BLOCK_LOOSE:
    case ZP_DS_BLOCK_FREE:
        break;
    }
    return "text";
}

static void
refuse_kind(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree)
{
    g_autofree char *mend = g_strdup_printf("write %s", wanted(zp_ds_schema_get(key)));
    g_autofree char *shown = zp_tree_show(tree);
    refuse(reader, key, mend, "%s is %s", shown,
           tree->kind == ZP_TREE_NULL ? "no value" : zp_tree_kind_name(tree->kind));
}

/* "500MB", "2 GiB", "5e8 elements": a number with a word behind it. */
static gboolean
split_unit(const char *text, double *number, const char **unit)
{
    g_autofree char *copy = g_strstrip(g_strdup(text));
    gsize length = strspn(copy, "0123456789.+-eE");
    /* An exponent needs digits: "5EB" is five exabytes. */
    while (length > 0 && !g_ascii_isdigit(copy[length - 1]))
        length--;
    g_autofree char *digits = g_strndup(copy, length);
    ZpTree tree = {.kind = ZP_TREE_NULL};
    if (!zp_tree_parse_number(&tree, digits))
        return FALSE;
    *number = tree.number;
    *unit = strstr(text, digits) + length;
    while (g_ascii_isspace(**unit))
        (*unit)++;
    return g_ascii_isalpha(**unit);
}

static double
unit_bytes(const char *unit)
{
    static const char prefixes[] = "KMGTP";
    const char *prefix = strchr(prefixes, g_ascii_toupper(*unit));
    if (!prefix || !*unit)
        return g_ascii_toupper(*unit) == 'B' ? 1 : 0;
    gboolean binary = unit[1] == 'i';
    if (g_ascii_toupper(unit[1 + binary]) != 'B' && unit[1] != '\0')
        return 0;
    return pow(binary ? 1024 : 1000, (double)(prefix - prefixes + 1));
}

static void
refuse_text(const ZpDsReader *reader, ZpDsKey key, const char *text)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    double number;
    const char *unit;
    if (g_ascii_strcasecmp(text, "auto") == 0) {
        refuse(reader, key, "write auto in small letters", "\"%s\" is not the word auto", text);
        return;
    }
    if (entry->kind == ZP_DS_COUNT && split_unit(text, &number, &unit)) {
        double bytes = number * unit_bytes(unit);
        g_autofree char *mend =
            bytes >= 2 && bytes < TOO_LARGE && entry->unit && strcmp(entry->unit, "elements") == 0
                ? g_strdup_printf("%" G_GINT64_FORMAT " elements take that many bytes in 16 bits",
                                  (gint64)(bytes / 2))
                : NULL;
        refuse(reader, key, mend, "\"%s\" carries a unit: the value is a bare count of %s", text,
               entry->unit ? entry->unit : "things");
        return;
    }
    g_autofree char *mend = g_strdup_printf("write %s", wanted(entry));
    refuse(reader, key, mend, "\"%.40s\" is text", text);
}

/* `tree` is a number.  FALSE after a refusal. */
static gboolean
take_number(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    double number = tree->number;
    if (entry->kind == ZP_DS_COUNT && tree->kind == ZP_TREE_REAL) {
        if (fabs(number) >= TOO_LARGE) {
            refuse(reader, key, NULL, "%s is more than any counter holds", tree->text);
            return FALSE;
        }
        if (number != trunc(number)) {
            g_autofree char *mend = g_strdup_printf("write %" G_GINT64_FORMAT, (gint64)number);
            if (reader->version >= ZP_DS_VERSION_PYDANTIC_2) {
                refuse(reader, key, mend,
                       "%s has a fraction: an integer field refuses it since pydantic 2 "
                       "(DeepSpeed 0.15.1)",
                       tree->text);
                return FALSE;
            }
            zp_ds_internal_say(reader, ZP_IMPORT_WARNING, key, mend,
                               "%s has a fraction: read as %" G_GINT64_FORMAT
                               ", newer versions of DeepSpeed refuse it",
                               tree->text, (gint64)number);
            number = trunc(number);
        }
    }
    gint64 integer = tree->kind == ZP_TREE_INTEGER ? tree->integer
                     : fabs(number) < TOO_LARGE    ? (gint64)number
                                                   : 0;
    if ((entry->least != 0 || entry->most != 0) &&
        (number < entry->least || number > entry->most)) {
        g_autofree char *mend = entry->most >= 1e18
                                    ? g_strdup_printf("at least %.0f", entry->least)
                                    : g_strdup_printf("%g to %g", entry->least, entry->most);
        refuse(reader, key, mend, "%s is out of range%s", tree->text,
               key == ZP_DS_REDUCE_BUCKET_SIZE && number == 0
                   ? ": older versions let 0 pass and then died in backward, dividing by zero"
                   : "");
        return FALSE;
    }
    value->known = TRUE;
    value->number = number;
    value->integer = integer;
    return TRUE;
}

static void
read_number(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree)
{
    if (tree->kind == ZP_TREE_INTEGER || tree->kind == ZP_TREE_REAL) {
        take_number(reader, key, tree);
        return;
    }
    if (tree->kind == ZP_TREE_BOOLEAN) {
        /* Python's booleans are numbers, and pydantic lets them pass. */
        ZpTree number = {.kind = ZP_TREE_INTEGER,
                         .text = tree->text,
                         .integer = tree->boolean,
                         .number = tree->boolean};
        if (take_number(reader, key, &number))
            zp_ds_internal_say(reader, ZP_IMPORT_WARNING, key, "write a number",
                               "%s is not a number: DeepSpeed reads it as %d", tree->text,
                               tree->boolean);
        return;
    }
    if (tree->kind != ZP_TREE_STRING) {
        refuse_kind(reader, key, tree);
        return;
    }
    ZpTree inner = {.kind = ZP_TREE_NULL, .text = tree->text};
    if (!zp_tree_parse_number(&inner, tree->text)) {
        refuse_text(reader, key, tree->text);
        return;
    }
    if (take_number(reader, key, &inner)) {
        g_autofree char *mend = g_strdup_printf("write %s without quotes", tree->text);
        zp_ds_internal_say(reader, ZP_IMPORT_WARNING, key, mend,
                           "\"%s\" is text: read as %s, but DeepSpeed may refuse it%s", tree->text,
                           tree->text,
                           inner.kind == ZP_TREE_REAL
                               ? " (an integer field does not take a text with point or exponent)"
                               : "");
    }
}

static void
read_boolean(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree, gboolean strict)
{
    static const char *const yes[] = {"true", "yes", "on", "1", "t", "y"};
    static const char *const no[] = {"false", "no", "off", "0", "f", "n"};
    ZpDsValue *value = &reader->config->values[key];
    int truth = -1;
    if (tree->kind == ZP_TREE_BOOLEAN) {
        value->known = TRUE;
        value->boolean = tree->boolean;
        return;
    }
    if (tree->kind == ZP_TREE_INTEGER || tree->kind == ZP_TREE_REAL)
        truth = tree->number == 1 ? 1 : tree->number == 0 ? 0 : -1;
    if (tree->kind == ZP_TREE_STRING && strict)
        for (gsize i = 0; i < G_N_ELEMENTS(yes); i++)
            truth = g_ascii_strcasecmp(tree->text, yes[i]) == 0  ? 1
                    : g_ascii_strcasecmp(tree->text, no[i]) == 0 ? 0
                                                                 : truth;
    if (truth < 0) {
        if (tree->kind == ZP_TREE_STRING && !strict)
            refuse(reader, key, "write true or false",
                   "\"%.40s\" is text, and Python takes any text for true", tree->text);
        else if (tree->kind == ZP_TREE_STRING)
            refuse_text(reader, key, tree->text);
        else
            refuse_kind(reader, key, tree);
        return;
    }
    value->known = TRUE;
    value->boolean = truth;
    g_autofree char *shown = zp_tree_show(tree);
    zp_ds_internal_say(reader, ZP_IMPORT_WARNING, key, truth ? "write true" : "write false",
                       "%s is not a boolean: read as %s", shown, truth ? "true" : "false");
}

static void
read_choice(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    g_auto(GStrv) choices = g_strsplit(entry->choices, "|", -1);
    if (tree->kind != ZP_TREE_STRING) {
        refuse_kind(reader, key, tree);
        return;
    }
    g_autofree char *lower = g_ascii_strdown(tree->text, -1);
    ZpDtype dtype;
    /* data_types takes torch's names too (DtypeEnum); the others are compared in small letters,
     * except devices, which are not. */
    gboolean device = key == ZP_DS_OFFLOAD_PARAM_DEVICE || key == ZP_DS_OFFLOAD_OPTIMIZER_DEVICE;
    gboolean long_names = g_str_has_prefix(entry->path, "data_types.");
    const char *name = device                                        ? tree->text
                       : long_names && zp_dtype_parse(lower, &dtype) ? zp_dtype_name(dtype)
                                                                     : lower;
    if (!g_strv_contains((const char *const *)choices, name)) {
        const char *near =
            zp_nearest_find_among(lower, (const char *const *)choices, g_strv_length(choices));
        g_autofree char *mend = near ? g_strdup_printf("did you mean \"%s\"?", near)
                                     : g_strdup_printf("legal: %s", entry->choices);
        refuse(reader, key, mend, "\"%.40s\" is none of %s", tree->text, entry->choices);
        return;
    }
    value->known = TRUE;
    g_free(value->text);
    value->text = g_strdup(name);
}

static void
read_list(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree)
{
    ZpDsValue *value = &reader->config->values[key];
    if (tree->kind != ZP_TREE_ARRAY) {
        refuse_kind(reader, key, tree);
        return;
    }
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < tree->members->len; i++) {
        const ZpTree *member = tree->members->pdata[i];
        if (member->kind != ZP_TREE_STRING) {
            refuse(reader, key, "write a list of names", "the list holds %s",
                   zp_tree_kind_name(member->kind));
            return;
        }
        g_ptr_array_add(names, g_strdup(member->text));
    }
    g_ptr_array_add(names, NULL);
    value->known = TRUE;
    value->list = (GStrv)g_ptr_array_free(g_steal_pointer(&names), FALSE);
    value->text = zp_tree_show(tree);
}

/* "auto": the trainer's word.  pydantic blocks drop it, plain dictionaries keep it as text. */
static void
read_auto(const ZpDsReader *reader, ZpDsKey key, gboolean strict)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    if (entry->automatic) {
        value->origin = ZP_DS_FROM_NOWHERE;
        value->known = FALSE;
        return;
    }
    if (key == ZP_DS_STAGE || (!strict && entry->effect != ZP_DS_EFFECT_NONE)) {
        g_autofree char *mend = g_strdup_printf("write %s", wanted(entry));
        refuse(reader, key, mend, "\"auto\": the HF Trainer does not fill this key");
        return;
    }
    value->origin = ZP_DS_FROM_DEFAULT;
    gboolean device = key == ZP_DS_OFFLOAD_PARAM_DEVICE || key == ZP_DS_OFFLOAD_OPTIMIZER_DEVICE;
    zp_ds_internal_say(reader, device || !strict ? ZP_IMPORT_WARNING : ZP_IMPORT_NOTE, key, NULL,
                       "\"auto\": the HF Trainer does not fill this key and DeepSpeed drops the "
                       "word: the default applies");
}

void
zp_ds_value_read(const ZpDsReader *reader, ZpDsKey key, const ZpTree *tree, gboolean strict)
{
    const ZpDsEntry *entry = zp_ds_schema_get(key);
    ZpDsValue *value = &reader->config->values[key];
    zp_ds_value_reset(value, key);
    value->origin = ZP_DS_FROM_FILE;
    value->line = tree->line;
    value->column = tree->column;
    gboolean free_text = entry->kind == ZP_DS_TEXT || entry->kind == ZP_DS_ANY;
    if (tree->kind == ZP_TREE_STRING && strcmp(tree->text, "auto") == 0 &&
        (entry->automatic || !free_text)) {
        read_auto(reader, key, strict);
        return;
    }
    if (entry->kind == ZP_DS_ANY) {
        value->known = TRUE;
        value->text = zp_tree_show(tree);
        return;
    }
    if (tree->kind == ZP_TREE_NULL) {
        if (entry->nullable)
            value->origin = ZP_DS_FROM_DEFAULT;
        else
            refuse_kind(reader, key, tree);
        return;
    }
    if (entry->kind == ZP_DS_COUNT || entry->kind == ZP_DS_REAL)
        read_number(reader, key, tree);
    else if (entry->kind == ZP_DS_BOOLEAN)
        read_boolean(reader, key, tree, strict);
    else if (entry->kind == ZP_DS_CHOICE)
        read_choice(reader, key, tree);
    else if (entry->kind == ZP_DS_LIST)
        read_list(reader, key, tree);
    else if (tree->kind == ZP_TREE_STRING) {
        value->known = TRUE;
        g_free(value->text);
        value->text = g_strdup(tree->text);
    } else {
        refuse_kind(reader, key, tree);
    }
}

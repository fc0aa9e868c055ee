#include <string.h>

#include "reports/receipts/receipt.h"
#include "reports/text/words.h"

#define N_COLUMNS 11

/* RFC 4180: quoted when it holds a comma, a quote or a line end; quotes doubled. */
static void
field(GString *out, const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        g_string_append(out, text);
        return;
    }
    g_string_append_c(out, '"');
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '"')
            g_string_append_c(out, '"');
        g_string_append_c(out, *p);
    }
    g_string_append_c(out, '"');
}

static void
record(GString *out, const char *const fields[N_COLUMNS])
{
    for (int i = 0; i < N_COLUMNS; i++) {
        if (i > 0)
            g_string_append_c(out, ',');
        field(out, fields[i] != NULL ? fields[i] : "");
    }
    g_string_append_c(out, '\n');
}

typedef struct {
    char text[24];
} Integer;

static Integer
integer(gint64 value)
{
    Integer result;
    g_snprintf(result.text, sizeof result.text, "%" G_GINT64_FORMAT, value);
    return result;
}

static void
ledger_row(GString *out, const ZpLedgerRow *row)
{
    char width[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(width, sizeof width, "%.6g", row->bytes_per_element);
    Integer copies = integer(row->copies), owners = integer(row->owners);
    Integer elements = integer(row->elements), padding = integer(row->padding_bytes);
    Integer bytes = integer(row->persistent_bytes);
    const char *const fields[N_COLUMNS] = {"row",
                                           row->name,
                                           zp_vocabulary_class_name(row->class_id),
                                           zp_dtype_name(row->dtype),
                                           width,
                                           copies.text,
                                           owners.text,
                                           elements.text,
                                           padding.text,
                                           bytes.text,
                                           row->evidence};
    record(out, fields);
}

static void
amount(GString *out, const char *type, const char *name, gint64 bytes)
{
    Integer text = integer(bytes);
    const char *const fields[N_COLUMNS] = {[0] = type, [1] = name, [9] = text.text};
    record(out, fields);
}

char *
zp_receipt_ledger_csv(const ZpReportRun *run)
{
    const ZpLedger *ledger = run->ledger;
    GString *out = g_string_new("record,name,class,dtype,bytes_per_element,copies,owners,elements,"
                                "padding_bytes,bytes,evidence\n");
    for (int i = 0; i < ledger->n_rows; i++)
        ledger_row(out, &ledger->rows[i]);
    ZpWordsPart parts[ZP_WORDS_N_PARTS];
    zp_words_parts(ledger, parts);
    for (int i = 0; i < ZP_WORDS_N_PARTS; i++)
        amount(out, "bound", parts[i].name, parts[i].bytes);
    amount(out, "total", "", ledger->total_bytes);
    amount(out, "capacity", "", ledger->capacity_bytes);
    amount(out, "headroom", ledger->fits ? "fits" : "does not fit", ledger->headroom_bytes);
    for (gsize i = 0; i < run->n_inputs; i++) {
        const ZpReportInput *input = &run->inputs[i];
        g_autofree char *name = g_strconcat(input->section, ".", input->key, NULL);
        const char *const fields[N_COLUMNS] = {
            [0] = "input", [1] = name, [2] = input->value, [10] = input->origin};
        record(out, fields);
    }
    return g_string_free(out, FALSE);
}

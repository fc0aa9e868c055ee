#include "scenarios/imports/huggingface/scan_internal.h"

#include "scenarios/imports/huggingface/errors.h"

#include <string.h>

typedef struct {
    const char *at, *end;
    int line, depth;
    GString *copy;
} Scanner;

static gboolean
refuse(const Scanner *scanner, GError **error, const char *why)
{
    g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX, "line %d: %s", scanner->line, why);
    return FALSE;
}

static void
take(Scanner *scanner)
{
    scanner->line += *scanner->at == '\n';
    g_string_append_c(scanner->copy, *scanner->at++);
}

static gboolean
scan_string(Scanner *scanner, GError **error)
{
    take(scanner);
    while (scanner->at < scanner->end && *scanner->at != '"') {
        if (*scanner->at == '\n')
            return refuse(scanner, error, "a string does not end on its line");
        if (*scanner->at == '\\' && scanner->at + 1 < scanner->end)
            take(scanner);
        take(scanner);
    }
    if (scanner->at >= scanner->end)
        return refuse(scanner, error, "a string does not end");
    take(scanner);
    return TRUE;
}

static gboolean
scan_number(Scanner *scanner, GError **error)
{
    const char *start = scanner->at;
    gsize digits = 0;
    gboolean integer = TRUE;
    while (scanner->at < scanner->end && *scanner->at != '\0' &&
           strchr("+-0123456789.eExXaAbBcCdDfF", *scanner->at)) {
        digits += g_ascii_isdigit(*scanner->at);
        integer = integer && (g_ascii_isdigit(*scanner->at) || scanner->at == start);
        take(scanner);
        if (scanner->at - start > ZP_HF_MAX_NUMBER_CHARS)
            return refuse(scanner, error, "a number has too many digits");
    }
    if (integer && digits > 18)
        g_string_append(scanner->copy, ".0");
    return TRUE;
}

static gboolean
scan_token(Scanner *scanner, GError **error)
{
    char c = *scanner->at;
    if (c == '"')
        return scan_string(scanner, error);
    if (c == '-' || g_ascii_isdigit(c))
        return scan_number(scanner, error);
    if (c == '/' || c == '\'' || c == '#')
        return refuse(scanner, error, "comments and single quotes are not JSON");
    if (c == '{' || c == '[')
        scanner->depth++;
    if (c == '}' || c == ']')
        scanner->depth--;
    if (scanner->depth > ZP_HF_MAX_DEPTH)
        return refuse(scanner, error, "nested deeper than 64 levels");
    take(scanner);
    return TRUE;
}

char *
zp_hf_scan(const char *json, gssize length, gsize *scanned_length, GError **error)
{
    gsize size = length < 0 ? strlen(json) : (gsize)length;
    if (size > ZP_HF_MAX_BYTES) {
        g_set_error(error, ZP_HF_ERROR, ZP_HF_ERROR_SYNTAX,
                    "%" G_GSIZE_FORMAT " bytes are too many for a model configuration (at most %d)",
                    size, ZP_HF_MAX_BYTES);
        return NULL;
    }
    const char *invalid = NULL;
    Scanner scanner = {.at = json, .end = json + size, .line = 1};
    if (!g_utf8_validate_len(json, size, &invalid)) {
        for (const char *p = json; p < invalid; p++)
            scanner.line += *p == '\n';
        refuse(&scanner, error, "not UTF-8 text");
        return NULL;
    }
    if (size >= 3 && memcmp(json, "\xEF\xBB\xBF", 3) == 0)
        scanner.at += 3;
    g_autoptr(GString) copy = g_string_sized_new(size + 1);
    scanner.copy = copy;
    while (scanner.at < scanner.end)
        if (!scan_token(&scanner, error))
            return NULL;
    *scanned_length = copy->len;
    return g_string_free(g_steal_pointer(&copy), FALSE);
}

int
zp_hf_scan_line(const char *json, const char *key)
{
    g_autofree char *quoted = g_strdup_printf("\"%s\"", key);
    const char *at = json;
    while ((at = strstr(at, quoted)) != NULL) {
        const char *after = at + strlen(quoted);
        after += strspn(after, " \t\r\n");
        if (*after == ':')
            break;
        at++;
    }
    if (at == NULL)
        return 0;
    int line = 1;
    for (const char *p = json; p < at; p++)
        line += *p == '\n';
    return line;
}

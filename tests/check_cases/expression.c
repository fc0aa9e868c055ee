#include "tests/check_cases/expression.h"
#include "tests/check_cases/case.h"

#include <math.h>
#include <string.h>

typedef struct {
    const char *at;
    Figures *figures;
    const char *unit; /* of the last literal that had one; a static name */
    GError **error;
} Reader;

typedef struct {
    const char *name;
    double size;
    FigureKind kind;
} Unit;

static const Unit units[] = {
    {"GiB", 1073741824.0, FIGURE_BYTES}, {"MiB", 1048576.0, FIGURE_BYTES},
    {"GB", 1e9, FIGURE_BYTES},           {"MB", 1e6, FIGURE_BYTES},
    {"B", 1, FIGURE_BYTES},              {"us", 1e-6, FIGURE_TIME},
    {"ms", 1e-3, FIGURE_TIME},           {"s", 1, FIGURE_TIME},
};

static gboolean
fail(Reader *reader, const char *what)
{
    g_set_error(reader->error, CASE_ERROR, 0, "%s at '%s'", what, reader->at);
    return FALSE;
}

static void
skip(Reader *reader)
{
    while (*reader->at == ' ')
        reader->at++;
}

static gboolean
literal(Reader *reader, Figure *value)
{
    char *end = NULL;
    value->kind = FIGURE_NUMBER;
    value->number = g_ascii_strtod(reader->at, &end);
    reader->at = end;
    skip(reader);
    for (gsize i = 0; i < G_N_ELEMENTS(units); i++) {
        gsize length = strlen(units[i].name);
        if (strncmp(reader->at, units[i].name, length) == 0 &&
            !g_ascii_isalnum(reader->at[length])) {
            reader->at += length;
            value->kind = units[i].kind;
            value->number *= units[i].size;
            reader->unit = units[i].name;
            return TRUE;
        }
    }
    return TRUE;
}

static gboolean
quoted(Reader *reader, Figure *value)
{
    const char *end = strchr(reader->at + 1, '"');
    if (end == NULL)
        return fail(reader, "no closing quote");
    value->kind = FIGURE_WORD;
    value->word = g_strndup(reader->at + 1, (gsize)(end - reader->at - 1));
    reader->at = end + 1;
    return TRUE;
}

static gboolean
term(Reader *reader, Figure *value)
{
    skip(reader);
    if (*reader->at == '"')
        return quoted(reader, value);
    if (g_ascii_isdigit(*reader->at))
        return literal(reader, value);
    gsize length = strspn(reader->at, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    if (length == 0)
        return fail(reader, "neither a figure nor a number");
    g_autofree char *name = g_strndup(reader->at, length);
    g_autofree char *sets = g_strdup("");
    reader->at += length;
    if (*reader->at == '(') {
        const char *end = strchr(reader->at, ')');
        if (end == NULL)
            return fail(reader, "no closing bracket");
        g_free(sets);
        sets = g_strndup(reader->at + 1, (gsize)(end - reader->at - 1));
        reader->at = end + 1;
    }
    return figures_get(reader->figures, name, sets, value, reader->error);
}

static gboolean
product(Reader *reader, Figure *value)
{
    if (!term(reader, value))
        return FALSE;
    for (skip(reader); *reader->at == '*' || *reader->at == '/'; skip(reader)) {
        gboolean divide = *reader->at++ == '/';
        Figure other = {0};
        if (!term(reader, &other))
            return FALSE;
        if (value->kind == FIGURE_WORD || other.kind == FIGURE_WORD)
            return fail(reader, "words have no arithmetic");
        value->number = divide ? value->number / other.number : value->number * other.number;
        if (divide && other.kind == value->kind)
            value->kind = FIGURE_NUMBER;
        else if (value->kind == FIGURE_NUMBER)
            value->kind = other.kind;
    }
    return TRUE;
}

static gboolean
sum(Reader *reader, Figure *value)
{
    if (!product(reader, value))
        return FALSE;
    for (skip(reader); *reader->at == '+' || *reader->at == '-'; skip(reader)) {
        double sign = *reader->at++ == '+' ? 1 : -1;
        Figure other = {0};
        if (!product(reader, &other))
            return FALSE;
        if (value->kind != other.kind || value->kind == FIGURE_WORD)
            return fail(reader, "a sum of different kinds");
        value->number += sign * other.number;
    }
    return TRUE;
}

/* A relation or "within"; the longest that fits. */
static const char *
relation(Reader *reader)
{
    static const char *const relations[] = {"==", "<=", ">=", "<", ">", "contains"};
    skip(reader);
    for (gsize i = 0; i < G_N_ELEMENTS(relations); i++)
        if (g_str_has_prefix(reader->at, relations[i])) {
            reader->at += strlen(relations[i]);
            return relations[i];
        }
    return NULL;
}

/* The absolute tolerance; 0 where none is given. */
static gboolean
tolerance(Reader *reader, double of, double *amount)
{
    *amount = 0;
    skip(reader);
    if (*reader->at == '\0')
        return TRUE;
    if (!g_str_has_prefix(reader->at, "within "))
        return fail(reader, "something behind the statement");
    reader->at += strlen("within ");
    const char *unit = reader->unit;
    Figure value = {0};
    skip(reader);
    if (!literal(reader, &value))
        return FALSE;
    reader->unit = unit;
    *amount = value.number;
    if (*reader->at == '%') {
        *amount = fabs(of) * value.number / 100;
        reader->at++;
    }
    skip(reader);
    return *reader->at == '\0' || fail(reader, "something behind the tolerance");
}

static gboolean
compare(const char *rel, const Figure *a, const Figure *b, double amount)
{
    if (a->kind == FIGURE_WORD)
        return rel[0] == 'c' ? strstr(a->word, b->word) != NULL : g_str_equal(a->word, b->word);
    if (g_str_equal(rel, "=="))
        return fabs(a->number - b->number) <= amount;
    if (g_str_equal(rel, "<"))
        return a->number < b->number;
    if (g_str_equal(rel, ">"))
        return a->number > b->number;
    return rel[0] == '<' ? a->number <= b->number + amount : a->number >= b->number - amount;
}

static char *
in_unit(const Figure *a, const char *unit)
{
    if (a->kind == FIGURE_WORD)
        return g_strdup(a->word);
    if (a->kind == FIGURE_NUMBER)
        return g_strdup_printf(fabs(a->number) >= 1e6 ? "%.0f" : "%.4g", a->number);
    for (gsize i = 0; unit != NULL && i < G_N_ELEMENTS(units); i++)
        if (g_str_equal(units[i].name, unit) && units[i].kind == a->kind)
            return g_strdup_printf(units[i].size == 1 && a->kind == FIGURE_BYTES ? "%.0f %s"
                                                                                : "%.3f %s",
                                   a->number / units[i].size, unit);
    return a->kind == FIGURE_BYTES ? g_strdup_printf("%.3f GiB", a->number / 1073741824.0)
                                   : g_strdup_printf("%.3f s", a->number);
}

gboolean
expression_check(Figures *figures, const char *statement, Answer *answer, GError **error)
{
    Reader reader = {.at = statement, .figures = figures, .error = error};
    Figure a = {0}, b = {0};
    double amount = 0;
    const char *rel = NULL;
    gboolean ok = sum(&reader, &a);
    if (ok && (rel = relation(&reader)) == NULL)
        ok = fail(&reader, "no relation");
    ok = ok && sum(&reader, &b) && tolerance(&reader, b.number, &amount);
    if (ok && (a.kind != b.kind || (a.kind == FIGURE_WORD && rel[0] != '=' && rel[0] != 'c') ||
               (a.kind != FIGURE_WORD && rel[0] == 'c')))
        ok = fail(&reader, "both sides must be of one kind");
    if (ok) {
        answer->holds = compare(rel, &a, &b, amount);
        g_autofree char *left = in_unit(&a, reader.unit);
        g_autofree char *right = in_unit(&b, reader.unit);
        gboolean both = a.kind != FIGURE_WORD && strstr(statement, right) == NULL;
        answer->got =
            both ? g_strdup_printf("%s against %s", left, right) : g_steal_pointer(&left);
    }
    g_free(a.word);
    g_free(b.word);
    return ok;
}

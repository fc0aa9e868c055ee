#include "tests/check_cases/case.h"

#include <string.h>

GQuark
case_error_quark(void)
{
    return g_quark_from_static_string("check-cases-error");
}

static void
check_free(gpointer data)
{
    CaseCheck *check = data;
    g_free(check->statement);
    g_free(check->because);
    g_free(check);
}

void
case_free(Case *c)
{
    g_free(c->path);
    g_free(c->id);
    g_free(c->title);
    g_free(c->source);
    g_free(c->observed);
    g_free(c->assumed);
    g_ptr_array_unref(c->checks);
    g_free(c);
}

static void
take_title(Case *c, const char *rest)
{
    const char *blank = strchr(rest, ' ');
    c->id = blank ? g_strndup(rest, (gsize)(blank - rest)) : g_strdup(rest);
    c->title = g_strdup(blank ? blank + 1 : "");
}

static gboolean
take_because(Case *c, const char *rest)
{
    CaseCheck *last = c->checks->len ? g_ptr_array_index(c->checks, c->checks->len - 1) : NULL;
    if (last == NULL || !last->differs || last->because != NULL)
        return FALSE;
    last->because = g_strdup(rest);
    return TRUE;
}

static gboolean
take_text(char **field, const char *rest)
{
    if (*field != NULL)
        return FALSE;
    *field = g_strdup(rest);
    return TRUE;
}

/* One complete directive: "word rest". */
static gboolean
take(Case *c, const char *directive, int line)
{
    const char *blank = strchr(directive, ' ');
    if (blank == NULL)
        return FALSE;
    g_autofree char *word = g_strndup(directive, (gsize)(blank - directive));
    const char *rest = blank + 1;
    if (g_str_equal(word, "case") && c->id == NULL) {
        take_title(c, rest);
        return TRUE;
    }
    if (g_str_equal(word, "source"))
        return take_text(&c->source, rest);
    if (g_str_equal(word, "observed"))
        return take_text(&c->observed, rest);
    if (g_str_equal(word, "assumed"))
        return take_text(&c->assumed, rest);
    if (g_str_equal(word, "because"))
        return take_because(c, rest);
    if (!g_str_equal(word, "check") && !g_str_equal(word, "differs"))
        return FALSE;
    CaseCheck *check = g_new0(CaseCheck, 1);
    check->statement = g_strdup(rest);
    check->differs = g_str_equal(word, "differs");
    check->line = line;
    g_ptr_array_add(c->checks, check);
    return TRUE;
}

static gboolean
complete(const Case *c, GError **error)
{
    if (c->id == NULL || c->source == NULL || c->observed == NULL || c->checks->len == 0) {
        g_set_error(error, CASE_ERROR, 0, "%s: needs case, source, observed and a check", c->path);
        return FALSE;
    }
    for (guint i = 0; i < c->checks->len; i++) {
        const CaseCheck *check = g_ptr_array_index(c->checks, i);
        if (check->differs && check->because == NULL) {
            g_set_error(error, CASE_ERROR, 0, "%s:%d: 'differs' needs 'because'", c->path,
                        check->line);
            return FALSE;
        }
    }
    return TRUE;
}

Case *
case_load(const char *path, GError **error)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, error))
        return NULL;
    g_autoptr(Case) c = g_new0(Case, 1);
    c->path = g_strdup(path);
    c->checks = g_ptr_array_new_with_free_func(check_free);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (int i = 0; lines[i] != NULL; i++) {
        if (!g_str_has_prefix(lines[i], "#! "))
            continue;
        int first = i + 1;
        g_autoptr(GString) directive = g_string_new(lines[i] + 3);
        while (lines[i + 1] != NULL && g_str_has_prefix(lines[i + 1], "#!   ")) {
            g_autofree char *more = g_strstrip(g_strdup(lines[++i] + 2));
            g_string_append_printf(directive, " %s", more);
        }
        if (!take(c, directive->str, first)) {
            g_set_error(error, CASE_ERROR, 0, "%s:%d: '%s' is no directive here", path, first,
                        directive->str);
            return NULL;
        }
    }
    return complete(c, error) ? g_steal_pointer(&c) : NULL;
}

#include "models/words/nearest.h"

#include <string.h>

/* Longer names are no typing errors; the bound keeps the work small on hostile input. */
#define MAX_LENGTH 64

/* Distances are doubled, so that a wrong case can cost half a letter. */
#define LETTER 2

static int
letter_cost(char a, char b)
{
    if (a == b)
        return 0;
    return g_ascii_tolower(a) == g_ascii_tolower(b) ? LETTER / 2 : LETTER;
}

/* Optimal string alignment over three rows. */
static int
distance(const char *a, gsize n, const char *b, gsize m)
{
    int rows[3][MAX_LENGTH + 1] = {0};
    for (gsize j = 0; j <= m; j++)
        rows[0][j] = LETTER * (int)j;
    for (gsize i = 1; i <= n; i++) {
        int *row = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        row[0] = LETTER * (int)i;
        for (gsize j = 1; j <= m; j++) {
            int best = up[j - 1] + letter_cost(a[i - 1], b[j - 1]);
            best = MIN(best, MIN(up[j], row[j - 1]) + LETTER);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                best = MIN(best, up2[j - 2] + LETTER);
            row[j] = best;
        }
    }
    return rows[n % 3][m];
}

int
zp_nearest_distance(const char *a, const char *b)
{
    gsize n = strlen(a), m = strlen(b);
    if (n > MAX_LENGTH || m > MAX_LENGTH)
        return 99;
    return (distance(a, n, b, m) + LETTER - 1) / LETTER;
}

const char *
zp_nearest_find_among(const char *name, const char *const *names, gsize n_names)
{
    gsize n = strlen(name);
    const char *nearest = NULL;
    int least = G_MAXINT;
    if (n == 0 || n > MAX_LENGTH)
        return NULL;
    for (gsize i = 0; i < n_names; i++) {
        gsize m = strlen(names[i]);
        if (m > MAX_LENGTH)
            continue;
        int limit = LETTER * (int)MAX(1, MAX(n, m) / 3);
        int d = distance(name, n, names[i], m);
        if (d > LETTER && n >= 3 && g_ascii_strncasecmp(name, names[i], n) == 0)
            d = LETTER;
        if (d <= limit && d < least) {
            least = d;
            nearest = names[i];
        }
    }
    return nearest;
}

const char *
zp_nearest_find(const char *name, const char *const *names)
{
    return zp_nearest_find_among(name, names, g_strv_length((GStrv)(gpointer)names));
}

char *
zp_nearest_hint(const char *name, const char *const *names)
{
    const char *nearest = zp_nearest_find(name, names);
    return nearest != NULL ? g_strdup_printf("; did you mean '%s'?", nearest) : g_strdup("");
}

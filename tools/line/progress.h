/* A progress line on stderr: on a terminal only, at most ten times a second. */
#pragma once

#include <glib.h>

typedef struct {
    const char *what;
    gint64 total;
    gint64 started_us, shown_us;
    gboolean terminal;
} ZpProgress;

void zp_progress_begin(ZpProgress *progress, const char *what, gint64 total);
void zp_progress_update(ZpProgress *progress, gint64 done);
/* Wipes the line. */
void zp_progress_end(ZpProgress *progress);

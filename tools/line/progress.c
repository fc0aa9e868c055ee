#include "tools/line/progress.h"

#include <stdio.h>
#include <unistd.h>

void
zp_progress_begin(ZpProgress *progress, const char *what, gint64 total)
{
    *progress = (ZpProgress){
        .what = what,
        .total = total,
        .started_us = g_get_monotonic_time(),
        .terminal = isatty(STDERR_FILENO) == 1,
    };
}

void
zp_progress_update(ZpProgress *progress, gint64 done)
{
    gint64 now = g_get_monotonic_time();
    if (!progress->terminal || done <= 0 || now - progress->shown_us < 100000)
        return;
    progress->shown_us = now;
    double elapsed = (double)(now - progress->started_us) / 1e6;
    double left = elapsed * (double)(progress->total - done) / (double)done;
    fprintf(stderr, "\r\033[K%s: %" G_GINT64_FORMAT "/%" G_GINT64_FORMAT " (%d %%), %.0f s left",
            progress->what, done, progress->total, (int)(100 * done / progress->total), left);
    fflush(stderr);
}

void
zp_progress_end(ZpProgress *progress)
{
    if (progress->terminal && progress->shown_us > 0)
        fprintf(stderr, "\r\033[K");
}

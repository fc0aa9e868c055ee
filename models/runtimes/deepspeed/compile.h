/* A job for DeepSpeed as a tape: the tree of its modules, the walk over it, and the stage that says
 * what happens to gradients. */
#pragma once

#include "models/runtimes/deepspeed/stages/program.h"

/* Marks leaves, persistence and checkpointing on the program's tree. */
gboolean zp_ds_compile(const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape,
                       ZpDsListener tap, gpointer tap_data, GError **error);
/* The same with a tree and order of its own (reference cases); takes the tree. */
gboolean zp_ds_compile_tree(const ZpJob *job, const ZpDeepspeed *settings, ZpDsTree *tree,
                            ZpTape *tape, ZpDsListener tap, gpointer tap_data, GError **error);

/* Something else than steps (checkpoints, construction) after the usual prologue, or `alone` on an
 * empty device: the stage's state exists, its buffers do not. */
typedef struct {
    gboolean alone;
    void (*write)(ZpDsProgram *program, gpointer data);
    gpointer data;
} ZpDsEpisode;
/* NULL episode: steps. */
gboolean zp_ds_compile_episode(const ZpJob *job, const ZpDeepspeed *settings, ZpTape *tape,
                               const ZpDsEpisode *episode, GError **error);

/* The order of collectives on NCCL's communicators.
 *
 * A communicator runs its collectives one after the other in the order in which the host issued
 * them, whatever streams they were issued to: PyTorch put them all on one stream of the process
 * group (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp) and now launches blocking ones on the
 * caller's stream (pytorch pull request 148590), where NCCL itself makes each launch wait for the
 * communicator's last (src/enqueue.cc, ncclLaunchPrepare).  So gathers and reductions of one
 * process group never run at the same time, and one whose stream is not ready holds up those issued
 * after it.  FSDP states this for itself: FSDPModule.set_separate_reduce_scatter_group().
 * Communicators do not wait for each other: they share links.
 *
 * A process group is a group of the tape here; reductions may have a communicator of their own. */
#pragma once

#include "sim/tape/tape.h"

typedef struct {
    gint32 last; /* event: the end of its latest collective, or ZP_TAPE_NONE */
    guint8 stream;
} ZpCommunicator;

typedef struct {
    ZpCommunicator of_group[ZP_TAPE_MAX_GROUPS];
    /* Of reduce-scatters, with separate_reduce_scatter. */
    ZpCommunicator scatters_of_group[ZP_TAPE_MAX_GROUPS];
    gboolean separate_reduce_scatter;
} ZpCommunicators;

void zp_communicators_init(ZpCommunicators *self, gboolean separate_reduce_scatter);

/* Launches `work` on `stream`; a collective waits there for the one that its communicator was given
 * before. */
void zp_communicators_launch(ZpCommunicators *self, ZpTape *tape, guint8 stream, gint32 work);

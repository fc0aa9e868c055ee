#include "models/runtimes/shared/communicators.h"

#include "models/words/vocabulary.h"

void
zp_communicators_init(ZpCommunicators *self, gboolean separate_reduce_scatter)
{
    self->separate_reduce_scatter = separate_reduce_scatter;
    for (int g = 0; g < ZP_TAPE_MAX_GROUPS; g++) {
        self->of_group[g] = (ZpCommunicator){.last = ZP_TAPE_NONE};
        self->scatters_of_group[g] = (ZpCommunicator){.last = ZP_TAPE_NONE};
    }
}

void
zp_communicators_launch(ZpCommunicators *self, ZpTape *tape, guint8 stream, gint32 work)
{
    const ZpTapeWork *launched = &tape->works[work];
    if (launched->group == ZP_TAPE_NONE) {
        zp_tape_launch(tape, stream, work);
        return;
    }
    gboolean apart = self->separate_reduce_scatter && launched->kind == ZP_KIND_REDUCE_SCATTER;
    ZpCommunicator *own =
        apart ? &self->scatters_of_group[launched->group] : &self->of_group[launched->group];
    /* On one stream the order holds by itself. */
    if (own->last != ZP_TAPE_NONE && own->stream != stream)
        zp_tape_wait(tape, stream, own->last);
    zp_tape_launch(tape, stream, work);
    *own = (ZpCommunicator){.last = zp_tape_record(tape, stream), .stream = stream};
}

/* Bytes become a tape and a setting; what the checker lets through both players must play. */
#include "sim/players/maxplus.h"
#include "sim/players/player.h"
#include "tests/random_tape.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    const uint8_t *next, *end;
} Bytes;

static guint8
take(Bytes *bytes)
{
    return bytes->next < bytes->end ? *bytes->next++ : 0;
}

/* Small numbers most of the time, sometimes huge or negative ones. */
static gint64
take_number(Bytes *bytes)
{
    gint64 value = take(bytes);
    if (value < 248)
        return value;
    gint64 wide = take(bytes) | take(bytes) << 8;
    return value == 255 ? -wide : (gint64)((guint64)wide << (8 * (value - 248)));
}

static void
take_work(ZpTape *tape, Bytes *bytes, guint8 stream)
{
    guint8 where = take(bytes);
    ZpTapeWork work = {
        .fixed_ps = where & 1 ? take_number(bytes) : 0,
        .solo_ps = take_number(bytes),
        .kind = (gint16)(where >> 1 & 3),
        .link = (gint8)((where >> 3 & 3) - 1),
        .group = (gint8)((where >> 5 & 3) - 1),
        .category = take(bytes) % 5,
        .label = ZP_TAPE_NONE,
    };
    zp_tape_launch(tape, stream, zp_tape_add_work(tape, &work));
}

static void
take_instr(ZpTape *tape, Bytes *bytes)
{
    guint8 what = take(bytes), stream = what >> 5 & 3;
    ZpTapeClock clock = what >> 4 & 1 ? ZP_TAPE_CLOCK_DEVICE : ZP_TAPE_CLOCK_HOST;
    switch (what & 15) {
    case 0:
    case 1:
        zp_tape_make(tape, clock, stream, take(bytes) % 4, 0, take_number(bytes));
        break;
    case 2:
        zp_tape_free_buffer(tape, clock, stream, take(bytes));
        break;
    case 3:
        zp_tape_retag(tape, clock, stream, take(bytes), take(bytes) % 4, take(bytes) % 3);
        break;
    case 4:
        zp_tape_use(tape, stream, take(bytes));
        break;
    case 5:
    case 6:
        zp_tape_record(tape, stream);
        break;
    case 7:
    case 8:
        zp_tape_wait(tape, stream, take(bytes));
        break;
    case 9:
        zp_tape_sync(tape, take(bytes));
        break;
    case 10:
        zp_tape_begin_step(tape);
        break;
    default:
        take_work(tape, bytes, stream);
        break;
    }
}

static ZpTape *
take_tape(Bytes *bytes)
{
    ZpTape *tape = zp_tape_new(&random_words);
    for (int s = 0; s < 3; s++)
        zp_tape_add_stream(tape, "stream", ZP_TAPE_COMPUTE);
    zp_tape_add_link(tape, "first");
    zp_tape_add_link(tape, "second");
    zp_tape_add_group(tape, 4, 1);
    zp_tape_add_group(tape, 2, 2);
    while (bytes->next < bytes->end && tape->n_instrs < 500)
        take_instr(tape, bytes);
    return tape;
}

static void
take_setting(Bytes *bytes, ZpPlayConfig *config, gint32 *speeds)
{
    guint8 bits = take(bytes);
    *config = (ZpPlayConfig){
        .n_ranks = bits & 1 ? 4 : 1,
        .keep_times = TRUE,
        .seed = take(bytes),
        .jitter_ppm = bits & 2 ? take(bytes) * 5000 : 0,
        .launch_overhead_ps = take(bytes),
        .instr_overhead_ps = take(bytes) % 8,
        .run_ahead = bits & 4 ? take(bytes) % 8 : 0,
    };
    for (int r = 0; r < 4; r++)
        speeds[r] = bits & 8 ? take(bytes) * 10000 : 1000000;
    config->speed_ppm = speeds;
    for (int c = 0; bits & 16 && c < ZP_TAPE_N_CATEGORIES; c++)
        config->interference_ppm[c][(c + 1) % ZP_TAPE_N_CATEGORIES] = take(bytes) * 3900;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Bytes bytes = {data, data + size};
    ZpPlayConfig config;
    gint32 speeds[4];
    take_setting(&bytes, &config, speeds);
    g_autoptr(ZpTape) tape = take_tape(&bytes);
    if (!zp_tape_check(tape, FALSE, 0, NULL))
        return 0;
    g_autoptr(GString) text = g_string_new(NULL);
    zp_tape_dump(tape, text);
    g_auto(ZpPlayResult) events = {0};
    g_auto(ZpPlayResult) sweep = {0};
    g_autoptr(GError) error = NULL;
    if (!zp_player_play(tape, &config, &events, &error)) {
        g_assert(!g_error_matches(error, ZP_PLAY_ERROR, ZP_PLAY_ERROR_DEADLOCK));
        return 0;
    }
    g_assert(zp_maxplus_play(tape, &config, &sweep, NULL));
    g_assert(events.end >= sweep.end);
    for (gint32 i = 0; i < tape->n_instrs; i++)
        g_assert(events.op_start[i] >= sweep.op_start[i] && events.op_end[i] >= sweep.op_end[i]);
    for (int space = 0; space < ZP_TAPE_N_SPACES; space++) {
        g_autoptr(GArray) live = zp_play_live_set(tape, &config, (ZpTapeSpace)space);
        g_assert(live != NULL);
    }
    return 0;
}

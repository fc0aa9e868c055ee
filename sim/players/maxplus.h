/* The max-plus player: the engine's oracle where nothing contends, its lower bound elsewhere.
 * Written independently of player.c: neither may call the other or share its arithmetic. */
#pragma once

#include "sim/players/play.h"

/* Ignores sharing, interference and observers; fills times and end, not memory (device-clock
 * changes are not ordered here) and not exposed or busy times. */
gboolean zp_maxplus_play(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *result,
                         GError **error) G_GNUC_WARN_UNUSED_RESULT;

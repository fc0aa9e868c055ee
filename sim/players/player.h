/* The event player: see play.h for what it takes, gives and promises. */
#pragma once

#include "sim/players/play.h"

gboolean zp_player_play(const ZpTape *tape, const ZpPlayConfig *config, ZpPlayResult *result,
                        GError **error) G_GNUC_WARN_UNUSED_RESULT;

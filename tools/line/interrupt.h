/* Ctrl-C: the first one asks long work to stop cleanly, a second one ends the program. */
#pragma once

#include <glib.h>

/* Installs the handler and returns the flag that it sets. */
const volatile gint *zp_interrupt_watch(void);

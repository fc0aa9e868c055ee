/* Names of modules and parameters, kept for the life of the program like g_intern_string's: large
 * models have tens of thousands, and GLib's table drops its old copies as it grows, which a leak
 * checker then reports. */
#pragma once

#include <glib.h>

/* The same pointer for equal strings; never freed.  Safe from any thread. */
const char *zp_names_intern(const char *name);

/* For programs that intern more than two thousand strings: GLib leaks its table of them on purpose
 * whenever it grows, and a leak checker must be told.  Include it once in a program. */
#pragma once

const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);

/* The stack of an allocation is followed through libraries without frame pointers. */
const char *
__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";
}

const char *
__lsan_default_suppressions(void)
{
    /* _dl_init: the first such table, made when the library is loaded. */
    return "leak:g_intern_string\nleak:g_quark_from_string\nleak:_dl_init\n";
}

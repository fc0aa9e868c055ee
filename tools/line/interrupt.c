#include "tools/line/interrupt.h"

#include <signal.h>

/* A signal handler can reach nothing but a global. */
static volatile gint interrupted;

static void
on_interrupt(int number)
{
    interrupted = 1;
    (void)signal(number, SIG_DFL);
}

const volatile gint *
zp_interrupt_watch(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    return &interrupted;
}

/* Ctrl-C, and the SIGTERM of batch systems and mpirun, ask the running step to end in order. */
#include <signal.h>
#include <string.h>

#include "cli/cli.h"

static volatile sig_atomic_t flag;

static void on_signal(int number)
{
    (void)number;
    flag = 1;
}

void grvc_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    /* the default comes back after the first one, so that the second ends the process; reads and writes go on */
    action.sa_flags = (int)(SA_RESETHAND | SA_RESTART);
    (void)sigemptyset(&action.sa_mask);
    static const int signals[] = {SIGINT, SIGTERM};
    for (int i = 0; i < 2; i++) {
        struct sigaction old;
        /* a shell that started us in the background ignores Ctrl-C for us: that stays */
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(signals[i], &action, NULL);
    }
}

bool grvc_interrupted(void)
{
    return flag != 0;
}

/* stop.c - see stop.h. */
#include "cli/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "util/err.h"

static atomic_int asked;
static atomic_bool polite;

static void on_signal(int number)
{
    static const char text[] = "weir: stopped\n";
    if (!polite) {
        ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
        (void)ignored;
        _exit(128 + number);
    }
    asked = number;
    alarm(1);
}

/* A signal that came between a look at the flag and a blocking call must not be lost: the call is
 * interrupted a second later. */
static void on_alarm(int number)
{
    (void)number;
    alarm(1);
}

static void catch (int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&action.sa_mask);
    /* What the caller (nohup, a shell's background job) ignores stays ignored. */
    if (sigaction(number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void stop_install(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        catch (numbers[i], on_signal, (int)SA_RESETHAND); /* the second one kills */
    catch (SIGALRM, on_alarm, 0);
}

void stop_politely(void)
{
    polite = true;
    signal(SIGPIPE, SIG_IGN); /* EPIPE tells, and leaves time to tidy up */
}

bool stop_asked(void)
{
    return asked != 0;
}

void stop_for_closed_pipe(void)
{
    int none = 0;
    atomic_compare_exchange_strong(&asked, &none, SIGPIPE);
}

int stop_signal(void)
{
    return asked;
}

int stop_fail(void)
{
    return weir_fail(EINTR, "stopped by SIG%s", sigabbrev_np(asked));
}

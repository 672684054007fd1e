/* stop.h - Ctrl-C, SIGTERM and SIGHUP.
 *
 * At first a signal ends the process at once: nothing is held that a crash could harm. A command
 * that has something to undo calls stop_politely(); from then on a signal only asks, and the
 * command looks at stop_asked() at least once for each buffer. The second signal of a kind kills.
 * Signals arrive on the main thread only (weir_thread_start blocks them elsewhere), and after the
 * first one every blocking system call there is interrupted again and again until the end.
 */
#ifndef WEIR_CLI_STOP_H
#define WEIR_CLI_STOP_H

#include <stdbool.h>

void stop_install(void);
void stop_politely(void);
bool stop_asked(void);
/* The reader of our output is gone: as if SIGPIPE had arrived. */
void stop_for_closed_pipe(void);
/* The signal that asked, or 0. */
int stop_signal(void);
/* -EINTR with a text. */
int stop_fail(void);

#endif

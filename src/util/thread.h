/* thread.h - threads of the library, and knowing that we are in a forked child. */
#ifndef WEIR_UTIL_THREAD_H
#define WEIR_UTIL_THREAD_H

#include <pthread.h>

/* Starts a thread with all signals blocked: handlers run on the application's threads only. */
int weir_thread_start(pthread_t *out, const char *name, void *(*fn)(void *), void *arg);
/* Those that this process may run on, at least one. */
unsigned weir_processors(void);
/* Changes in a forked child: a handle that remembers another number belongs to the parent. */
unsigned weir_fork_generation(void);

#endif

/* proc.h - the processes of a test. Each dies with the one that started it (PR_SET_PDEATHSIG), so a
 * test that fails or is killed leaves none behind; they are ended by their id and by nothing else.
 */
#ifndef WEIR_FAULT_PROC_H
#define WEIR_FAULT_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

typedef int (*proc_fn)(void *arg);

/* Runs fn(arg) in a new process, which exits with its answer. */
pid_t proc_start(proc_fn fn, void *arg);
/* Waits for its end: its exit code, or 128 + the signal that ended it. */
int proc_wait(pid_t pid);
/* The same, but -1 when it still runs after ms milliseconds. */
int proc_wait_ms(pid_t pid, unsigned ms);
/* Waits for all; the first that ends with anything but 0 ends the others and this program. */
void proc_all_ok(const pid_t *pids, unsigned count);
/* SIGKILL, and waits. Whatever ended it first is the answer. */
int proc_kill(pid_t pid);
/* SIGSTOP and SIGCONT to a process (0: none) that is not stopped, or is; true if that was so. */
bool proc_stop(pid_t pid, bool *stopped);
bool proc_wake(pid_t pid, bool *stopped);
/* Ends those that this process started and that still run. */
void proc_end_all(void);
/* proc_start and proc_wait in one. */
int proc_run(proc_fn fn, void *arg);
/* The same; a process that runs longer than that hangs: it is killed and the answer is -1. */
int proc_run_ms(proc_fn fn, void *arg, unsigned ms);

/* Runs a program found in PATH with its output thrown away; its exit code, or 127. */
int tool_run(const char *const argv[]);
bool tool_exists(const char *name);

/* Becomes the user nobody (65534) for good; true if this process is not root (any more). */
bool proc_drop_root(void);

/* Memory that children share with their parent, zeroed; never unmapped. */
void *shared_alloc(size_t size);
uint64_t now_ns(void);
void sleep_ms(unsigned ms);
void sleep_us(unsigned us);

#endif

/* calls.h - the table of system calls, with a point before each that changes something. */
#ifndef WEIR_FAULT_CALLS_H
#define WEIR_FAULT_CALLS_H

/* From now on fn is called there, by any thread: 0, or what the call answers instead of being made.
 * Of a lock also when it is held. */
void calls_arm(int (*fn)(void));

#endif

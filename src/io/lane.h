/* lane.h - transfers of one thread, with nobody between it and the kernel: a ring of its own, or,
 * one at a time, pread and pwrite. This is for measuring what storage gives; the engine of io.h,
 * which many threads share, is for using it. A lane belongs to the thread that opened it.
 */
#ifndef WEIR_IO_LANE_H
#define WEIR_IO_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct weir_lane;

/* depth: transfers under way; 1 needs no ring. -errno with a text. */
int weir_lane_open(struct weir_lane **out, unsigned depth);
/* Nothing is under way any more. */
void weir_lane_close(struct weir_lane *lane);
/* Begins a transfer; slot, below the depth, names it. */
void weir_lane_send(struct weir_lane *lane, unsigned slot, bool is_write, int fd, void *buf,
                    size_t size, uint64_t off);
/* Waits for one that is done: its slot; *answer is its bytes or -errno. */
unsigned weir_lane_wait(struct weir_lane *lane, ssize_t *answer);

#endif

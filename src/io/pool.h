/* pool.h - transfer buffers: a bounded arena of aligned 1 MiB buffers, mapped at first use, never
 * inherited by a forked child. Any thread may take and give back.
 *
 * Whoever waits here must not hold back what others wait for: a stream keeps at most one buffer
 * while its owner is elsewhere (weir_pool_reserve bounds the streams), all others are on their way
 * through the io layer and come back by themselves.
 */
#ifndef WEIR_IO_POOL_H
#define WEIR_IO_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEIR_BUFFER_BYTES ((size_t)1 << 20)
#define WEIR_IO_ALIGN ((size_t)4096)
enum { WEIR_POOL_BUFFERS_MAX = 1024 };

struct weir_pool;

int weir_pool_open(struct weir_pool **out, uint64_t bytes_max);
void weir_pool_close(struct weir_pool *pool);
/* Waits for a buffer. -ENOMEM if the arena cannot be mapped. */
int weir_pool_get(struct weir_pool *pool, void **buf);
/* The same, but -EAGAIN (without a text) if there is none now: for whoever holds buffers that only
 * itself gives back. */
int weir_pool_try(struct weir_pool *pool, void **buf);
void weir_pool_put(struct weir_pool *pool, void *buf);
/* Counts a stream in; -EMFILE if half the buffers are spoken for already. */
int weir_pool_reserve(struct weir_pool *pool);
unsigned weir_pool_streams_max(const struct weir_pool *pool);
void weir_pool_release(struct weir_pool *pool);
/* How many buffers one stream should have on their way: all streams together half the pool, so that
 * what storage cannot take yet does not fill memory that was never touched; but two at least, to
 * fill one while the other is written. */
unsigned weir_pool_share(struct weir_pool *pool);
/* The arena, for registering its buffers; *size is 0 before the first buffer was taken. */
void *weir_pool_arena(struct weir_pool *pool, size_t *size);

#endif

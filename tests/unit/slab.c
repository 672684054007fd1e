/* Memory for samples and batches: what is kept and what is lent stay within the bound together, and
 * a forked child can ask how much it was, whatever its parent's threads were doing.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/slab.h"
#include "test.h"

enum { MIB = 1 << 20, BOUND = 16 * MIB, EACH = 2 * MIB, CHILDREN = 200 };

static _Alignas(64) char lent[8 * MIB], small[MIB];

static void give_back(void *owner)
{
    ++*(int *)owner;
}

static struct weir_slabs *pool_open(void)
{
    struct weir_slabs *pool;
    OK(weir_slabs_open(&pool, BOUND));
    return pool;
}

/* Fills the pool with what it keeps. */
static void keep_all(struct weir_slabs *pool)
{
    struct weir_slab *slabs[BOUND / EACH];
    for (int i = 0; i < BOUND / EACH; i++)
        CHECK(slabs[i] = weir_slab_take(pool, EACH));
    for (int i = 0; i < BOUND / EACH; i++)
        weir_slab_give(slabs[i]);
    CHECK_EQ(weir_slabs_peak(pool), BOUND);
}

static void what_is_lent_is_within_the_bound(void)
{
    struct weir_slabs *pool = pool_open();
    int returned = 0;
    keep_all(pool);
    OK(weir_slabs_lend(pool, lent, sizeof lent, give_back, &returned));
    CHECK_EQ(weir_slabs_peak(pool), BOUND);
    struct weir_slab *own = weir_slab_take(pool, EACH), *other = weir_slab_take_lent(pool, EACH);
    CHECK(own && other->data == (uint8_t *)lent && !returned);
    CHECK_EQ(weir_slabs_peak(pool), BOUND);
    weir_slab_give(own);
    weir_slab_give(other);
    CHECK_EQ(returned, 1);
    weir_slabs_close(pool);
}

/* One that is too small stays counted until its owner has it back. */
static void what_is_spent_is_counted(void)
{
    struct weir_slabs *pool = pool_open();
    int returned = 0;
    OK(weir_slabs_lend(pool, small, sizeof small, give_back, &returned));
    struct weir_slab *slab = weir_slab_take_lent(pool, EACH);
    CHECK(slab && slab->data != (uint8_t *)small && !returned);
    CHECK_EQ(weir_slabs_peak(pool), MIB + EACH);
    OK(weir_slabs_lend(pool, lent, MIB, give_back, &returned));
    CHECK_EQ(returned, 1);
    CHECK_EQ(weir_slabs_peak(pool), MIB + EACH);
    weir_slab_give(slab);
    weir_slabs_close(pool);
    CHECK_EQ(returned, 2);
}

static atomic_bool over;

static void *take_and_give(void *pool)
{
    while (!over)
        weir_slab_give(weir_slab_take(pool, 1));
    return NULL;
}

static void a_child_can_ask(void)
{
    struct weir_slabs *pool = pool_open();
    pthread_t thread;
    OK(pthread_create(&thread, NULL, take_and_give, pool));
    for (int i = 0; i < CHILDREN; i++) {
        int status;
        pid_t pid = fork();
        if (!pid) {
            alarm(60);
            weir_slabs_peak(pool);
            weir_slabs_close(pool);
            _exit(0);
        }
        CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
        CHECK_EQ(status, 0);
    }
    over = true;
    OK(pthread_join(thread, NULL));
    weir_slabs_close(pool);
}

int main(void)
{
    RUN(what_is_lent_is_within_the_bound);
    RUN(what_is_spent_is_counted);
    RUN(a_child_can_ask);
    return TEST_RESULT;
}

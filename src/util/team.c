/* team.c - see team.h. */
#include "util/team.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "util/err.h"
#include "util/thread.h"

struct team {
    weir_team_fn fn;
    void *arg;
    uint64_t count;
    _Atomic uint64_t next;
    atomic_bool stopped;
    pthread_mutex_t lock; /* of the failure */
    int code;
    uint64_t failed; /* which */
    char text[WEIR_TEXT_MAX];
};

static void note_failure(struct team *team, uint64_t i, int code)
{
    pthread_mutex_lock(&team->lock);
    if (!team->code || i < team->failed) {
        team->code = code;
        team->failed = i;
        memcpy(team->text, weir_fail_last(), sizeof team->text);
    }
    pthread_mutex_unlock(&team->lock);
    team->stopped = true;
}

static void *member(void *arg)
{
    struct team *team = arg;
    uint64_t i;
    while (!team->stopped && (i = team->next++) < team->count) {
        int code = team->fn(team->arg, i);
        if (code)
            note_failure(team, i, code);
    }
    return NULL;
}

int weir_team_run(uint32_t threads, uint64_t count, weir_team_fn fn, void *arg)
{
    pthread_t started[WEIR_TEAM_MAX];
    struct team team = {.fn = fn, .arg = arg, .count = count};
    uint32_t n = 0, want = threads < WEIR_TEAM_MAX ? threads : WEIR_TEAM_MAX;
    if (want > count)
        want = (uint32_t)count;
    pthread_mutex_init(&team.lock, NULL);
    while (want > 1 && n < want && !weir_thread_start(&started[n], "weir-team", member, &team))
        n++;
    if (!n) /* none was wanted, or none could be had */
        member(&team);
    for (uint32_t i = 0; i < n; i++)
        pthread_join(started[i], NULL);
    pthread_mutex_destroy(&team.lock);
    return team.code ? weir_fail_text(team.code, team.text) : 0;
}

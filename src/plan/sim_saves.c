/* sim_saves.c - see sim_saves.h. */
#include "plan/sim_saves.h"

#include <assert.h>
#include <string.h>

static void enter(const struct sim_saves *saves, struct sim_save *save, int level)
{
    save->level = level;
    save->left_bytes = saves->node_bytes;
    save->wait_s = saves->latency_s[level];
}

void weir_sim_saves_open(struct sim_saves *saves, const struct weir_sim_setup *setup)
{
    *saves = (struct sim_saves){.levels = setup->save_tier_count,
                                .queue = setup->queue,
                                .node_bytes = setup->save_bytes / setup->nodes};
    for (int i = 0; i < saves->levels; i++) {
        saves->latency_s[i] = setup->tiers[setup->save_tiers[i]].latency_s;
        saves->held[i] = -1;
    }
}

bool weir_sim_saves_is_full(const struct sim_saves *saves)
{
    return saves->count >= saves->queue;
}

void weir_sim_saves_begin(struct sim_saves *saves, double steps)
{
    assert(saves->count < WEIR_SIM_QUEUE_MAX && saves->levels);
    struct sim_save *save = &saves->under_way[saves->count++];
    save->steps = steps;
    enter(saves, save, 0);
}

struct sim_save *weir_sim_saves_at(struct sim_saves *saves, int level)
{
    for (int i = 0; i < saves->count; i++)
        if (saves->under_way[i].level == level)
            return &saves->under_way[i];
    return NULL;
}

void weir_sim_saves_done(struct sim_saves *saves, int level)
{
    struct sim_save *save = weir_sim_saves_at(saves, level);
    saves->held[level] = save->steps;
    saves->done[level]++;
    if (level + 1 < saves->levels) {
        enter(saves, save, level + 1);
        return;
    }
    assert(save == saves->under_way); /* the oldest ends first */
    saves->count--;
    memmove(save, save + 1, (size_t)saves->count * sizeof *save);
}

double weir_sim_saves_staged(const struct sim_saves *saves)
{
    double bytes = 0;
    for (int i = 0; i < saves->count; i++)
        bytes += saves->under_way[i].level == 0 ? saves->under_way[i].left_bytes : 0;
    return bytes;
}

void weir_sim_saves_drop(struct sim_saves *saves)
{
    saves->count = 0;
}

void weir_sim_saves_lose(struct sim_saves *saves, int level)
{
    saves->held[level] = -1;
}

int weir_sim_saves_newest(const struct sim_saves *saves)
{
    int newest = -1;
    for (int i = 0; i < saves->levels; i++)
        if (saves->held[i] >= 0 && (newest < 0 || saves->held[i] > saves->held[newest]))
            newest = i;
    return newest;
}

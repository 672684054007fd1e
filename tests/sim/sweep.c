/* sweep.c - see sweep.h. */
#include "sweep.h"

#include <stdio.h>
#include <string.h>

#include "seeds.h"
#include "test.h"

static uint64_t cases;

void sim_census_take(struct sim_census *census)
{
    if (!census)
        return;
    *census = (struct sim_census){.calls = sim.calls, .allocs = sim.allocs};
    memcpy(census->trace, sim.trace, sizeof census->trace);
}

uint64_t sim_case_next(void)
{
    return ++cases;
}

uint64_t sim_cases(void)
{
    return cases;
}

static const char *how_often(const struct sim_fault *fault)
{
    return fault->count == SIM_FOREVER ? "for ever" : fault->count == 1 ? "once" : "twice";
}

static void one_case(const struct sim_sweep *sweep, const struct sim_fault *fault,
                     const char *where, bool power_loss)
{
    uint64_t number = sim_case_next();
    if (!sim_case_wanted(number, sweep->stride ? sweep->stride : 1))
        return;
    sim_scene(number, "%s: %s at %s %llu, %s%s", sweep->name, sim_fault_name(fault->kind), where,
              (unsigned long long)fault->first, how_often(fault),
              power_loss ? ", then a power loss" : "");
    sweep->run(sweep->op, fault, power_loss, NULL);
}

/* All the ways in which one call can fail. */
static void sweep_call(const struct sim_sweep *sweep, uint64_t n, enum sim_call call)
{
    static const uint64_t counts[] = {1, SIM_FOREVER, 2};
    char where[32];
    snprintf(where, sizeof where, "%s, call", sim_call_name(call));
    for (enum sim_fault_kind kind = SIM_FAULT_EIO; kind < SIM_FAULT_MEMORY; kind++) {
        /* What only has to be tried again leaves nothing to lose; and two are no more than one. */
        bool mild = kind == SIM_FAULT_EINTR || kind == SIM_FAULT_SHORT;
        int ways = !sim_fault_fits(kind, call) ? 0 : mild || !sweep->twice ? 2 : 3;
        for (int i = 0; i < ways; i++) {
            struct sim_fault fault = {kind, n, counts[i]};
            one_case(sweep, &fault, where, false);
            if (!mild && !sweep->reads)
                one_case(sweep, &fault, where, true);
        }
    }
}

void sim_sweep(const struct sim_sweep *sweep)
{
    static const struct sim_fault none;
    static struct sim_census census;
    uint64_t before = cases;
    sim_scene(0, "%s, nothing failing", sweep->name);
    sweep->run(sweep->op, &none, false, &census);
    CHECK(census.calls && census.calls <= SIM_TRACE_MAX);
    for (uint64_t n = 1; n <= census.calls; n++)
        sweep_call(sweep, n, census.trace[n - 1]);
    for (uint64_t n = 1; n <= census.allocs; n++) {
        one_case(sweep, &(struct sim_fault){SIM_FAULT_MEMORY, n, 1}, "allocation", false);
        one_case(sweep, &(struct sim_fault){SIM_FAULT_MEMORY, n, SIM_FOREVER}, "allocation", true);
    }
    printf("ok %s: %llu cases\n", sweep->name, (unsigned long long)(cases - before));
    fflush(stdout);
}

void sim_every_cut(uint64_t draws, uint64_t (*cut)(uint64_t calls, uint64_t seed))
{
    sim_scene(0, "the fixed story, cut after its end");
    uint64_t calls = cut(SIM_FOREVER, 1), number = 1000000; /* smaller ones are random stories' */
    for (uint64_t n = 0; n <= calls; n++)
        for (uint64_t draw = 0; draw < draws; draw++) {
            if (!sim_case_wanted(++number, 1))
                continue;
            sim_scene(number, "the fixed story, cut after call %llu, draw %llu",
                      (unsigned long long)n, (unsigned long long)draw);
            cut(n, number);
        }
    printf("%llu points\n", (unsigned long long)calls + 1);
}

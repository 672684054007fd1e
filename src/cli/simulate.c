/* simulate.c - see simulate.h: sums and sentences. */
#include "cli/simulate.h"

#include <math.h>

#include "plan/answer.h"
#include "plan/save.h"

const char *const simulate_part_names[SIMULATE_PARTS] = {"training", "lost work", "reading",
                                                         "checkpoints", "restarts"};

const char *simulate_cause_name(enum weir_sim_cause cause)
{
    static const char *const names[WEIR_SIM_CAUSES] = {
        [WEIR_SIM_COMPUTE] = "compute",
        [WEIR_SIM_READ] = "read",
        [WEIR_SIM_QUEUE] = "too many saves under way",
        [WEIR_SIM_STAGE] = "no memory for the snapshot",
        [WEIR_SIM_COPY] = "snapshot",
        [WEIR_SIM_WRITE] = "synchronous write",
        [WEIR_SIM_DETECT] = "until a failure is noticed",
        [WEIR_SIM_SPARE] = "no spare node",
        [WEIR_SIM_LAUNCH] = "processes start",
        [WEIR_SIM_LOAD] = "loading",
    };
    return names[cause];
}

/* ---- sums ---- */

void simulate_bin(double part[SIMULATE_PARTS], const struct weir_sim_sum *sum)
{
    double all_s = weir_sim_time_of(sum, WEIR_SIM_COMPUTE, WEIR_SIM_CAUSES);
    double each = all_s > 0 ? 1 / all_s : 0;
    part[SIMULATE_GOOD] = (sum->time_s[WEIR_SIM_COMPUTE] - sum->lost_s) * each;
    part[SIMULATE_LOST] = sum->lost_s * each;
    part[SIMULATE_READ] = sum->time_s[WEIR_SIM_READ] * each;
    part[SIMULATE_SAVE] = weir_sim_time_of(sum, WEIR_SIM_SAVE_FIRST, WEIR_SIM_RESTART_FIRST) * each;
    part[SIMULATE_RESTART] = weir_sim_time_of(sum, WEIR_SIM_RESTART_FIRST, WEIR_SIM_CAUSES) * each;
}

void simulate_add(struct simulate_case *one, const struct weir_sim_result *result, int run)
{
    double part[SIMULATE_PARTS];
    simulate_bin(part, &result->sum);
    double good = part[SIMULATE_GOOD];
    one->good_min = run && one->good_min < good ? one->good_min : good;
    one->good_max = run && one->good_max > good ? one->good_max : good;
    one->good_sd += good * good;
    for (int i = 0; i < SIMULATE_PARTS; i++)
        one->part[i] += part[i];
    for (int i = 0; i < WEIR_SIM_CAUSES; i++)
        one->cause[i] += result->time_s > 0 ? result->sum.time_s[i] / result->time_s : 0;
    for (int i = 0; i < WEIR_SIM_TIERS_MAX; i++) {
        one->read_bytes[i] += result->sum.read_bytes[i];
        one->written_bytes[i] += result->sum.written_bytes[i];
        one->restarts[i] += result->levels[i].restarts;
        one->complete[i] += result->levels[i].saves;
    }
    one->saves += result->saves;
    one->failures += result->failures;
    one->losses += result->losses;
    one->scratch += result->scratch;
    one->steps += result->steps;
    one->time_s += result->time_s;
    one->cliff_s += result->cliff_s;
    one->events += result->events;
    if (!run)
        one->first = *result;
}

void simulate_end(struct simulate_case *one, int runs)
{
    double *sums[] = {&one->saves, &one->failures, &one->losses,  &one->scratch,
                      &one->steps, &one->time_s,   &one->cliff_s, &one->good_sd};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++)
        *sums[i] /= runs;
    for (int i = 0; i < SIMULATE_PARTS; i++)
        one->part[i] /= runs;
    for (int i = 0; i < WEIR_SIM_CAUSES; i++)
        one->cause[i] /= runs;
    for (int i = 0; i < WEIR_SIM_TIERS_MAX; i++) {
        one->read_bytes[i] /= runs;
        one->written_bytes[i] /= runs;
        one->restarts[i] /= runs;
        one->complete[i] /= runs;
    }
    double good = one->part[SIMULATE_GOOD], variance = one->good_sd - good * good;
    one->good_sd = runs > 1 && variance > 0 ? sqrt(variance * runs / (runs - 1)) : 0;
}

/* ---- sentences ---- */

static const char *say(enum weir_plan_unit unit, double value)
{
    return weir_plan_say(unit, value);
}

const char *simulate_job(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim)
{
    const struct weir_sim_setup *setup = &sim->setup;
    int used = snprintf(out, SIMULATE_TEXT_BYTES, "%s GPU%s on %s node%s, steps of %s",
                        say(WEIR_PLAN_COUNT, (double)sim->in->gpus), sim->in->gpus == 1 ? "" : "s",
                        say(WEIR_PLAN_COUNT, setup->nodes), setup->nodes > 1 ? "s" : "",
                        say(WEIR_PLAN_S, setup->step_s));
    if (setup->batch_bytes > 0)
        snprintf(out + used, SIMULATE_TEXT_BYTES - (size_t)used,
                 ", a batch of %s for each GPU from %s, %s ahead",
                 say(WEIR_PLAN_BYTES, setup->batch_bytes), setup->tiers[setup->data_tier].name,
                 say(WEIR_PLAN_COUNT, setup->prefetch));
    return out;
}

const char *simulate_saves(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim)
{
    const struct weir_sim_setup *setup = &sim->setup;
    const struct simulate_case *best = &sim->cases[sim->best];
    if (!setup->save_tier_count) {
        snprintf(out, SIMULATE_TEXT_BYTES, "none");
        return out;
    }
    int used =
        snprintf(out, SIMULATE_TEXT_BYTES, "%s every ", say(WEIR_PLAN_BYTES, setup->save_bytes));
    used += snprintf(out + used, SIMULATE_TEXT_BYTES - (size_t)used,
                     setup->save_steps > 0 ? "%s steps" : "%s",
                     setup->save_steps > 0 ? say(WEIR_PLAN_COUNT, setup->save_steps)
                                           : say(WEIR_PLAN_S, best->interval_s));
    used += snprintf(out + used, SIMULATE_TEXT_BYTES - (size_t)used, ", %s to %s",
                     setup->is_sync ? "synchronously" : "in the background",
                     setup->tiers[setup->save_tiers[0]].name);
    for (int i = 1; i < setup->save_tier_count; i++)
        used += snprintf(out + used, SIMULATE_TEXT_BYTES - (size_t)used, ", then %s",
                         setup->tiers[setup->save_tiers[i]].name);
    return out;
}

const char *simulate_failures(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim)
{
    const struct weir_sim_setup *setup = &sim->setup;
    if (setup->mtbf_s <= 0)
        snprintf(out, SIMULATE_TEXT_BYTES, "none");
    else
        snprintf(out, SIMULATE_TEXT_BYTES,
                 "a node every %s, so the job every %s; %.3g %% of them take the node",
                 say(WEIR_PLAN_S, setup->mtbf_s), say(WEIR_PLAN_S, setup->mtbf_s / setup->nodes),
                 100 * setup->loss_share);
    return out;
}

const char *simulate_assumed(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim)
{
    if (!weir_sim_plan_assumes_rate(&sim->setup, sim->in))
        return NULL;
    snprintf(out, SIMULATE_TEXT_BYTES,
             "checkpoints are read from the shared storage at %s (--read-rate was not told)",
             say(WEIR_PLAN_BYTES_PER_S, sim->setup.tiers[WEIR_SIM_SHARED].read_all));
    return out;
}

/* Of each cause, what would make it less. */
static const char *remedy(const struct simulate *sim, int cause)
{
    switch (cause) {
    case WEIR_SIM_READ:
        return "faster storage for the data, a tier nearer to the GPUs (--data-on), or more "
               "readers (--workers) if it is the latency";
    case WEIR_SIM_QUEUE:
    case WEIR_SIM_STAGE:
        return "saves take longer to write than the time between them: more write bandwidth, a "
               "longer interval, or a nearer tier first (--save-to)";
    case WEIR_SIM_COPY:
        return "a faster snapshot (--snapshot-rate), or a longer interval";
    case WEIR_SIM_WRITE:
        return sim->setup.save_tiers[0] == WEIR_SIM_NVME
                   ? "save in the background (without --sync)"
                   : "save in the background (without --sync), or to nvme first";
    case WEIR_SIM_SPARE:
        return "more spare nodes, or faster repairs";
    case WEIR_SIM_LOAD:
        return "more read bandwidth where checkpoints are loaded from";
    case WEIR_SIM_DETECT:
    case WEIR_SIM_LAUNCH:
        return "faster restarts: what the job does before it loads";
    default:
        return "a shorter interval, if saves cost little";
    }
}

const char *simulate_advice(char out[SIMULATE_TEXT_BYTES], const struct simulate *sim)
{
    const struct simulate_case *best = &sim->cases[sim->best];
    int most = WEIR_SIM_COMPUTE; /* stands for what was lost */
    double share = best->part[SIMULATE_LOST];
    for (int i = WEIR_SIM_READ; i < WEIR_SIM_CAUSES; i++)
        if (best->cause[i] > share) {
            share = best->cause[i];
            most = i;
        }
    if (share < 0.0005)
        snprintf(out, SIMULATE_TEXT_BYTES, "nothing costs more than %s of the time",
                 say(WEIR_PLAN_SHARE, 0.0005));
    else
        snprintf(out, SIMULATE_TEXT_BYTES, "%s, %s of the time; what helps: %s",
                 most == WEIR_SIM_COMPUTE ? "work that failures undid"
                 : most == WEIR_SIM_READ  ? "waiting for batches"
                                          : simulate_cause_name((enum weir_sim_cause)most),
                 say(WEIR_PLAN_SHARE, share), remedy(sim, most));
    return out;
}

/* sim_net.c - see sim_net.h. All rates rise together from zero; whoever meets a bound stays there,
 * and the others rise on. Each round stops one flow at least, so there are few.
 */
#include "plan/sim_net.h"

#include <assert.h>

int weir_sim_net_pipe(struct sim_net *net, double rate, bool is_shared)
{
    if (rate <= 0)
        return -1;
    assert(net->pipe_count < SIM_PIPES_MAX);
    net->pipes[net->pipe_count] = (struct sim_pipe){.rate = rate, .is_shared = is_shared};
    return net->pipe_count++;
}

int weir_sim_net_flow(struct sim_net *net, double members)
{
    assert(net->flow_count < SIM_FLOWS_MAX && members > 0);
    net->flows[net->flow_count] = (struct sim_flow){.members = members, .limit = -1};
    return net->flow_count++;
}

void weir_sim_net_cross(struct sim_net *net, int flow, int pipe)
{
    struct sim_flow *f = &net->flows[flow];
    if (pipe < 0)
        return;
    assert(f->pipe_count < SIM_FLOW_PIPES_MAX);
    f->pipes[f->pipe_count++] = pipe;
}

static bool crosses(const struct sim_flow *flow, int pipe)
{
    for (int i = 0; i < flow->pipe_count; i++)
        if (flow->pipes[i] == pipe)
            return true;
    return false;
}

/* The rate at which this pipe is full, if all that still rise in it had it. */
static double full_at(const struct sim_net *net, int pipe, const bool *is_rising)
{
    const struct sim_pipe *p = &net->pipes[pipe];
    double left = p->rate, rising = 0;
    for (int i = 0; i < net->flow_count; i++) {
        const struct sim_flow *flow = &net->flows[i];
        double members = p->is_shared ? flow->members : 1;
        if (!flow->is_active || !crosses(flow, pipe))
            continue;
        if (is_rising[i])
            rising += members;
        else
            left -= flow->rate * members;
    }
    if (rising <= 0)
        return SIM_RATE_MAX;
    return left > 0 ? left / rising : 0;
}

/* The next bound that the flow itself meets. */
static double bound_of(const struct sim_flow *flow, const double *full)
{
    double bound = flow->limit < 0 ? SIM_RATE_MAX : flow->limit;
    for (int i = 0; i < flow->pipe_count; i++)
        bound = full[flow->pipes[i]] < bound ? full[flow->pipes[i]] : bound;
    return bound;
}

void weir_sim_net_share(struct sim_net *net)
{
    bool is_rising[SIM_FLOWS_MAX];
    double full[SIM_PIPES_MAX];
    int rising = 0;
    for (int i = 0; i < net->flow_count; i++) {
        is_rising[i] = net->flows[i].is_active;
        net->flows[i].rate = 0;
        rising += is_rising[i];
    }
    while (rising) {
        double level = SIM_RATE_MAX;
        for (int p = 0; p < net->pipe_count; p++)
            full[p] = full_at(net, p, is_rising);
        for (int i = 0; i < net->flow_count; i++)
            if (is_rising[i] && bound_of(&net->flows[i], full) < level)
                level = bound_of(&net->flows[i], full);
        for (int i = 0; i < net->flow_count; i++)
            if (is_rising[i] && bound_of(&net->flows[i], full) <= level) {
                net->flows[i].rate = level;
                is_rising[i] = false;
                rising--;
            }
    }
}

double weir_sim_net_alone(const struct sim_net *net, int flow, double members)
{
    double rate = SIM_RATE_MAX;
    for (int i = 0; i < net->flows[flow].pipe_count; i++) {
        const struct sim_pipe *pipe = &net->pipes[net->flows[flow].pipes[i]];
        double share = pipe->is_shared ? pipe->rate / members : pipe->rate;
        rate = share < rate ? share : rate;
    }
    return rate;
}

/* sim_net.h - transfers that share pipes. A flow is what many members do alike, each over the same
 * kinds of pipes: one of its own (a node's disk), or one that all of them share (a file system).
 * Every member gets as much as any other that waits at the same pipe (max-min fairness), unless its
 * own limit is less. Pure.
 */
#ifndef WEIR_PLAN_SIM_NET_H
#define WEIR_PLAN_SIM_NET_H

#include <stdbool.h>

enum { SIM_PIPES_MAX = 24, SIM_FLOWS_MAX = 12, SIM_FLOW_PIPES_MAX = 8 };

struct sim_pipe {
    double rate;
    bool is_shared; /* by all members of all flows; else each member has one */
};

struct sim_flow {
    double members;
    double limit; /* of each member; < 0: none */
    bool is_active;
    int pipes[SIM_FLOW_PIPES_MAX], pipe_count;
    double rate; /* of each member: what sim_net_share() found */
};

struct sim_net {
    struct sim_pipe pipes[SIM_PIPES_MAX];
    int pipe_count;
    struct sim_flow flows[SIM_FLOWS_MAX];
    int flow_count;
};

/* A rate of 0 is no bound: answers -1, which the next takes for nothing to add. */
int weir_sim_net_pipe(struct sim_net *net, double rate, bool is_shared);
int weir_sim_net_flow(struct sim_net *net, double members);
void weir_sim_net_cross(struct sim_net *net, int flow, int pipe);
/* Sets the rate of every flow. One that nothing bounds is SIM_RATE_MAX. */
void weir_sim_net_share(struct sim_net *net);
/* What each member would get if no other flow were there. */
double weir_sim_net_alone(const struct sim_net *net, int flow, double members);

#define SIM_RATE_MAX 1e30

#endif

/* read.h - how fast a job must read, and how deep it must prefetch. Pure functions; rates are of
 * the whole job unless they say otherwise.
 */
#ifndef WEIR_PLAN_READ_H
#define WEIR_PLAN_READ_H

/* gpus times what each of them consumes (tokens, samples, batches a second, of so many bytes), at
 * the share of its time in which a GPU computes. */
double weir_plan_read_bytes_per_s(double gpus, double units_per_s, double unit_bytes,
                                  double efficiency);
/* A corpus read so many times within a time. */
double weir_plan_corpus_bytes_per_s(double corpus_bytes, double epochs, double over_s);
/* The published rule, 1 GB/s for each 100 TFLOP/s: a bound, never an answer. */
double weir_plan_read_rule_bytes_per_s(double gpus, double gpu_flops);
/* The share of its time a job waits that needs so much and gets so much; reading overlaps. */
double weir_plan_read_stall_share(double need_bytes_per_s, double have_bytes_per_s);
/* Servers of that rate, rounded up. */
double weir_plan_servers(double need_bytes_per_s, double server_bytes_per_s);

double weir_plan_prefetch_bytes(double depth, double workers, double batch_bytes);
/* The share of its time a consumer computes, if `depth` batches are always asked for or ready, each
 * takes latency_s to come, whatever else comes, and a step takes step_s on average, exponentially:
 * 1 - Erlang B, which holds for any distribution of the latency. */
double weir_plan_prefetch_share(double depth, double latency_s, double step_s);
/* The least depth that reaches a share; infinity if more than a million would be needed. */
double weir_plan_prefetch_depth(double share, double latency_s, double step_s);
/* The published percentages for depths 1, 4, 10, 20, as shares; -1 for others. */
double weir_plan_prefetch_published(double depth);
/* Tokens a second and GPU of a dense transformer: 6 operations for a parameter and token. */
double weir_plan_tokens_per_s(double gpu_flops, double flops_share, double parameters);

#endif

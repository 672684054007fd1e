/* commands.h - one of each command; main.c has the table. */
#ifndef WEIR_CLI_COMMANDS_H
#define WEIR_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct command cmd_ckpt_diff, cmd_ckpt_export, cmd_ckpt_import, cmd_ckpt_keep,
    cmd_ckpt_ls, cmd_ckpt_prune, cmd_ckpt_rm, cmd_ckpt_show, cmd_ckpt_verify;
extern const struct command cmd_cat, cmd_gc, cmd_get, cmd_help, cmd_init, cmd_log_ls, cmd_log_show,
    cmd_log_verify, cmd_ls, cmd_put, cmd_rm, cmd_stat, cmd_verify, cmd_version;
/* One a line: they grow. */
extern const struct command cmd_bench;
extern const struct command cmd_data_cat;
extern const struct command cmd_data_index;
extern const struct command cmd_data_ls;
extern const struct command cmd_data_manifest;
extern const struct command cmd_data_pack;
extern const struct command cmd_data_sign;
extern const struct command cmd_data_stats;
extern const struct command cmd_data_stream;
extern const struct command cmd_data_tune;
extern const struct command cmd_data_verify;
extern const struct command cmd_plan_catalog;
extern const struct command cmd_plan_checkpoint;
extern const struct command cmd_plan_cliff;
extern const struct command cmd_plan_cluster;
extern const struct command cmd_plan_cost;
extern const struct command cmd_plan_durability;
extern const struct command cmd_plan_endurance;
extern const struct command cmd_plan_format;
extern const struct command cmd_plan_interval;
extern const struct command cmd_plan_raid;
extern const struct command cmd_plan_read;
extern const struct command cmd_plan_simulate;
extern const struct command cmd_trace;

#endif

/* plan.h - what the commands of `weir plan` share: what they are told, and how an answer is shown.
 * All of them set fields of one struct, since a plan file tells all of it.
 */
#ifndef WEIR_CLI_PLAN_H
#define WEIR_CLI_PLAN_H

#include "cli/cli.h"
#include "plan/answers.h"
#include "util/profile.h"

extern struct weir_plan_in plan_in;

/* clang-format off */
#define PLAN_FROM                                                                                  \
    {"file", 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(file), NULL, "FILE",                                   \
     "a plan: JSON with sections and keys; options count more", 0, 0},                             \
    {"profile", 0, WEIR_OPT_TEXT, WEIR_PLAN_AT(profile), NULL, "FILE",                             \
     "what weir bench --save measured; the plan counts more", 0, 0}
/* clang-format on */

#define PLAN_JSON                                                                                  \
    "question, choice (some), figures: an object of numbers whose names end with their unit "      \
    "(null: never, or no limit), bottleneck, changes and assumptions: arrays of texts, "           \
    "published: "                                                                                  \
    "an array of what, unit, said, is, why"

/* Reads the profile and the plan file, if there are any, into plan_in: what the command line has
 * stays. Mistakes in them are told with file, line and key. */
int plan_read(struct cli *cli);
/* What --profile had; NULL: there was none. */
const struct weir_profile *plan_profile(void);
/* Whether this was told, by whatever, and is no default. */
bool plan_was_told(const struct cli *cli, const char *option);
/* Shows what an ask function returned code for. */
int plan_answer(struct cli *cli, const struct weir_plan_answer *answer, int code);
/* The parts of plan_answer(); not with --quiet or --json. */
void plan_show_question(const struct cli *cli, const struct weir_plan_answer *answer);
void plan_show_figures(const struct cli *cli, const struct weir_plan_answer *answer);
json_t *plan_json(const struct weir_plan_answer *answer);
/* A number, or null if there is none. */
json_t *plan_number_json(double value);

#endif

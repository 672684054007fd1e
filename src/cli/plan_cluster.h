/* plan_cluster.h - the plan of a cluster as tables, JSON and a page with a picture. */
#ifndef WEIR_CLI_PLAN_CLUSTER_H
#define WEIR_CLI_PLAN_CLUSTER_H

#include <jansson.h>
#include <stdio.h>

#include "plan/cluster.h"

/* Tiers, flows and limits on standard output. */
void plan_cluster_show(const struct weir_plan_cluster *cluster);
/* Adds tiers, flows and limits to the document. */
void plan_cluster_json(json_t *doc, const struct weir_plan_cluster *cluster);
/* One HTML page. */
void plan_cluster_page(FILE *out, const struct weir_plan_cluster *cluster,
                       const struct weir_plan_answer *answer);
/* The tiers and what flows between them, as one SVG. */
void plan_cluster_picture(FILE *out, const struct weir_plan_cluster *cluster);

#endif

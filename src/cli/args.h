/* args.h - the command line, read into a struct cli. Options may stand before or after the command
 * and its operands; "--" ends them.
 */
#ifndef WEIR_CLI_ARGS_H
#define WEIR_CLI_ARGS_H

#include "cli/cli.h"

/* Returns 0 or -EINVAL with a text. cli->operands points into argv's order and is freed by the
 * caller; cli->json is right even when this fails. */
int args_read(struct cli *cli, int argc, char **argv);

#endif

/* s3_place.h - where credentials come from: the environment, a profile, a process, a role, a
 * container, an instance. A place is found once (s3_place.c) and asked as often as its credentials
 * end; asking waits, and may be done by one thread at a time. For s3_creds.c only.
 */
#ifndef WEIR_TIER_S3_PLACE_H
#define WEIR_TIER_S3_PLACE_H

#include "tier/s3_creds.h"
#include "tier/s3_fetch.h"
#include "tier/s3_got.h"
#include "util/arena.h"

enum { WEIR_S3_ROLES_MAX = 5 }; /* of which each is assumed by the next: botocore has no limit */

struct weir_s3_place;
/* Gets one set: life_ns is how long it will be good from now on, 0 for ever. A failure has a text
 * that names the place. */
typedef int (*weir_s3_ask)(const struct weir_s3_place *place, const struct weir_s3_try *within,
                           struct weir_s3_got *out, uint64_t *life_ns);

struct weir_s3_place {
    weir_s3_ask ask;               /* NULL: anonymous */
    const char *label;             /* for people */
    const struct weir_s3_got *own; /* of the environment: what it said then */
    const char *profile, *credentials_file, *config_file;
    const char *command; /* of a process */
    /* Of a role. */
    const struct weir_s3_place *source; /* whose keys ask for it; NULL: a token's file says who */
    const char *role, *session, *external_id, *token_file, *sts_endpoint, *region;
    const char *duration_s;
    /* Of a container or an instance. */
    const char *url, *auth, *auth_file;
};

/* A file of the user's: at most max bytes, NUL-terminated; wiped by weir_s3_file_free(). A file
 * that is not there is -ENOENT. */
struct weir_s3_file {
    char *text;
    size_t size;
};
int weir_s3_file_read(struct weir_s3_file *out, const char *path, size_t max);
void weir_s3_file_free(struct weir_s3_file *file);

/* Everything about the user and the machine, as it was when the store was opened. */
struct weir_s3_config {
    struct weir_arena *arena; /* owns what is below, places included */
    struct weir_s3_got *env;  /* wiped with the rest; NULL: not there */
    char *auth;               /* the same */
    struct weir_s3_place *place;
    const char *profile, *credentials_file, *config_file, *ca_file;
    const char *region, *endpoint, *sts_endpoint; /* NULL: nobody says */
    bool profile_asked;                           /* somebody named it: it must be there */
    struct weir_s3_file credentials, settings;    /* while it is being found */
};

/* Finds the place. -EACCES with a text that names what was looked for, and what to do. */
int weir_s3_config_find(struct weir_s3_config *out, const struct weir_s3_creds_options *opts);
/* The text for that: it asks the last place there is, an instance, in vain. */
int weir_s3_nothing_found(const struct weir_s3_config *config);
void weir_s3_config_free(struct weir_s3_config *config);

/* How long a set that ends at until_ns (Unix time) is good where it is now_s; -EACCES if it has
 * ended. */
int weir_s3_life(uint64_t *life_ns, int64_t until_ns, int64_t now_s);

/* A copy in the arena; NULL with a text when there is no memory. */
char *weir_s3_keep(struct weir_s3_config *config, const char *text, size_t size);
/* Of the environment: what is there and not empty. */
const char *weir_s3_env(const char *name);
/* A new place in the arena; NULL with a text. fmt: its label. */
struct weir_s3_place *weir_s3_place_new(struct weir_s3_config *config, weir_s3_ask ask,
                                        const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* The profile's place; 0 with *out NULL if it has none. */
int weir_s3_profile_place(struct weir_s3_place **out, struct weir_s3_config *config,
                          const char *profile, unsigned depth);
/* A value of the profile's, out of either file; 0 with *out NULL if there is none. */
int weir_s3_profile_get(const char **out, struct weir_s3_config *config, const char *profile,
                        const char *name);
/* The places that the environment names; 0 with *out NULL if it does not. */
int weir_s3_env_place(struct weir_s3_place **out, struct weir_s3_config *config);
int weir_s3_container_place(struct weir_s3_place **out, struct weir_s3_config *config);
int weir_s3_instance_place(struct weir_s3_place **out, struct weir_s3_config *config);

/* The kinds. */
int weir_s3_ask_env(const struct weir_s3_place *place, const struct weir_s3_try *within,
                    struct weir_s3_got *out, uint64_t *life_ns);
int weir_s3_ask_profile(const struct weir_s3_place *place, const struct weir_s3_try *within,
                        struct weir_s3_got *out, uint64_t *life_ns);
int weir_s3_ask_process(const struct weir_s3_place *place, const struct weir_s3_try *within,
                        struct weir_s3_got *out, uint64_t *life_ns);
int weir_s3_ask_role(const struct weir_s3_place *place, const struct weir_s3_try *within,
                     struct weir_s3_got *out, uint64_t *life_ns);
int weir_s3_ask_container(const struct weir_s3_place *place, const struct weir_s3_try *within,
                          struct weir_s3_got *out, uint64_t *life_ns);
int weir_s3_ask_instance(const struct weir_s3_place *place, const struct weir_s3_try *within,
                         struct weir_s3_got *out, uint64_t *life_ns);

#endif

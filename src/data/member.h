/* member.h - a field of a sample as a file of its own: in a tar (wds_write.c), or in a tree
 * (files_write.c). Its name is the sample's key, a dot and the field's name, with an ending behind
 * it where its kind needs one: in a tar, what is text, a whole number, JSON or an array reads as
 * that again.
 * Slashes in a field's name become dots, letters small ones.
 */
#ifndef WEIR_DATA_MEMBER_H
#define WEIR_DATA_MEMBER_H

#include "data/format.h"
#include "data/tar.h"

/* Of one sample after the other. */
struct weir_members {
    struct weir_growing content; /* of one, where it is made */
    struct weir_growing taken;   /* the names of those before it: u16 length and text */
    size_t key_size, name_size;
    char key[WEIR_TAR_NAME_MAX];
    char name[WEIR_TAR_NAME_MAX];
};

void weir_members_free(struct weir_members *m);
/* The path of a sample that was a plain file, by its fields; NULL. Members of a tar, which have a
 * key and are bytes, are none, whatever they are called. */
const struct weir_field *weir_member_path(const struct weir_field *fields, uint32_t count,
                                          bool has_key);
/* The next sample. Its key is set by the caller, in m->key. */
void weir_members_begin(struct weir_members *m);
/* Has it any yet? */
bool weir_members_any(const struct weir_members *m);
/* The name of that field's file into m->name. `as`: the field's name, or what stands for it;
 * -EINVAL if it can be none, or is another field's. */
int weir_member_name(struct weir_members *m, const struct weir_field *field, const char *as,
                     size_t as_size);
/* The same with the whole name, as it shall be. */
int weir_member_name_whole(struct weir_members *m, const struct weir_field *field, const char *name,
                           size_t size);
/* What the file holds: the field's own bytes, or some that are made, until the next call. */
int weir_member_content(struct weir_members *m, const struct weir_field *field, const void **data,
                        size_t *size);
/* -EINVAL: field 'x' <why>. */
int weir_member_refuse(const struct weir_field *field, const char *why);

#endif

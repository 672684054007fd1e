/* within.h - which store a path lies in. A directory below a store's is read through that store, so
 * that its seals are found; any other directory is a plain one, and read by itself.
 */
#ifndef WEIR_STORE_WITHIN_H
#define WEIR_STORE_WITHIN_H

struct weir_within {
    char *store_url; /* to open it */
    char *place;     /* the same wherever one stands: the absolute path, or the URL */
    char *prefix;    /* of the keys there: "" or "a/b/" */
    char *only;      /* the path was one file: its name behind the prefix; or NULL */
};

/* url: as weir_store_open() takes it. -ENOENT if nothing is there. */
int weir_within_find(struct weir_within *out, const char *url);
void weir_within_free(struct weir_within *within);

#endif

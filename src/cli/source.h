/* source.h - a local file, or standard input, whose bytes are to be stored. */
#ifndef WEIR_CLI_SOURCE_H
#define WEIR_CLI_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct source {
    const char *path; /* borrowed; "-" is standard input */
    int fd;
    struct stat st; /* when it was opened */
    bool plain;     /* a plain file: it has a size, and can be read again */
};

/* Opens for reading. */
int source_open(struct source *source, const char *path);
/* Reads at most size bytes; *got is 0 at the end. -EINTR when asked to stop. */
int source_read(struct source *source, void *buf, size_t size, size_t *got);
/* To the beginning again; -ESPIPE if it is a stream. */
int source_rewind(struct source *source);
/* 0, or -ESTALE if the file was written to since it was opened. */
int source_check(const struct source *source);
void source_close(struct source *source);

#endif

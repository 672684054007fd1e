/* read_files.c - bench-read-files DIR THREADS: every file below a directory is read to its end,
 * once, by so many threads, and forgotten. What a plain reader gets, for data_pack.py: no process
 * is started for it, nothing is copied on.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/team.h"

enum { BUFFER_BYTES = 1 << 20 };

static char **names;
static size_t count, room;

static void add(char *name)
{
    if (count == room) {
        room = room ? 2 * room : 1024;
        names = realloc(names, room * sizeof *names);
        if (!names)
            err(1, "names");
    }
    names[count++] = name;
}

/* Directories are few: a call for each level is no matter here. */
static void walk(const char *path)
{
    struct dirent *entry;
    DIR *dir = opendir(path);
    if (!dir)
        err(1, "%s", path);
    while ((entry = readdir(dir))) {
        char *name;
        if (entry->d_name[0] == '.')
            continue;
        if (asprintf(&name, "%s/%s", path, entry->d_name) < 0)
            err(1, "%s", path);
        if (entry->d_type != DT_DIR) {
            add(name);
            continue;
        }
        walk(name);
        free(name);
    }
    closedir(dir);
}

static int read_one(void *arg, uint64_t i)
{
    static _Thread_local char *buf;
    ssize_t got;
    (void)arg;
    if (!buf && !(buf = malloc(BUFFER_BYTES)))
        err(1, "buffer");
    int fd = open(names[i], O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        err(1, "%s", names[i]);
    while ((got = read(fd, buf, BUFFER_BYTES)) > 0)
        ;
    if (got < 0)
        err(1, "%s", names[i]);
    close(fd);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        errx(2, "usage: bench-read-files DIR THREADS");
    walk(argv[1]);
    if (count)
        qsort(names, count, sizeof *names, by_name);
    return weir_team_run((uint32_t)atoi(argv[2]), count, read_one, NULL) ? 1 : 0;
}

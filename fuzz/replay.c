/* replay.c - a main() for a fuzz target: runs it over files, and over the files of directories, as
 * the normal test run does with the corpus. An empty corpus is a failure.
 */
#include <dirent.h>

#include "target.h"

static unsigned ran;

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    PROMISE(file);
    size_t room = 1 << 16, size = 0;
    uint8_t *data = malloc(room);
    for (size_t n; data && (n = fread(data + size, 1, room - size, file)) > 0;) {
        size += n;
        if (size == room)
            data = realloc(data, room *= 2);
    }
    PROMISE(data);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    ran++;
}

static void run_path(const char *path)
{
    DIR *dir = opendir(path);
    if (!dir) {
        run_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(dir));) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            run_file(name);
    }
    closedir(dir);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        run_path(argv[i]);
    printf("%u inputs\n", ran);
    return ran ? 0 : 1;
}

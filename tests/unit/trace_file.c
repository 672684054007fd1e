/* A path is a name, not a file: what was removed, truncated or renamed over is another one. */
#include "traces.h"

/* What is in a new file was not read before, whatever its name is; what was renamed was. */
static void new_files(void)
{
#define READ(name)                                                                                 \
    "1 openat(AT_FDCWD, \"" name "\", O_RDONLY) = 3\n"                                             \
    "1 read(3, \"\"..., 100) = 100\n"
#define MAKE(name, flags) "1 openat(AT_FDCWD, \"" name "\", O_WRONLY|O_CREAT" flags ") = 4\n"
    static const struct {
        const char *log;
        uint64_t again, size;
    } cases[] = {
        {READ("/d/a") READ("/d/a"), 100, 100},
        {READ("/d/a") MAKE("/d/a", "") READ("/d/a"), 100, 100},
        {READ("/d/a") MAKE("/d/a", "|O_TRUNC"), 0, 0},
        {READ("/d/a") MAKE("/d/a", "|O_TRUNC") READ("/d/a"), 0, 100},
        {READ("/d/a") "1 unlink(\"/d/a\") = 0\n", 0, 100},
        {READ("/d/a") "1 unlink(\"/d/a\") = 0\n1 pread64(3, \"\"..., 100, 0) = 100\n", 100, 100},
        {READ("/d/a") "1 unlink(\"/d/a\") = 0\n1 fstat(3, {st_size=100}) = 0\n" READ("/d/a"), 0,
         100},
        {READ("/d/a") "1 unlink(\"/d/a\") = 0\n" MAKE("/d/a", ""), 0, 0},
        {READ("/d/a") "1 unlink(\"/d/a\") = 0\n1 stat(\"/d/a\", {st_mode=S_IFREG|0644, "
                      "st_size=50}) = 0\n",
         0, 50},
        {READ("/d/a")
             MAKE("/d/t", "") "1 write(4, \"\"..., 50) = 50\n1 rename(\"/d/t\", \"/d/a\") "
                              "= 0\n1 pread64(3, \"\"..., 0, 0) = 0\n1 openat(AT_FDCWD, \"/d/a\", "
                              "O_RDONLY) = 3\n1 read(3, \"\"..., 100) = 50\n",
         0, 50},
        {READ("/d/a") "1 rename(\"/elsewhere\", \"/d/a\") = 0\n" READ("/d/a"), 0, 100},
        {READ("/d/t") "1 rename(\"/d/t\", \"/d/a\") = 0\n" READ("/d/a"), 100, 100},
        {READ("/d/a") "1 rename(\"/d/a\", \"/d/a\") = 0\n" READ("/d/a"), 100, 100},
        {READ("/d/a") "1 ftruncate(3, 0) = 0\n", 0, 0},
        {READ("/d/a") "1 ftruncate(3, 0) = -1 EINVAL (Invalid argument)\n", 0, 100},
        {READ("/d/a") "1 ftruncate(3, 0) = 0\n" READ("/d/a"), 0, 100},
        {READ("/d/a") "1 truncate(\"/d/a\", 0) = 0\n" READ("/d/a"), 0, 100},
        {READ("/d/a") "1 ftruncate(3, 4000) = 0\n" READ("/d/a"), 100, 4000},
        {READ("/d/a") "1 fallocate(3, 0, 1000, 500) = 0\n", 0, 1500},
        {READ("/d/a") "1 fallocate(3, FALLOC_FL_KEEP_SIZE, 1000, 500) = 0\n", 0, 100},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        feed(cases[i].log);
        if ((uint64_t)trace->pages.again_bytes != cases[i].again ||
            file("/d/a")->size_bytes != cases[i].size)
            fprintf(stderr, "%s", cases[i].log);
        CHECK_EQ((uint64_t)trace->pages.again_bytes, cases[i].again);
        CHECK_EQ(file("/d/a")->size_bytes, cases[i].size);
        done();
    }
}

int main(void)
{
    RUN(new_files);
    return TEST_RESULT;
}

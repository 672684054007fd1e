/* A log of system calls becomes the accounts of files: lines in all the forms that strace has,
 * descriptors that are copied, shared, inherited and closed, positions, re-reads, bursts.
 */
#include "trace/path.h"
#include "traces.h"

/* ---- words and lines ---- */

static struct weir_span span(const char *text)
{
    return (struct weir_span){text, text + strlen(text)};
}

static void words(void)
{
    char out[16];
    int64_t number;
    struct weir_span args = span("3</a,(b>, \"x, \\\"y)\"..., {a=[1, 2], b=3}, 0x10"), one;
    CHECK(weir_span_argument(&args, &one) && weir_span_is(one, "3</a,(b>"));
    CHECK(weir_span_fd(one, &number, out, sizeof out) && number == 3 && !strcmp(out, "/a,(b"));
    CHECK(weir_span_argument(&args, &one) && weir_span_quoted(one, out, sizeof out) == 6);
    CHECK(!strcmp(out, "x, \"y)"));
    CHECK(weir_span_argument(&args, &one) && weir_span_member(one, "b", &one));
    CHECK(weir_span_is(one, "3"));
    CHECK(weir_span_argument(&args, &one) && weir_span_int(one, &number) && number == 16);
    CHECK(!weir_span_argument(&args, &one));
    CHECK(weir_span_quoted(span("\"a\\tb\\101\\x41\\0z\""), out, sizeof out) == 5);
    CHECK(!strcmp(out, "a\tbAA"));
    CHECK(weir_span_quoted(span("\"0123456789abcdefgh\""), out, sizeof out) == 15);
    CHECK(weir_span_quoted(span("\"no end"), out, sizeof out) < 0);
    CHECK(!weir_span_int(span("0x"), &number) &&
          !weir_span_int(span("99999999999999999999"), &number));
    CHECK(weir_span_fd(span("AT_FDCWD</tmp>"), &number, out, sizeof out));
    CHECK(number == WEIR_TRACE_CWD && !strcmp(out, "/tmp"));
    CHECK(weir_span_fd(span("4<pipe:[1]>"), &number, out, sizeof out) && number == 4 && !out[0]);
}

static void lines(void)
{
    static struct weir_line line;
    static const struct {
        const char *text;
        enum weir_line_form form;
        enum weir_line_clock clock;
        uint32_t pid;
        int64_t result;
        uint64_t took_ns;
    } cases[] = {
        {"read(3, \"\", 1) = 0", WEIR_LINE_CALL, WEIR_LINE_NO_TIME, 0, 0, 0},
        {"7 read(3, \"\", 1)  = 5 <0.000012>", WEIR_LINE_CALL, WEIR_LINE_NO_TIME, 7, 5, 12000},
        {"[pid    17] read(3, \")\", 1) = 5", WEIR_LINE_CALL, WEIR_LINE_NO_TIME, 17, 5, 0},
        {"17 1794773602.209240 close(3</a) b>) = 0 <1.5>", WEIR_LINE_CALL, WEIR_LINE_UNIX, 17, 0,
         1500000000},
        {"17 12:00:01.25 close(3) = -1 EBADF (Bad file descriptor)", WEIR_LINE_CALL,
         WEIR_LINE_OF_DAY, 17, -1, 0},
        {"     0.000021 close(3) = 0", WEIR_LINE_CALL, WEIR_LINE_SINCE_LAST, 0, 0, 0},
        {"17 exit_group(0) = ?", WEIR_LINE_CALL, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"17 read(3,  <unfinished ...>", WEIR_LINE_BEGUN, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"17 <... read resumed>\"\", 4) = 4", WEIR_LINE_RESUMED, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"17 +++ exited with 0 +++", WEIR_LINE_GONE, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"17 +++ killed by SIGKILL (core dumped) +++", WEIR_LINE_GONE, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"17 --- SIGCHLD {si_signo=SIGCHLD} ---", WEIR_LINE_NOTHING, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"strace: Process 12 attached", WEIR_LINE_NOTHING, WEIR_LINE_NO_TIME, 0, 0, 0},
        {"", WEIR_LINE_NOTHING, WEIR_LINE_NO_TIME, 0, 0, 0},
        {"17 read(3, \"abc", WEIR_LINE_STRANGE, WEIR_LINE_NO_TIME, 17, 0, 0},
        {"any words", WEIR_LINE_STRANGE, WEIR_LINE_NO_TIME, 0, 0, 0},
        {"17 (3) = 4", WEIR_LINE_STRANGE, WEIR_LINE_NO_TIME, 17, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        weir_line_read(&line, cases[i].text, strlen(cases[i].text));
        if (line.form != cases[i].form)
            fprintf(stderr, "%s\n", cases[i].text);
        CHECK_EQ(line.form, cases[i].form);
        CHECK_EQ(line.clock, cases[i].clock);
        CHECK_EQ(line.pid, cases[i].pid);
        CHECK_EQ(line.result, cases[i].result);
        CHECK_EQ(line.took_ns, cases[i].took_ns);
    }
    weir_line_read(&line, "openat(AT_FDCWD, \"a\", O_RDONLY) = 3</b\\76\\n>", 44);
    CHECK_EQ(line.result, 3);
    CHECK(!strcmp(line.result_path, "/b>\n"));
}

static void paths(void)
{
    static const char *const cases[][3] = {
        {"/a/b", "c", "/a/b/c"}, {"/a/b", "../c/./d//e", "/a/c/d/e"},
        {"/a", "/x/../..", "/"}, {"/a", "../../../b", "/b"},
        {"", "x/y", "x/y"},      {"", "../x", "../x"},
        {"/", "x", "/x"},        {"/a", ".", "/a"},
    };
    char out[WEIR_TRACE_PATH_MAX], longest[WEIR_TRACE_PATH_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(weir_trace_path_join(out, cases[i][0], cases[i][1]));
        if (strcmp(out, cases[i][2]))
            fprintf(stderr, "%s + %s is %s\n", cases[i][0], cases[i][1], out);
        CHECK(!strcmp(out, cases[i][2]));
    }
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    CHECK(!weir_trace_path_join(out, "/a", longest));
    CHECK(weir_trace_path_is_program("/usr/lib/libc.so.6") && weir_trace_path_is_program("a.py"));
    CHECK(!weir_trace_path_is_program("/data/usr/x") && !weir_trace_path_is_program("/data/a.jpg"));
}

/* ---- files ---- */

static void one_process(void)
{
    feed("10 100000000.0 execve(\"/bin/x\", [\"x\"], 0x1 /* 3 vars */) = 0 <0.001>\n"
         "10 100000000.1 openat(AT_FDCWD, \"d/a\", O_RDONLY|O_CLOEXEC) = 3 <0.000100>\n"
         "10 100000000.2 newfstatat(3, \"\", {st_mode=S_IFREG|0644, st_size=5000, ...}, "
         "AT_EMPTY_PATH) = 0 <0.000010>\n"
         "10 100000000.3 read(3, \"\"..., 4096) = 4096 <0.000200>\n"
         "10 100000000.4 read(3, \"\"..., 4096) = 904 <0.000050>\n"
         "10 100000000.5 read(3, \"\", 4096) = 0 <0.000010>\n"
         "10 100000000.6 lseek(3, 0, SEEK_SET) = 0 <0.000010>\n"
         "10 100000000.7 read(3, \"\"..., 1000) = 1000 <0.000010>\n"
         "10 100000000.8 pread64(3, \"\"..., 1000, 4000) = 1000 <0.000010>\n"
         "10 100000000.9 close(3) = 0 <0.000010>\n"
         "10 100000001.0 read(3, \"\"..., 77) = 77 <0.000010>\n"
         "10 100000001.1 openat(AT_FDCWD, \"gone\", O_RDONLY) = -1 ENOENT (No such file) <0.1>\n"
         "10 100000001.2 stat(\"/job/here/d/b\", {st_mode=S_IFREG|0644, st_size=70, ...}) = 0\n"
         "10 100000001.3 +++ exited with 0 +++\n");
    struct weir_trace_file *a = file("/job/here/d/a");
    CHECK_EQ(a->opens, 1);
    CHECK_EQ(a->reads, 4);
    CHECK_EQ(a->read_bytes, 7000);
    CHECK_EQ(a->size_bytes, 5000);
    CHECK_EQ(a->jumps, 2); /* back to the beginning, and by pread */
    CHECK_EQ(a->calls, 8);
    CHECK_EQ(a->ns, 100000 + 10000 + 200000 + 50000 + 10000 + 10000 + 10000 + 10000);
    CHECK_EQ(trace->reads_empty, 1);
    CHECK_EQ(trace->reads_first, 1);
    CHECK_EQ(trace->reads_next, 1);
    CHECK_EQ(trace->opens_failed, 1);
    CHECK_EQ((uint64_t)trace->pages.again_bytes, 2000);
    CHECK_EQ(file("/job/here/d/b")->size_bytes, 70);
    CHECK_EQ(trace->data.files, 1);
    CHECK_EQ(trace->data.read_bytes, 7000);
    CHECK_EQ(trace->calls, 13);
    CHECK_EQ(trace->strange, 0);
    CHECK_EQ(weir_timeline_span_ns(&trace->timeline), 1300000000);
    CHECK_EQ(trace->read_sizes.count[13], 1); /* 4096 to 8191 */
    CHECK_EQ(trace->read_sizes.count[10], 3); /* 512 to 1023, and 1000 is one of them */
    done();
}

/* dup and fork share a position; what is opened later is of one process only. */
static void descriptors(void)
{
    feed("10 openat(AT_FDCWD, \"/d/a\", O_RDONLY) = 3\n"
         "10 read(3, \"\"..., 100) = 100\n"
         "10 dup(3) = 4\n"
         "10 read(4, \"\"..., 100) = 100\n"
         "10 fcntl(3, F_DUPFD_CLOEXEC, 5) = 5\n"
         "10 clone(child_stack=NULL, flags=CLONE_CHILD_CLEARTID|SIGCHLD) = 11\n"
         "11 read(3, \"\"..., 100) = 100\n"
         "11 close(3) = 0\n"
         "10 read(3, \"\"..., 100) = 100\n"
         "11 openat(AT_FDCWD, \"/d/b\", O_RDONLY|O_CLOEXEC) = 3\n"
         "11 read(3, \"\"..., 10) = 10\n"
         "11 execve(\"/bin/x\", [\"x\"], 0x1) = 0\n"
         "11 read(3, \"\"..., 10) = 10\n" /* closed by exec: a pipe, say */
         "11 read(5, \"\"..., 10) = 10\n" /* this, too */
         "11 read(4, \"\"..., 100) = 100\n"
         "10 close_range(3, 4, 0) = 0\n"
         "10 read(3, \"\"..., 10) = 10\n"
         "10 read(5, \"\"..., 100) = 100\n"
         "10 dup2(9, 5) = 5\n" /* of which nothing is known */
         "10 read(5, \"\"..., 10) = 10\n");
    CHECK_EQ(file("/d/a")->reads, 6);
    CHECK_EQ(file("/d/a")->jumps, 0);
    CHECK_EQ(file("/d/a")->size_bytes, 600);
    CHECK_EQ(file("/d/b")->reads, 1);
    CHECK_EQ(trace->tasks.total, 2);
    done();
}

/* Threads share all descriptors and the directory they are in; a child's line may come before its
 * parent's clone has returned. */
static void threads(void)
{
    feed("10 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_THREAD, stack=0x1} <unfinished "
         "...>\n"
         "11 openat(AT_FDCWD, \"a\", O_RDONLY <unfinished ...>\n"
         "10 <... clone3 resumed>, 88) = 11\n"
         "10 chdir(\"/d\") = 0\n"
         "11 <... openat resumed>) = 3 <0.5>\n"
         "10 read(3, \"\"..., 100) = 100\n"
         "11 openat(AT_FDCWD, \"b\", O_RDONLY) = 4\n"
         "11 +++ exited with 0 +++\n"
         "10 read(4, \"\"..., 100) = 100\n"
         "11 <... read resumed>) = 3\n");
    CHECK_EQ(trace->tasks.total, 2);
    CHECK_EQ(trace->tasks.threads, 1);
    CHECK_EQ(trace->strange, 1);
    CHECK_EQ(file("/d/a")->reads, 1); /* where it is when the call is whole */
    CHECK_EQ(file("/d/a")->open_ns, 500000000);
    CHECK_EQ(file("/d/b")->reads, 1);
    done();
}

/* With -y, what was opened before the log began is known. */
static void annotated(void)
{
    feed("read(0</data/in put>, \"\"..., 50) = 50\n"
         "read(5<pipe:[77]>, \"\"..., 50) = 50\n"
         "openat(AT_FDCWD</elsewhere>, \"x\", O_RDONLY) = 3</elsewhere/x>\n"
         "mmap(NULL, 8192, PROT_READ, MAP_SHARED, 3</elsewhere/x>, 0) = 0x7f0000000000\n"
         "sendfile(4</data/out>, 3</elsewhere/x>, [100] => [300], 200) = 200\n"
         "copy_file_range(3</elsewhere/x>, NULL, 4</data/out>, [0], 60, 0) = 60\n"
         "openat(3</elsewhere>, \"y\", O_RDONLY) = 6\n");
    CHECK_EQ(file("/data/in put")->read_bytes, 50);
    CHECK_EQ(file("/elsewhere/x")->mapped_bytes, 8192);
    CHECK_EQ(file("/elsewhere/x")->read_bytes, 260);
    CHECK_EQ(file("/data/out")->write_bytes, 260);
    CHECK_EQ(file("/elsewhere/y")->opens, 1);
    CHECK_EQ(trace->data.read_bytes, 310);
    done();
}

/* Two are in a clone at once: the child is of the one whose clone returns with its number, and what
 * strace says of a descriptor counts for more than whom it may have it from. */
static void two_parents(void)
{
#define TWO_CLONES                                                                                 \
    "1 openat(AT_FDCWD, \"/data/one\", O_RDONLY) = 3</data/one>\n"                                 \
    "1 read(3</data/one>, \"\"..., 7) = 7\n"                                                       \
    "1 clone(child_stack=NULL, flags=SIGCHLD) = 2\n"                                               \
    "2 openat(AT_FDCWD, \"/data/two\", O_RDONLY) = 4</data/two>\n"                                 \
    "2 dup2(4</data/two>, 3</data/one>) = 3</data/two>\n"                                          \
    "1 clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>\n"                                   \
    "2 clone(child_stack=NULL, flags=CLONE_FILES|CLONE_THREAD <unfinished ...>\n"
    feed(TWO_CLONES "11 read(3</data/one>, \"\"..., 100) = 100\n");
    CHECK_EQ(file("/data/one")->read_bytes, 107);
    CHECK_EQ(file("/data/two")->read_bytes, 0);
    done();
    feed(TWO_CLONES "11 lseek(5, 0, SEEK_CUR) = 0\n"
                    "1 <... clone resumed>) = 11\n"
                    "2 <... clone resumed>) = 12\n"
                    "11 read(3, \"\"..., 100) = 100\n"
                    "12 read(3, \"\"..., 50) = 50\n");
    CHECK_EQ(file("/data/one")->read_bytes, 107);
    CHECK_EQ(file("/data/one")->jumps, 0); /* it goes on where its parent was */
    CHECK_EQ(file("/data/two")->read_bytes, 50);
    CHECK_EQ(trace->tasks.total, 4);
    CHECK_EQ(trace->tasks.threads, 1);
    done();
}

/* A child may run, also another program, and be gone before its parent's clone returns: it is
 * counted once, and its number may then be another's. */
static void short_lives(void)
{
#define SHORT_LIFE(flags, pid)                                                                     \
    "1 clone(child_stack=NULL, flags=" flags " <unfinished ...>\n" pid                             \
    " openat(AT_FDCWD, \"/data/one\", O_RDONLY) = 3\n" pid " read(3, \"\"..., 10) = 10\n"
#define GONE(pid) pid " +++ exited with 0 +++\n1 <... clone resumed>) = " pid "\n"
    feed(SHORT_LIFE("SIGCHLD", "2") GONE("2")
             SHORT_LIFE("CLONE_VFORK", "3") "3 execve(\"/bin/dd\", [\"dd\"], 0x1) = 0\n" GONE("3")
                 SHORT_LIFE("CLONE_FILES|CLONE_THREAD", "4") GONE("4") SHORT_LIFE("SIGCHLD", "2")
                     GONE("2"));
    CHECK_EQ(trace->tasks.total, 5);
    CHECK_EQ(trace->tasks.threads, 1);
    CHECK_EQ(trace->tasks.lost, 0);
    CHECK_EQ(trace->strange, 0);
    CHECK_EQ(file("/data/one")->opens, 4);
    CHECK_EQ(file("/data/one")->read_bytes, 40);
    done();
    feed(TWO_CLONES "11 read(3, \"\"..., 100) = 100\n"
                    "11 +++ exited with 0 +++\n"
                    "11 <... read resumed>) = 3\n"
                    "1 <... clone resumed>) = 11\n"
                    "2 <... clone resumed>) = 12\n");
    CHECK_EQ(trace->tasks.total, 4);
    CHECK_EQ(trace->tasks.threads, 1); /* taken for the thread at first */
    CHECK_EQ(trace->strange, 1);
    done();
    feed(TWO_CLONES "11 lseek(5, 0, SEEK_CUR) = 0\n"
                    "11 +++ exited with 0 +++\n"
                    "11 lseek(5, 0, SEEK_CUR) = 0\n"
                    "11 +++ exited with 0 +++\n");
    CHECK_EQ(trace->tasks.total, 4); /* two of one number, and no clone that returned */
    done();
}

/* The kernel's name for a file is another one behind a link, and after it was renamed or removed;
 * it stays what it was opened as. */
static void other_names(void)
{
    feed("1 openat(AT_FDCWD, \"/link/a\", O_RDONLY) = 3</real/a>\n"
         "1 read(3</real/a>, \"\"..., 100) = 100\n"
         "1 openat(AT_FDCWD, \"/d/b.tmp\", O_RDWR|O_CREAT) = 4</d/b.tmp>\n"
         "1 write(4</d/b.tmp>, \"\"..., 10) = 10\n"
         "1 rename(\"/d/b.tmp\", \"/d/b\") = 0\n"
         "1 write(4</d/b>, \"\"..., 10) = 10\n"
         "1 read(3</real/a>, \"\"..., 100) = 100\n"
         "1 openat(AT_FDCWD, \"/d/c\", O_RDWR|O_CREAT) = 5</d/c>\n"
         "1 unlink(\"/d/c\") = 0\n"
         "1 write(5</d/c>(deleted), \"\"..., 10) = 10\n");
    CHECK_EQ(file("/link/a")->read_bytes, 200);
    CHECK_EQ(file("/link/a")->jumps, 0);
    CHECK_EQ(file("/d/b.tmp")->write_bytes, 20);
    CHECK_EQ(file("/d/c")->write_bytes, 10);
    CHECK(!weir_trace_file_find(&trace->files, "/real/a"));
    done();
}

/* Names that change places: each has what the other had, and both are there. */
static void swapped(void)
{
    feed("1 openat(AT_FDCWD, \"/d/a\", O_RDONLY) = 3\n"
         "1 read(3, \"\"..., 8192) = 8192\n"
         "1 openat(AT_FDCWD, \"/d/b\", O_WRONLY|O_CREAT|O_TRUNC) = 4\n"
         "1 write(4, \"\"..., 4096) = 4096\n"
         "1 renameat2(AT_FDCWD, \"/d/b\", AT_FDCWD, \"/d/a\", RENAME_EXCHANGE) = 0\n"
         "1 openat(AT_FDCWD, \"/d/b\", O_RDONLY) = 5\n"
         "1 read(5, \"\"..., 8192) = 8192\n"
         "1 openat(AT_FDCWD, \"/d/x\", O_RDONLY) = 6\n"
         "1 read(6, \"\"..., 4096) = 4096\n"
         "1 renameat2(AT_FDCWD, \"/d/x\", AT_FDCWD, \"/d/y\", RENAME_NOREPLACE) = 0\n"
         "1 renameat2(AT_FDCWD, \"/d/p\", AT_FDCWD, \"/d/q\", RENAME_EXCHANGE) = -1 ENOENT (no)\n"
         "1 renameat2(AT_FDCWD, \"/d/p\", AT_FDCWD, \"/d/q\", RENAME_EXCHANGE) = 0\n");
    CHECK_EQ(file("/d/a")->size_bytes, 4096);
    CHECK_EQ(file("/d/b")->size_bytes, 8192);
    CHECK(file("/d/a")->exists && file("/d/b")->exists);
    CHECK(file("/d/a")->dirty && !file("/d/b")->dirty);
    CHECK_EQ(trace->pages.again_bytes, 8192); /* what /d/a had was read again, as /d/b */
    CHECK(!file("/d/x")->exists && file("/d/y")->exists);
    CHECK_EQ(trace->renames, 3);
    CHECK_EQ(trace->renames_unsynced, 1);
    done();
}

/* ---- checkpoints ---- */

#define SAVE(name, sync, rename)                                                                   \
    "10 openat(AT_FDCWD, \"" name "\", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3 <0.1>\n"                \
    "10 write(3, \"\"..., 2000000) = 2000000 <0.1>\n" sync "10 close(3) = 0 <0.1>\n" rename

static void bursts(void)
{
    feed(SAVE("/c/a.tmp", "10 fsync(3) = 0 <0.2>\n",
              "10 rename(\"/c/a.tmp\", \"/c/a\") = 0 <0.1>\n") /* as it should be */
         SAVE("/c/b.tmp", "", "10 renameat(AT_FDCWD, \"/c/b.tmp\", AT_FDCWD, \"/c/b\") = 0\n")
             SAVE("/c/c", "", "") SAVE("/c/c", "", "")         /* over itself */
         SAVE("/e/x/d", "", "10 rename(\"/e\", \"/f\") = 0\n") /* within a directory */
         SAVE("/c/g.tmp", "", "10 sync() = 0\n10 rename(\"/c/g.tmp\", \"/c/g\") = 0\n") SAVE(
             "/c/h.tmp", "",
             "10 openat(AT_FDCWD, \"/c/h.tmp\", O_RDONLY) = 5\n10 fsync(5) = 0\n"
             "10 rename(\"/c/h.tmp\", \"/c/h\") = 0\n") "10 clone(flags=CLONE_FILES|CLONE_THREAD) "
                                                        "= 11\n"
                                                        "11 openat(AT_FDCWD, \"/c/i\", "
                                                        "O_WRONLY|O_SYNC) = 4\n"
                                                        "11 pwrite64(4, \"\"..., 1048576, 0) = "
                                                        "1048576\n"
                                                        "11 rename(\"/c/i\", \"/c/j\") = 0\n"
                                                        "11 openat(AT_FDCWD, \"/c/small\", "
                                                        "O_WRONLY) = 6\n"
                                                        "11 write(6, \"\"..., 10) = 10\n"
                                                        "11 rename(\"/c/small\", \"/c/little\") = "
                                                        "0\n");
    static const struct {
        const char *name;
        bool synced, renamed, is_unsafe, in_place, by_thread;
    } want[] = {
        {"a", true, true, false, false, false},   {"b", false, true, true, false, false},
        {"c", false, false, false, false, false}, {"c", false, false, false, true, false},
        {"d", false, true, true, false, false},   {"g", false, true, false, false, false},
        {"h", true, true, false, false, false},   {"i", true, false, false, false, true},
    };
    CHECK_EQ(trace->burst_count, sizeof want / sizeof want[0]);
    for (size_t i = 0; i < trace->burst_count; i++) {
        const struct weir_trace_burst *b = &trace->bursts[i];
        CHECK(!strcmp(b->final->name, want[i].name));
        CHECK_EQ(b->is_synced, want[i].synced);
        CHECK_EQ(b->is_renamed, want[i].renamed);
        CHECK_EQ(b->is_unsafe, want[i].is_unsafe);
        CHECK_EQ(b->is_in_place, want[i].in_place);
        CHECK_EQ(b->is_thread, want[i].by_thread);
    }
    CHECK_EQ(trace->renames_unsynced, 2); /* b, small; those within a directory are bursts only */
    CHECK_EQ(trace->bursts[0].sync_ns, 200000000);
    done();
}

/* A checkpoint may take the place of the one before it, which is removed then. */
static void bursts_swapped(void)
{
    feed(SAVE("/c/a", "10 fsync(3) = 0\n", "") SAVE(
        "/c/new", "10 fsync(3) = 0\n",
        "10 renameat2(AT_FDCWD, \"/c/new\", AT_FDCWD, \"/c/a\", RENAME_EXCHANGE) = 0\n"
        "10 unlink(\"/c/new\") = 0\n")
             SAVE("/c/new", "",
                  "10 renameat2(AT_FDCWD, \"/c/a\", AT_FDCWD, \"/c/new\", RENAME_EXCHANGE) = 0\n")
                 SAVE("/e/new/d", "",
                      "10 renameat2(AT_FDCWD, \"/e/new\", AT_FDCWD, \"/e/x\", "
                      "RENAME_EXCHANGE) = 0\n"));
    CHECK_EQ(trace->burst_count, 4);
    const struct weir_trace_burst *b = trace->bursts;
    CHECK(!b[0].is_renamed && !strcmp(b[0].final->name, "a"));
    CHECK(b[1].is_renamed && !b[1].is_unsafe && !strcmp(b[1].final->name, "a"));
    CHECK(b[2].is_renamed && b[2].is_unsafe && !strcmp(b[2].final->name, "a"));
    CHECK(b[3].is_renamed && b[3].is_unsafe);
    done();
}

int main(void)
{
    RUN(words);
    RUN(lines);
    RUN(paths);
    RUN(one_process);
    RUN(descriptors);
    RUN(threads);
    RUN(annotated);
    RUN(two_parents);
    RUN(short_lives);
    RUN(other_names);
    RUN(swapped);
    RUN(bursts_swapped);
    RUN(bursts);
    return TEST_RESULT;
}

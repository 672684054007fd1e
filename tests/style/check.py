#!/usr/bin/env python3
"""Checks what a compiler does not: the layers of DESIGN.md and the habits of STYLE.md.

    tests/style/check.py [ROOT]

Prints one line for each problem (FILE:LINE: what) and exits 1 if there is any. Each rule is one
function below; selftest.py feeds every one of them something bad.
"""
import os
import re
import sys

COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 70
PLACES = ("src", "include", "tests", "fuzz", "bench", "tools", "docs", "man", "python", ".ci")
TEXT_ENDINGS = (".c", ".h", ".cc", ".py", ".build", ".md", ".sh", ".txt", ".1", ".toml")
SKIPPED_DIRS = {"corpus", "__pycache__", "results", "node_modules", ".venv"}

# A directory includes only from those before it. Workloads know the store, but neither each other
# nor a tier nor the io layer. The planner only computes.
ORDER = ["util", "io", "tier", "store", "ckpt", "data", "series", "registry", "plan", "trace",
         "measure", "gpu", "serve", "cli"]
WORKLOADS = {"ckpt", "data", "series", "registry"}
COMPUTING = {"plan", "trace"}
# Ones that are gone or yet to come are no problem; one that is not listed here is.

# What goes through the table of src/util/sys.h, so that tests can make it fail.
FILE_CALLS = """open openat openat2 creat close read readv pread preadv pread64 write writev
    pwrite pwritev pwrite64 unlink unlinkat rename renameat renameat2 link linkat symlink symlinkat
    readlink mkdir mkdirat mkdtemp mkstemp rmdir remove stat fstat lstat fstatat statx statvfs
    fstatvfs statfs fstatfs fsync fdatasync sync syncfs sync_file_range truncate ftruncate fallocate
    posix_fallocate posix_fadvise opendir fdopendir readdir closedir scandir getdents64 nftw ftw
    fopen fdopen freopen chmod fchmod chown fchown utimensat futimens access faccessat fcntl flock
    lockf ioctl sendfile copy_file_range splice mincore eventfd syscall""".split()
TIME_AND_CHANCE = "clock_gettime gettimeofday time nanosleep usleep sleep getrandom rand".split()
ALLOCATOR = "malloc calloc realloc reallocarray strdup strndup asprintf vasprintf".split()
TABLE_CALLS = FILE_CALLS + TIME_AND_CHANCE + ALLOCATOR
TABLE_FILES = {"src/util/sys.c": set(TABLE_CALLS), "src/io/uring.c": {"eventfd", "write", "close"},
               "src/tier/s3_process.c": {"read", "close"}}  # a pipe is no file

# Spelled apart, so that this file passes.
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
MACHINE_PATH = re.compile(r"(?<![\w.])/(" + "|".join(["ho" + "me", "ro" + "ot", "wo" + "rk",
                                                      "Us" + "ers"]) + r")/\w")


def strip_c(text):
    """The C text with comments and literals blanked; lines stay where they are."""
    def blank(match):
        word = match.group(0)
        if word[0] in "\"'":
            return word[0] + " " * (len(word) - 2) + word[0]
        return re.sub(r"[^\n]", " ", word)
    pattern = r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\''
    return re.sub(pattern, blank, text, flags=re.S)


def lines_of(text):
    return list(enumerate(text.split("\n"), 1))


def layer_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


def may_include(layer, other):
    if layer == other:
        return True
    if layer in COMPUTING:
        return other == "util"
    if layer == "measure":  # storage, not what is stored
        return other in ("util", "io", "tier")
    if layer in WORKLOADS:
        return other in ("util", "store")
    return ORDER.index(other) < ORDER.index(layer)


def rule_layers(path, text):
    """A directory includes only from those above it; only io knows liburing."""
    layer = layer_of(path)
    if layer is None:
        return
    if layer not in ORDER:
        yield 1, f"src/{layer} is no layer of the design"
        return
    for number, line in lines_of(text):
        found = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
        if not found:
            continue
        name = found.group(2)
        if name.startswith("liburing") and layer != "io":
            yield number, "only src/io includes liburing"
        if found.group(1) == "<" or name == "weir.h":
            continue
        other = name.split("/")[0]
        if "/" not in name or other not in ORDER:
            if layer != "cli" or "/" in name:
                yield number, f'"{name}": includes are written from src/, as "layer/file.h"'
        elif not may_include(layer, other):
            yield number, f"src/{layer} includes from src/{other}, which is not above it"


def rule_system_calls(path, text):
    """Files, time, chance and memory go through the one table."""
    layer = layer_of(path)
    if layer is None or layer == "cli":
        return
    allowed = TABLE_FILES.get(path, set())
    call = re.compile(r"(?<![\w.>])(" + "|".join(TABLE_CALLS) + r")\s*\(")
    for number, line in lines_of(strip_c(text)):
        for found in call.finditer(line):
            if found.group(1) not in allowed:
                yield number, f"{found.group(1)}() goes through weir_sys (src/util/sys.h)"


def rule_functions(path, text):
    """A function fits a screen."""
    begin = None
    for number, line in lines_of(strip_c(text)):
        if line.startswith("{"):
            begin = number
        elif line.startswith("}") and begin:
            if number - begin + 1 > FUNCTION_LINES_MAX:
                yield begin, (f"a function of {number - begin + 1} lines; "
                              f"the limit is {FUNCTION_LINES_MAX}")
            begin = None


def rule_opening_comment(path, text):
    """A file says first what it is."""
    if not text.startswith("/*"):
        yield 1, "a C file opens with a comment that says what it is"


def rule_lines(path, text):
    """Columns, tabs, blanks at the end of lines, one newline at the end of a file."""
    for number, line in lines_of(text):
        if len(line) > COLUMNS_MAX and not path.endswith((".md", ".1", ".txt")):
            yield number, f"{len(line)} columns; the limit is {COLUMNS_MAX}"
        if "\t" in line and os.path.basename(path) != "Makefile":
            yield number, "a tab"
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield text.count("\n") + 1, "a file ends with one newline"


def rule_unfinished(path, text):
    """What is not done is not marked in the code: it is done, or it is an issue."""
    for number, line in lines_of(text):
        found = UNFINISHED.search(line)
        if found:
            yield number, f"'{found.group(1)}'"


def rule_machine_paths(path, text):
    """No path of the machine it was written on."""
    for number, line in lines_of(text):
        found = MACHINE_PATH.search(line)
        if found:
            yield number, f"a path of one machine: '{found.group(0)}…'"


C_RULES = [rule_layers, rule_system_calls, rule_functions, rule_opening_comment]
TEXT_RULES = [rule_lines, rule_unfinished, rule_machine_paths]


def is_script(full):
    with open(full, "rb") as file:
        return file.read(2) == b"#!"


def files_below(root):
    """Paths of the text files that people write, relative to root."""
    for place in PLACES:
        for folder, dirs, names in os.walk(os.path.join(root, place)):
            dirs[:] = sorted(d for d in dirs if d not in SKIPPED_DIRS)
            for name in sorted(names):
                full = os.path.join(folder, name)
                if name.endswith(TEXT_ENDINGS) or ("." not in name and is_script(full)):
                    yield os.path.relpath(full, root)
    for name in sorted(os.listdir(root)):
        if name == "Makefile" or name.endswith(TEXT_ENDINGS):
            yield name


def check_file(path, text):
    """The problems of one file, as (line, what)."""
    rules = TEXT_RULES + (C_RULES if path.endswith((".c", ".h", ".cc")) else [])
    for rule in rules:
        yield from rule(path, text)


def check_tree(root):
    """The problems of a tree, as lines for people; and how many files were looked at."""
    problems, count = [], 0
    for path in files_below(root):
        count += 1
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            text = file.read()
        problems += [f"{path}:{line}: {what}" for line, what in sorted(check_file(path, text))]
    return problems, count


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(here))
    problems, count = check_tree(root)
    for line in problems:
        print(line)
    print(f"{count} files, {len(problems)} problems")
    return 1 if problems or not count else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Feeds check.py one bad file for each of its rules, and good ones: a check that cannot fail is
worth nothing."""
import os
import sys
import tempfile

import check

HEAD = "/* A file. */\n"
LONG_BODY = "    x++;\n" * 69

# path, text, what a problem of it says ("" for a file that is good)
CASES = [
    ("src/io/good.c", HEAD + '#include "util/err.h"\n#include <liburing.h>\n#include "weir.h"\n',
     ""),
    ("src/util/up.c", HEAD + '#include "io/io.h"\n', "not above it"),
    ("src/io/up.c", HEAD + '#include "tier/tier.h"\n', "not above it"),
    ("src/tier/up.c", HEAD + '# include  "store/store.h"\n', "not above it"),
    ("src/store/good.c", HEAD + '#include "tier/tier.h"\n#include "io/io.h"\n', ""),
    ("src/store/ring.c", HEAD + "#include <liburing.h>\n", "only src/io"),
    ("src/ckpt/good.c", HEAD + '#include "store/store.h"\n#include "util/err.h"\n', ""),
    ("src/ckpt/tier.c", HEAD + '#include "tier/tier.h"\n', "not above it"),
    ("src/ckpt/io.c", HEAD + '#include "io/io.h"\n', "not above it"),
    ("src/data/other.c", HEAD + '#include "ckpt/ckpt.h"\n', "not above it"),
    ("src/plan/good.c", HEAD + '#include "util/opt.h"\n', ""),
    ("src/plan/bad.c", HEAD + '#include "io/io.h"\n', "not above it"),
    ("src/measure/good.c", HEAD + '#include "tier/tier.h"\n#include "io/io.h"\n', ""),
    ("src/measure/store.c", HEAD + '#include "store/store.h"\n', "not above it"),
    ("src/gpu/good.c", HEAD + '#include "ckpt/ckpt.h"\n', ""),
    ("src/gpu/up.c", HEAD + '#include "serve/serve.h"\n', "not above it"),
    ("src/cli/good.c", HEAD + '#include "cli/cli.h"\n#include "store/store.h"\nint x = open(1);\n',
     ""),
    ("src/mess/new.c", HEAD, "no layer"),
    ("src/io/relative.c", HEAD + '#include "pool.h"\n', "written from src/"),
    ("src/tier/call.c", HEAD + "void f(void)\n{\n    int fd = open(p, 0);\n}\n", "open() goes"),
    ("src/store/call.c", HEAD + "void f(void)\n{\n    if (unlink (p))\n        g();\n}\n",
     "unlink()"),
    ("src/io/call.c", HEAD + "void f(void)\n{\n    write(fd, p, 1);\n}\n", "write()"),
    ("src/store/time.c", HEAD + "void f(void)\n{\n    clock_gettime(0, &t);\n}\n",
     "clock_gettime()"),
    ("src/store/heap.c", HEAD + "void *f(void)\n{\n    return malloc(1);\n}\n", "malloc()"),
    ("src/io/uring.c", HEAD + "void f(void)\n{\n    write(fd, p, 1);\n    close(fd);\n}\n", ""),
    ("src/util/sys.c", HEAD + "void f(void)\n{\n    fsync(open(p, 0));\n}\n", ""),
    ("src/store/words.c", HEAD + "/* open(2) and link(2) */\nvoid f(void)\n{\n"
     '    weir_sys->open(0);\n    t.close(1);\n    s("open(x)");\n    io_read(1);\n}\n', ""),
    ("tests/unit/call.c", HEAD + "int f(void)\n{\n    return open(p, 0);\n}\n", ""),
    ("src/util/long.c", HEAD + "void f(void)\n{\n" + LONG_BODY + "}\n", "71 lines"),
    ("src/util/fits.c", HEAD + "void f(void)\n{\n" + LONG_BODY[9:] + "}\n", ""),
    ("src/util/table.c", HEAD + "static const int t[] = {\n" + "    1,\n" * 200 + "};\n", ""),
    ("tests/unit/long.c", HEAD + "void f(void)\n{\n" + LONG_BODY + "}\n", "71 lines"),
    ("src/util/bare.c", "#include <stdio.h>\n", "opens with a comment"),
    ("src/util/bare.h", "\n" + HEAD, "opens with a comment"),
    ("src/util/wide.c", HEAD + "int x; // " + "x" * 100 + "\n", "columns"),
    ("src/util/full.c", HEAD + "/* " + "ü" * 94 + " */\n", ""),
    ("src/util/tab.c", HEAD + "\tint x;\n", "a tab"),
    ("src/util/blank.c", HEAD + "int x; \n", "blanks at the end"),
    ("src/util/end.c", HEAD + "int x;", "one newline"),
    ("src/util/ends.c", HEAD + "int x;\n\n", "one newline"),
    ("src/util/later.c", HEAD + "/* TO" + "DO: all of it */\n", "'TO" + "DO'"),
    ("tools/later", "#!/bin/sh\n# FIX" + "ME\n", "'FIX" + "ME'"),
    ("src/util/template.c", HEAD + 'char t[] = "weir-XX' + 'XXXX";\n', ""),
    ("docs/path.md", "see /ho" + "me/someone/weir\n", "one machine"),
    ("bench/path.py", "ROOT = '/wo" + "rk/main'\n", "one machine"),
    ("bench/relative.py", "ROOT = 'our/wo" + "rk/main'\n", ""),
    ("Makefile", "all:\n\techo\n", ""),
    ("fuzz/corpus/x/input.c", "\t \xff TO" + "DO", ""),
]


def problems_of(path, text):
    with tempfile.TemporaryDirectory() as root:
        full = os.path.join(root, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(text)
        return check.check_tree(root)[0]


def main():
    bad = 0
    for path, text, says in CASES:
        found = problems_of(path, text)
        right = len(found) == 1 and says in found[0] and found[0].startswith(path + ":") if says \
            else not found
        if not right:
            bad += 1
            print(f"{path}: wanted {says or 'nothing'!r}, got {found}")
    for rule in check.C_RULES + check.TEXT_RULES:
        if not rule.__doc__:
            bad += 1
            print(f"{rule.__name__} does not say what it is for")
    print(f"{len(CASES)} cases, {bad} wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())

/* test.h - the one harness. A test program is a main() that calls RUN(function) for each case and
 * returns TEST_RESULT. A failed CHECK prints where and ends the program: later cases would only
 * repeat it. Exit 77 means skipped (SKIP prints why).
 */
#ifndef WEIR_TESTS_TEST_H
#define WEIR_TESTS_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/err.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: failed: %s (last text: %s)\n", __FILE__, __LINE__,         \
                    __func__, #condition, weir_fail_last());                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* Two integers, shown when they differ. */
#define CHECK_EQ(a, b)                                                                             \
    do {                                                                                           \
        long long a_ = (long long)(a), b_ = (long long)(b);                                        \
        if (a_ != b_) {                                                                            \
            fprintf(stderr, "%s:%d: %s: %s is %lld, not %lld (last text: %s)\n", __FILE__,         \
                    __LINE__, __func__, #a, a_, b_, weir_fail_last());                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* The call returns 0. */
#define OK(call) CHECK_EQ(call, 0)

#define RUN(function)                                                                              \
    do {                                                                                           \
        function();                                                                                \
        printf("ok %s\n", #function);                                                              \
        fflush(stdout);                                                                            \
    } while (0)

#define SKIP(...)                                                                                  \
    do {                                                                                           \
        printf("SKIP: ");                                                                          \
        printf(__VA_ARGS__);                                                                       \
        printf("\n");                                                                              \
        exit(77);                                                                                  \
    } while (0)

#define TEST_RESULT 0

#endif

/* checkers.h - what memory checkers must be told, because the kernel reads and writes behind their
 * backs. Nothing of it is left in a build that has none.
 */
#ifndef WEIR_IO_CHECKERS_H
#define WEIR_IO_CHECKERS_H

#if defined(__SANITIZE_ADDRESS__)
#define WEIR_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_ASAN 1
#endif
#endif
#ifdef WEIR_ASAN
#include <sanitizer/asan_interface.h>
#endif

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>
#else
#define VALGRIND_CHECK_MEM_IS_ADDRESSABLE(addr, size) ((void)(addr), (void)(size), 0)
#define VALGRIND_CHECK_MEM_IS_DEFINED(addr, size) ((void)(addr), (void)(size), 0)
#define VALGRIND_MAKE_MEM_DEFINED(addr, size) ((void)(addr), (void)(size))
#define RUNNING_ON_VALGRIND 0
#endif

#endif

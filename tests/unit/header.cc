/* header.c as C++11. */
#include "header.c"

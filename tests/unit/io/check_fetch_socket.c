/* The life of fetches that go through libcurl. */
#define THROUGH_LIBCURL true
#include "check_fetch.c"

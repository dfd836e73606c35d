/* Requests to http:// as they arrive, without libcurl. */
#define THROUGH_LIBCURL false
#include "check_fetch_easy.c"

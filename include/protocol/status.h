/* HTTP status codes and their reason phrases (RFC 9110, section 15). */
#ifndef PROTOCOL_STATUS_H
#define PROTOCOL_STATUS_H

/* "Not Found"; "Unknown" for a code without a row. */
const char *status_reason(int status);

#endif

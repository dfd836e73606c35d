/* What the kernel knows about this process. */
#ifndef IO_PROCESS_H
#define IO_PROCESS_H

#include <stdint.h>

/* Memory that is resident; 0 when the kernel does not say. */
uint64_t process_resident_bytes(void);
/* Processor time used since the start, user and system. */
uint64_t process_cpu_ns(void);
/* How many descriptors it may have open, at most INT32_MAX. */
uint64_t process_descriptors_most(void);

#endif

/* Reads files and checksums them as the journal does, and nothing else: what a start over the same
 * bytes cannot do better than.
 *
 *     bench_checksum FILE... */
#include "base/clock.h"
#include "base/hash.h"
#include "base/mem.h"
#include "wire.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CHUNK_BYTES = 1 << 20 };

int main(int argc, char **argv)
{
    uint64_t start_ns = clock_mono_ns();
    char *chunk = mem_alloc(CHUNK_BYTES);
    double bytes = 0;
    uint32_t crc = 0;

    for (int i = 1; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        ssize_t n;

        if (fd < 0)
            wire_fail(argv[i]);
        while ((n = read(fd, chunk, CHUNK_BYTES)) > 0) {
            crc = hash_crc32c(crc, chunk, (size_t)n);
            bytes += (double)n;
        }
        close(fd);
    }
    printf("{\"bytes\": %.0f, \"ms\": %.3f, \"crc\": %u}\n", bytes,
           (double)(clock_mono_ns() - start_ns) / 1e6, crc);
    mem_free(chunk);
    return EXIT_SUCCESS;
}

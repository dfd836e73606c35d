/* The simulation's disk: io/disk.h over ordinary files, in place of src/io/disk.c. Jobs end when
 * the script says, in any order and with any result; a loss of power leaves of what was not made
 * durable any part. Names of files are durable at once (tests/torture/lost_writes.py loses those
 * too). */
#ifndef SIMULATION_DISK_H
#define SIMULATION_DISK_H

#include "io/disk.h"

struct loop;

/* The disks of one loop are those of one machine. */

/* Jobs under way; the one at a place ends now: 0, or a negative errno, and then nothing of it is on
 * the disk. */
size_t sim_disk_jobs(const struct loop *loop);
void sim_disk_finish(const struct loop *loop, size_t place, int result);
/* While it is full no file can be made. */
void sim_disk_set_full(const struct loop *loop, bool is_full);
/* Has everything that was written been made durable? */
bool sim_disk_is_synced(const struct loop *loop);
/* Files become what was durable, and any part of the rest. Jobs under way, and later ones, never
 * end. */
void sim_disk_lose_power(const struct loop *loop);
/* The process is killed, the machine runs on: what was written stays, each job under way is done or
 * not, and later ones never end. */
void sim_disk_kill(const struct loop *loop);

#endif

/* Directories of files, with those in them. */
#ifndef SIMULATION_CLUSTER_DIRECTORIES_H
#define SIMULATION_CLUSTER_DIRECTORIES_H

/* `to` is not there yet. */
void directory_copy(const char *from, const char *to);
/* No harm when it is not there. */
void directory_remove(const char *path);

#endif

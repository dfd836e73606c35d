/* What goes wrong, one thing after another. */
#ifndef SIMULATION_CLUSTER_FAULTS_H
#define SIMULATION_CLUSTER_FAULTS_H

#include <stdint.h>

/* How it goes in this run, by chance. */
void faults_open(void);
/* Something goes wrong, or gets better. */
void faults_strike(void);
/* Everything is well from now on. */
void faults_end(void);
/* Between two of them. */
uint64_t faults_pause_ns(void);
uint64_t faults_count(void);

#endif

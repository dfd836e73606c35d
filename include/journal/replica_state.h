/* What a node's part in the log of a cluster may be, and what may keep it from taking part: see
 * replica.h. */
#ifndef JOURNAL_REPLICA_STATE_H
#define JOURNAL_REPLICA_STATE_H

#include "base/macros.h"

#define REPLICA_ROLES(X)                                                                           \
    X(REPLICA_OFF, "Off")                                                                          \
    X(REPLICA_ENTERING, "Entering")                                                                \
    X(REPLICA_FOLLOWING, "Follower")                                                               \
    X(REPLICA_JOINING, "Joining")                                                                  \
    X(REPLICA_CANDIDATE, "Candidate")                                                              \
    X(REPLICA_TAKING_OVER, "TakingOver")                                                           \
    X(REPLICA_LEADING, "Leader")                                                                   \
    X(REPLICA_ENDING, "Ending")                                                                    \
    X(REPLICA_REFUSED, "Refused")

enum replica_role { REPLICA_ROLES(AS_SYMBOL) REPLICA_ROLE_COUNT };

#define REPLICA_TROUBLES(X)                                                                        \
    X(REPLICA_NO_TROUBLE, "none")                                                                  \
    X(REPLICA_UNREACHABLE, "etcd is not reached")                                                  \
    X(REPLICA_DENIED, "etcd denies access")                                                        \
    X(REPLICA_FULL, "etcd is full")                                                                \
    X(REPLICA_NAME_TAKEN, "the node's name is taken")                                              \
    X(REPLICA_OTHER_HISTORY, "the journal has another history")                                    \
    X(REPLICA_LOG_LOST, "the log in etcd is empty or older than the journal")                      \
    X(REPLICA_DAMAGED, "the log in etcd is damaged")                                               \
    X(REPLICA_MISUSED, "etcd does not take what it is asked")                                      \
    X(REPLICA_OTHER_ETCD, "another etcd answers")

enum replica_trouble { REPLICA_TROUBLES(AS_SYMBOL) };

const char *replica_role_text(enum replica_role role);
const char *replica_trouble_text(enum replica_trouble trouble);

#endif

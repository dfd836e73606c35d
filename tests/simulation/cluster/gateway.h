/* The members of etcd as others see them: their JSON gateway over the one store, watches, and what
 * may go wrong with them: a member is down, or says nothing; there is no quorum. */
#ifndef SIMULATION_CLUSTER_GATEWAY_H
#define SIMULATION_CLUSTER_GATEWAY_H

#include "network.h"

void gateway_open(void);
void gateway_close(void);

/* Does the member take connections? */
bool gateway_is_open(unsigned member);
/* A request has come. */
void gateway_take(struct exchange *x);
/* Nobody reads its watch any more. */
void gateway_forget(struct exchange *x);

/* Whatever has happened is told to those who watch. */
void gateway_tell(void);

enum gateway_state { GATEWAY_OPEN, GATEWAY_DOWN, GATEWAY_FROZEN, GATEWAY_OTHER };
/* A member that goes down closes its connections; one that is frozen keeps them, and says nothing.
 * Where another etcd answers at its address (etcd_store_make_other), connections close too. */
void gateway_set(unsigned member, enum gateway_state state);
/* Without one nothing is carried out; what is asked meanwhile is answered 503, and may be carried
 * out when there is one again. */
void gateway_set_quorum(bool has_quorum);
bool gateway_has_quorum(void);

#endif

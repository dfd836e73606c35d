/* What a call is refused for past a limit, each time counted as a hit of it: wrong keys, memory, an
 * answer or a change that is too large. */
#include "rest/call.h"

#include "access/access.h"
#include "access/clients.h"
#include "base/limits.h"
#include "rest/metrics.h"
#include "rest/request.h"
#include "rest/response.h"
#include "rest/rest.h"

static struct err *refuse_sign_in(struct call *call, unsigned wait_s)
{
    call->rest->metrics->limit_hits[METRIC_FAILED_SIGN_INS]++;
    return err_set_retry_after(
        ERR(ERR_TOO_MANY_REQUESTS,
            "too many wrong API keys came from this address, or in webhooks from this "
            "key: the limit FailedSignInsPerMinute"),
        wait_s);
}

/* A request without a key guesses none: it neither counts as a failure nor waits. */
struct err *call_sign_in(struct call *call, struct span authorization, struct access_key **out_key)
{
    struct clients *clients = call->rest->clients;
    const struct in6_addr *client = call->request->client, *key = NULL;
    struct in6_addr of_key;
    unsigned wait_s;
    struct err *e;

    if (authorization.n == 0)
        return access_sign_in(call->rest->access, authorization, call->arena, out_key);
    if (call->key != NULL) {
        of_key = clients_of_key(call->key->tenant, call->key->name);
        key = &of_key;
    }
    wait_s = MAX(clients_sign_in_wait_s(clients, client), clients_sign_in_wait_s(clients, key));
    if (wait_s > 0)
        return refuse_sign_in(call, wait_s);
    e = access_sign_in(call->rest->access, authorization, call->arena, out_key);
    if (e != NULL) {
        clients_sign_in_failed(clients, client);
        clients_sign_in_failed(clients, key);
    }
    return e;
}

struct err *call_refuse_for_memory(const struct call *call)
{
    call->rest->metrics->limit_hits[METRIC_MEMORY_BYTES]++;
    return err_set_retry_after(ERR(ERR_OVERLOADED, "the limit MemoryBytes (%lld) is reached",
                                   (long long)call->rest->limits->memory_bytes),
                               5);
}

struct err *call_refuse_answer(const struct call *call)
{
    if (call->response->body.max < call->response->most_body_bytes)
        return call_refuse_for_memory(call);
    call->rest->metrics->limit_hits[METRIC_ANSWER_BYTES]++;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the answer would be larger than the limit AnswerBytes (%zu bytes): ask for "
               "fewer entities with limit and offset%s",
               call->response->body.max,
               call->method == METHOD_GET ? "" : ", or for none with Prefer: return=minimal");
}

struct err *call_refuse_change(const struct call *call)
{
    call->rest->metrics->limit_hits[METRIC_CHANGE_BYTES]++;
    return ERR(ERR_PAYLOAD_TOO_LARGE,
               "the request would write more than the limit ChangeBytes (%lld bytes): choose fewer "
               "entities with limit and offset",
               (long long)call->rest->limits->change_bytes);
}

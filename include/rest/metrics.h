/* What the service counts, and Svc.Metrics says (docs/specification.md, section 8). Counting is an
 * increment of a plain field where the thing happens; gauges that somebody else keeps are read when
 * they are asked for. Nothing here grows: every label has a fixed set of values, but for the
 * resources of svc_store_entities, of which METRICS_MAX_RESOURCES are told apart, and the webhooks
 * of svc_webhook_*, which are the WORST_MOST worst. */
#ifndef REST_METRICS_H
#define REST_METRICS_H

#include "base/err.h"
#include "base/metric.h"
#include "protocol/method.h"

/* member, form, type, name, labels, help. docs/reference/metrics.md has the same table. */
#define METRICS(X)                                                                                 \
    X(requests, requests, "counter", "svc_requests_total", "method,status",                        \
      "HTTP requests answered")                                                                    \
    X(request_time, histogram, "histogram", "svc_request_seconds", "",                             \
      "From the evaluation of a request to the moment when its answer may leave")                  \
    X(errors, by_error, "counter", "svc_errors_total", "code",                                     \
      "HTTP requests answered with a problem, by ErrorCode")                                       \
    X(limit_hits, by_limit, "counter", "svc_limit_hits_total", "limit",                            \
      "Requests, events and connections turned away at a limit, by its name in the configuration") \
    X(connections, count, "gauge", "svc_connections_open", "", "Client connections open now")      \
    X(connections_accepted, count, "counter", "svc_connections_accepted_total", "",                \
      "Client connections accepted")                                                               \
    X(connections_closed, by_close_reason, "counter", "svc_connections_closed_total", "reason",    \
      "Client connections closed, by reason")                                                      \
    X(incoming_bytes, count, "gauge", "svc_incoming_bytes", "",                                    \
      "Requests that have not come whole: what IncomingBytes bounds")                              \
    X(unread_bytes, count, "gauge", "svc_unread_bytes", "",                                        \
      "Answers sent that clients have not taken yet: what UnreadBytes bounds")                     \
    X(scans, count, "gauge", "svc_scans_open", "",                                                 \
      "Requests under way that have given way to others")                                          \
    X(scan_slices, count, "counter", "svc_scan_slices_total", "",                                  \
      "Turns of the loop that went on with such a request")                                        \
    X(gave_way, count, "counter", "svc_requests_given_way_total", "",                              \
      "Requests that took too long for one turn, and gave way to others")                          \
    X(longest_turn_ns, seconds, "gauge", "svc_request_turn_longest_seconds", "",                   \
      "Most processor time that one request has taken in one turn, if it took any to speak of")    \
    X(streams, count, "gauge", "svc_streams_open", "", "Streams open now: what Streams bounds")    \
    X(stream_entities, count, "counter", "svc_stream_entities_total", "",                          \
      "Entities written for streams, each once for all streams of one view")                       \
    X(stream_gaps, count, "counter", "svc_stream_gaps_total", "",                                  \
      "Gaps that streams were told of: retention was there first")                                 \
    X(backups, count, "gauge", "svc_backups_open", "",                                             \
      "Backups being sent now: what Backups bounds")                                               \
    X(client_addresses, count, "gauge", "svc_client_addresses", "",                                \
      "Client addresses that the limits per address know of")                                      \
    X(events, count, "counter", "svc_events_total", "", "Events raised")                           \
    X(events_kept, count, "gauge", "svc_events_kept", "", "Events that Svc.Event still shows")     \
    X(matches, count, "counter", "svc_matches_total", "",                                          \
      "Webhooks that events matched, each a delivery queued")                                      \
    X(predicates, count, "counter", "svc_predicates_evaluated_total", "",                          \
      "Distinct conditions of selectors put to events")                                            \
    X(selectors, count, "counter", "svc_selectors_examined_total", "",                             \
      "Selectors looked at, whether they matched or not")                                          \
    X(deliveries, by_outcome, "counter", "svc_deliveries_total", "outcome",                        \
      "Deliveries that ended, by the state that they ended in")                                    \
    X(attempts, by_result, "counter", "svc_attempts_total", "result",                              \
      "Attempts made: success, rejected (another status than 2xx), no_answer, aborted")            \
    X(attempt_time, histogram, "histogram", "svc_attempt_seconds", "",                             \
      "From the start of an attempt to its outcome")                                               \
    X(delivery_lag, histogram, "histogram", "svc_delivery_lag_seconds", "",                        \
      "From the raising of an event to the success of its delivery")                               \
    X(notices, count, "counter", "svc_notices_total", "",                                          \
      "Events that the server raised by itself: Svc.WebhookPaused and its like")                   \
    X(notices_left_out, count, "counter", "svc_notices_left_out_total", "",                        \
      "Those that it did not raise, because a webhook or a change had caused too many")            \
    X(deliveries_pending, count, "gauge", "svc_deliveries_pending", "",                            \
      "Deliveries that have not ended: what PendingDeliveries bounds")                             \
    X(deliveries_kept, by_state, "gauge", "svc_deliveries_kept", "state",                          \
      "Deliveries in memory, by state; ended ones until retention forgets them")                   \
    X(oldest_ns, seconds, "gauge", "svc_delivery_oldest_seconds", "",                              \
      "Age of the event of the delivery that has not ended for longest; 0: there is none")         \
    X(worst_attempts, worst_attempts, "counter", "svc_webhook_attempts_total", "webhook",          \
      "Attempts made, of the 20 webhooks with the most failures since the start")                  \
    X(worst_failures, worst_failures, "counter", "svc_webhook_failures_total", "webhook",          \
      "Those of these attempts that failed")                                                       \
    X(worst_pending, worst_pending, "gauge", "svc_webhook_pending", "webhook",                     \
      "Deliveries of these webhooks that have not ended")                                          \
    X(webhooks_paused, count, "gauge", "svc_webhooks_paused", "", "Webhooks that are paused")      \
    X(journal_commits, count, "counter", "svc_journal_commits_total", "",                          \
      "Commits: one write, and with Fsync always one sync, each")                                  \
    X(journal_sync, histogram, "histogram", "svc_journal_sync_seconds", "",                        \
      "From the start of a commit to its end, the sync included")                                  \
    X(journal_appended, count, "counter", "svc_journal_appended_bytes_total", "",                  \
      "Bytes written to the journal, padding included")                                            \
    X(journal_bytes, count, "gauge", "svc_journal_bytes", "", "Bytes of all segment files")        \
    X(journal_live_bytes, count, "gauge", "svc_journal_live_bytes", "",                            \
      "Bytes of the records that are still needed")                                                \
    X(journal_segments, count, "gauge", "svc_journal_segments", "", "Segment files")               \
    X(journal_full, count, "gauge", "svc_journal_full", "",                                        \
      "1 while the disk has no room for another segment, else 0")                                  \
    X(store_entities, entities, "gauge", "svc_store_entities", "resource",                         \
      "Entities stored; of 200 resources at most, the others together as _other")                  \
    X(resident_bytes, count, "gauge", "svc_resident_bytes", "", "Memory that is resident")         \
    X(heap_bytes, count, "gauge", "svc_heap_bytes", "", "Heap in use: what MemoryBytes bounds")    \
    X(ledger, by_holder, "gauge", "svc_ledger_bytes", "kind",                                      \
      "Bytes held for others, of those that give way when MemoryBytes is near, or are bounded")    \
    X(cpu_ns, seconds, "counter", "svc_cpu_seconds_total", "",                                     \
      "Processor time used, user and system")                                                      \
    X(started_ns, seconds, "gauge", "svc_start_time_seconds", "",                                  \
      "When the service started, in seconds since 1970")                                           \
    X(build, build, "gauge", "svc_build_info", "version", "Always 1; the label is the version")

/* Of a node of a cluster besides; a server that is alone says nothing of them. */
#define CLUSTER_METRICS(X)                                                                         \
    X(role, by_role, "gauge", "svc_cluster_role", "role",                                          \
      "1 for the role that the node has, 0 for the others")                                        \
    X(trouble, by_trouble, "gauge", "svc_cluster_trouble", "trouble",                              \
      "1 for what keeps the node from its part in the cluster, 0 for the others")                  \
    X(epoch, count, "gauge", "svc_cluster_epoch", "",                                              \
      "Epoch of the leader that the node knows; 0: it knows of none")                              \
    X(nodes, count, "gauge", "svc_cluster_nodes", "", "Nodes that live, as this one knows")        \
    X(lease_ns, seconds, "gauge", "svc_cluster_lease_seconds", "",                                 \
      "What is left of the node's lease")                                                          \
    X(end, count, "gauge", "svc_cluster_log_serial", "",                                           \
      "Serial of the last record of the log, as far as the node has read")                         \
    X(applied, count, "gauge", "svc_cluster_applied_serial", "",                                   \
      "Serial of the last record that is in the node's journal")                                   \
    X(lag, count, "gauge", "svc_cluster_lag_records", "", "How far the latter is behind")          \
    X(lag_ns, seconds, "gauge", "svc_cluster_lag_seconds", "",                                     \
      "Age of the oldest batch that was read from the log and is not in the node's journal")       \
    X(batches, count, "counter", "svc_cluster_batches_total", "",                                  \
      "Batches that the node has put into the log")                                                \
    X(batch_bytes, count, "counter", "svc_cluster_batch_bytes_total", "",                          \
      "Bytes of their records, before they are compressed")                                        \
    X(attempts, count, "counter", "svc_cluster_attempts_total", "",                                \
      "Transactions that etcd was sent for them, parts and repetitions included")                  \
    X(commit_time, histogram, "histogram", "svc_cluster_commit_seconds", "",                       \
      "From the moment when a batch is sent to the one when it is known to be in the log")         \
    X(read_batches, count, "counter", "svc_cluster_read_batches_total", "",                        \
      "Batches of others that the node has read from the log")                                     \
    X(read_bytes, count, "counter", "svc_cluster_read_bytes_total", "", "Bytes of their records")  \
    X(log_keys, count, "gauge", "svc_cluster_log_keys", "",                                        \
      "Batches that etcd keeps, as the leader saw at its last look, 10 s apart; else 0")           \
    X(log_bytes, count, "gauge", "svc_cluster_log_bytes", "",                                      \
      "Their bytes, compressed, likewise: at least TailBytes are kept")                            \
    X(passed_on, count, "counter", "svc_cluster_passed_on_total", "",                              \
      "Requests that were passed on to the leader")                                                \
    X(passing_on, count, "gauge", "svc_cluster_passing_on", "",                                    \
      "Those that wait for its answer: what PassedOnRequests bounds")                              \
    X(passage_waiting, count, "gauge", "svc_cluster_passage_waiting", "",                          \
      "Those that wait to be passed on")                                                           \
    X(handover_bytes, count, "gauge", "svc_cluster_handover_bytes", "",                            \
      "The node's own records that wait to be handed to the leader")                               \
    X(handover_dropped, count, "counter", "svc_cluster_handover_dropped_total", "",                \
      "Those of them that were dropped, as too many waited")

enum { METRIC_CLUSTER_ROLE_COUNT = 4, METRIC_CLUSTER_TROUBLE_COUNT = 12 };

#define METRICS_MAX_RESOURCES 200

/* Statuses that the server sends; any other would be counted as `other`. */
#define METRIC_STATUSES(X)                                                                         \
    X(200)                                                                                         \
    X(201)                                                                                         \
    X(202)                                                                                         \
    X(204)                                                                                         \
    X(304)                                                                                         \
    X(400)                                                                                         \
    X(401)                                                                                         \
    X(403)                                                                                         \
    X(404)                                                                                         \
    X(405)                                                                                         \
    X(406)                                                                                         \
    X(408)                                                                                         \
    X(409)                                                                                         \
    X(412)                                                                                         \
    X(413)                                                                                         \
    X(414)                                                                                         \
    X(415)                                                                                         \
    X(417)                                                                                         \
    X(429)                                                                                         \
    X(431)                                                                                         \
    X(500)                                                                                         \
    X(501)                                                                                         \
    X(503)                                                                                         \
    X(505)                                                                                         \
    X(507)                                                                                         \
    X(508)

enum metric_status {
    METRIC_STATUS_OTHER,
#define METRIC_STATUS_AS_ENUM(status) METRIC_STATUS_##status,
    METRIC_STATUSES(METRIC_STATUS_AS_ENUM)
#undef METRIC_STATUS_AS_ENUM
        METRIC_STATUS_COUNT
};

/* Limits at which something is turned away, spelled as in base/limits.h. */
#define METRIC_LIMITS(X)                                                                           \
    X(METRIC_BODY_BYTES, "BodyBytes")                                                              \
    X(METRIC_HEADER_BYTES, "HeaderBytes")                                                          \
    X(METRIC_URI_BYTES, "UriBytes")                                                                \
    X(METRIC_CONNECTIONS, "Connections")                                                           \
    X(METRIC_CONNECTIONS_PER_ADDRESS, "ConnectionsPerAddress")                                     \
    X(METRIC_REQUESTS, "Requests")                                                                 \
    X(METRIC_REQUESTS_PER_ADDRESS, "RequestsPerAddress")                                           \
    X(METRIC_FAILED_SIGN_INS, "FailedSignInsPerMinute")                                            \
    X(METRIC_ACCOUNT_REQUESTS, "AccountRequestsPerSecond")                                         \
    X(METRIC_ACCOUNT_WEBHOOKS, "AccountWebhooks")                                                  \
    X(METRIC_HEADER_SECONDS, "HeaderSeconds")                                                      \
    X(METRIC_BODY_SECONDS, "BodySeconds")                                                          \
    X(METRIC_BODY_RATE, "BodyBytesPerSecond")                                                      \
    X(METRIC_PENDING_DELIVERIES, "PendingDeliveries")                                              \
    X(METRIC_WEBHOOK_PENDING_DELIVERIES, "WebhookPendingDeliveries")                               \
    X(METRIC_EVENT_DESCENDANTS, "EventDescendants")                                                \
    X(METRIC_MEMORY_BYTES, "MemoryBytes")                                                          \
    X(METRIC_INCOMING_BYTES, "IncomingBytes")                                                      \
    X(METRIC_UNREAD_BYTES, "UnreadBytes")                                                          \
    X(METRIC_ANSWER_BYTES, "AnswerBytes")                                                          \
    X(METRIC_CHANGE_BYTES, "ChangeBytes")                                                          \
    X(METRIC_STREAMS, "Streams")                                                                   \
    X(METRIC_BACKUPS, "Backups")                                                                   \
    X(METRIC_BACKUP_HELD_BYTES, "BackupHeldBytes")                                                 \
    X(METRIC_BACKUP_PACE, "BackupBytesPerSecond")

enum metric_limit {
#define METRIC_LIMIT_AS_ENUM(symbol, name) symbol,
    METRIC_LIMITS(METRIC_LIMIT_AS_ENUM)
#undef METRIC_LIMIT_AS_ENUM
        METRIC_LIMIT_COUNT
};

/* Who holds bytes for others. */
#define METRIC_HOLDERS(X)                                                                          \
    X(METRIC_INCOMING, "Incoming")      /* requests that have not come whole */                    \
    X(METRIC_UNREAD, "Unread")          /* answers that clients have not taken */                  \
    X(METRIC_BODIES, "Bodies")          /* of attempts under way */                                \
    X(METRIC_PAYLOADS, "Payloads")      /* of events, in memory */                                 \
    X(METRIC_ERROR_LOG, "Error")        /* Svc.Admin.Error */                                      \
    X(METRIC_ATTEMPT_LOG, "WebhookLog") /* Svc.Admin.WebhookLog */                                 \
    X(METRIC_EVENTS, "Event")           /* Svc.Event, in memory or in the journal */               \
    X(METRIC_STREAM_TEXTS, "Streams")   /* texts that are kept for several streams */

enum metric_holder {
#define METRIC_HOLDER_AS_ENUM(symbol, name) symbol,
    METRIC_HOLDERS(METRIC_HOLDER_AS_ENUM)
#undef METRIC_HOLDER_AS_ENUM
        METRIC_HOLDER_COUNT
};

#define METRIC_RESULTS(X)                                                                          \
    X(METRIC_SUCCESS, "success")                                                                   \
    X(METRIC_REJECTED, "rejected")                                                                 \
    X(METRIC_NO_ANSWER, "no_answer")                                                               \
    X(METRIC_ABORTED, "aborted")

enum metric_result {
#define METRIC_RESULT_AS_ENUM(symbol, name) symbol,
    METRIC_RESULTS(METRIC_RESULT_AS_ENUM)
#undef METRIC_RESULT_AS_ENUM
        METRIC_RESULT_COUNT
};

/* The seven, and all others together. */
enum { METRIC_METHOD_OTHER = METHOD_COUNT, METRIC_METHOD_COUNT };
/* Of deliveries: pending, in flight, waiting, and the three that they end in (hooks/delivery.h). */
enum { METRIC_OUTCOME_COUNT = 3, METRIC_DELIVERY_STATE_COUNT = 6 };
enum { METRIC_CLOSE_REASON_COUNT = 32 }; /* tcp's are fewer */

/* How a metric is kept. */
#define METRIC_AS_count(member) uint64_t member;
#define METRIC_AS_seconds(member) uint64_t member; /* nanoseconds */
#define METRIC_AS_histogram(member) struct histogram member;
#define METRIC_AS_requests(member) uint64_t member[METRIC_METHOD_COUNT][METRIC_STATUS_COUNT];
#define METRIC_AS_by_error(member) uint64_t member[ERR_CODE_COUNT];
#define METRIC_AS_by_limit(member) uint64_t member[METRIC_LIMIT_COUNT];
#define METRIC_AS_by_close_reason(member) uint64_t member[METRIC_CLOSE_REASON_COUNT];
#define METRIC_AS_by_outcome(member) uint64_t member[METRIC_OUTCOME_COUNT];
#define METRIC_AS_by_result(member) uint64_t member[METRIC_RESULT_COUNT];
#define METRIC_AS_by_holder(member) uint64_t member[METRIC_HOLDER_COUNT];
#define METRIC_AS_by_state(member) uint64_t member[METRIC_DELIVERY_STATE_COUNT];
#define METRIC_AS_entities(member) uint64_t member; /* of all resources */
#define METRIC_AS_build(member) uint64_t member;    /* 1 */
/* Who fails is counted by the webhooks themselves (webhook/worst.h). */
#define METRIC_AS_worst_attempts(member) char member;
#define METRIC_AS_worst_failures(member) char member;
#define METRIC_AS_worst_pending(member) char member;

#define METRIC_AS_by_role(member) uint64_t member[METRIC_CLUSTER_ROLE_COUNT];
#define METRIC_AS_by_trouble(member) uint64_t member[METRIC_CLUSTER_TROUBLE_COUNT];

struct metrics {
#define METRIC_AS_MEMBER(member, form, type, name, labels, help) METRIC_AS_##form(member)
    METRICS(METRIC_AS_MEMBER)
};

/* Made when it is asked for. */
struct cluster_metrics {
    CLUSTER_METRICS(METRIC_AS_MEMBER)
};
#undef METRIC_AS_MEMBER

void metrics_init(struct metrics *m);

/* A request has taken that much of one turn. */
void metrics_note_turn(struct metrics *m, uint64_t ns);
/* An HTTP request was answered; `error` is ERR_NO_ERROR on success. */
void metrics_count_answer(struct metrics *m, enum method method, int status, enum err_code error);

#endif

/* The service's limits: one table of names, defaults, ranges and units, which the configuration
 * is read by and the reference documents. docs/specification.md section 9, `Limits`. */
#ifndef BASE_LIMITS_H
#define BASE_LIMITS_H

#include <stdint.h>

/* member of struct limits, configuration name, default, least, most, unit, meaning. JsonDepth is
 * less than JSON_DEPTH_MOST by what the service itself puts around a body: lists, payloads, answers
 * of Svc.Aggregator. */
#define LIMITS(X)                                                                                  \
    X(body_bytes, "BodyBytes", 1048576, 0, 1073741824, "bytes", "largest request body")            \
    X(header_bytes, "HeaderBytes", 32768, 256, 1048576, "bytes", "largest request head")           \
    X(uri_bytes, "UriBytes", 8192, 16, 1048576, "bytes", "longest request target")                 \
    X(connections, "Connections", 10000, 1, 1000000, "connections", "open client connections")     \
    X(connections_per_address, "ConnectionsPerAddress", 2500, 0, 1000000, "connections",           \
      "open connections of one client address; 0: no limit")                                       \
    X(requests, "Requests", 20000, 1, 10000000, "requests",                                        \
      "requests under way, which wait for the disk, or have given way to others")                  \
    X(requests_per_address, "RequestsPerAddress", 5000, 0, 10000000, "requests",                   \
      "those of one client address; 0: no limit")                                                  \
    X(failed_sign_ins_per_minute, "FailedSignInsPerMinute", 60, 0, 60000, "requests",              \
      "with a wrong API key, its own or a webhook's, from one client address or key; 0: no limit") \
    X(header_seconds, "HeaderSeconds", 10, 1, 3600, "seconds", "time for a request head")          \
    X(body_seconds, "BodySeconds", 30, 1, 3600, "seconds", "time for a request body")              \
    X(body_bytes_per_second, "BodyBytesPerSecond", 240, 0, 1073741824, "bytes",                    \
      "a second, that a request body comes at least, all in all; 0: none")                         \
    X(body_grace_seconds, "BodyGraceSeconds", 5, 1, 3600, "seconds",                               \
      "time after which a request body must come that fast")                                       \
    X(idle_seconds, "IdleSeconds", 75, 1, 86400, "seconds", "time between requests")               \
    X(pending_deliveries, "PendingDeliveries", 1000000, 1, 100000000, "deliveries",                \
      "deliveries that are queued or waiting; of those, an account may have half")                 \
    X(webhook_pending_deliveries, "WebhookPendingDeliveries", 200000, 1, 100000000, "deliveries",  \
      "those of one webhook; past that, or the half, a new one is Dead at once")                   \
    X(event_descendants, "EventDescendants", 1000, 0, 1000000000, "events",                        \
      "that requests of local destinations raise because of one event, directly or not")           \
    X(streams, "Streams", 256, 0, 1000000, "streams",                                              \
      "open at once; of two accounts that want more, the one with more gives way")                 \
    X(backups, "Backups", 2, 0, 64, "backups", "that are sent at once; 0: none")                   \
    X(backup_held_bytes, "BackupHeldBytes", 1073741824, 0, INT64_MAX, "bytes",                     \
      "of the journal, cleaned away, that stay on the disk while backups read them; past that, "   \
      "or "                                                                                        \
      "on a full disk, a backup that needs them ends")                                             \
    X(backup_bytes_per_second, "BackupBytesPerSecond", 16384, 0, 1073741824, "bytes",              \
      "a second, that a backup's client takes at least; 0: none")                                  \
    X(backup_pace_seconds, "BackupPaceSeconds", 300, 1, 86400, "seconds",                          \
      "a backup's pace is looked at each time so many are over, and is that of these")             \
    X(memory_bytes, "MemoryBytes", 0, 0, INT64_MAX, "bytes",                                       \
      "heap beyond which work is refused; 0: none")                                                \
    X(payload_bytes, "PayloadBytes", 67108864, 0, INT64_MAX, "bytes",                              \
      "payloads of events held in memory; others are read back from the journal")                  \
    X(shutdown_seconds, "ShutdownSeconds", 20, 0, 3600, "seconds", "time to drain after SIGTERM")  \
    X(json_depth, "JsonDepth", 64, 1, 900, "levels", "nesting of arrays and objects in a body")    \
    X(json_nodes, "JsonNodes", 100000, 16, 10000000, "values",                                     \
      "values and member names in a body")                                                         \
    X(conditions, "Conditions", 64, 1, 10000, "conditions",                                        \
      "conditions, or meta-conditions, in a target")                                               \
    X(pipelined_requests, "PipelinedRequests", 64, 1, 10000, "requests",                           \
      "answers a connection may be owed before it is read again")                                  \
    X(connection_unread_bytes, "ConnectionUnreadBytes", 262144, 4096, 1073741824, "bytes",         \
      "answers that a client has not read, past which no further request of its connection is "    \
      "read; one answer may be larger")                                                            \
    X(incoming_bytes, "IncomingBytes", 268435456, 65536, INT64_MAX, "bytes",                       \
      "requests of all clients that have not come whole; past that, the largest is refused")       \
    X(unread_bytes, "UnreadBytes", 268435456, 65536, INT64_MAX, "bytes",                           \
      "those of all clients; past that, who has read nothing for longest is closed; past as much " \
      "that waits for the disk, or has given way, requests are answered 503")                      \
    X(answer_bytes, "AnswerBytes", 67108864, 65536, 1073741824, "bytes", "largest answer")         \
    X(change_bytes, "ChangeBytes", 134217728, 65536, 1073741824, "bytes",                          \
      "most that one request writes: entities as they are then, and events")                       \
    X(scan_entities, "ScanEntities", 2000, 1, 1000000000, "entities",                              \
      "that a request without an index for its conditions looks at before it gives way to others") \
    X(request_cpu_ms, "RequestCpuMs", 1000, 1, 3600000, "milliseconds",                            \
      "of processor time for one request; past that it is refused")                                \
    X(account_requests_per_second, "AccountRequestsPerSecond", 0, 0, 10000000, "requests",         \
      "a second, of one account: a tenant, or a key; 0: no limit")                                 \
    X(account_webhooks, "AccountWebhooks", 10000, 1, 100000000, "webhooks", "of one account")      \
    X(key_resources, "KeyResources", 100, 1, 10000, "resources",                                   \
      "that the rights of a key name, which is made at run time")                                  \
    X(passed_on_requests, "PassedOnRequests", 256, 1, 10000, "requests",                           \
      "of a cluster's follower, passed on to the leader at once; others wait their turn, account " \
      "by account")                                                                                \
    X(min_serial_ms, "MinSerialMs", 1000, 0, 60000, "milliseconds",                                \
      "for which a request waits, on a node of a cluster, for the serial in its Svc-min-serial")   \
    X(aggregated_requests, "AggregatedRequests", 32, 1, 10000, "requests",                         \
      "requests in a template of Svc.Aggregator")                                                  \
    X(cloudevent_attributes, "CloudEventAttributes", 64, 4, 1000, "attributes",                    \
      "of a CloudEvent, that its sender gives it")                                                 \
    X(cloudevent_attribute_bytes, "CloudEventAttributeBytes", 16384, 256, 1048576, "bytes",        \
      "of these, as an object of JSON")                                                            \
    X(ed25519_bytes, "Ed25519Bytes", 2097152, 65536, 1073741824, "bytes",                          \
      "largest body that a whsk_ secret signs, which it has to in one piece")

struct limits {
#define LIMIT_AS_MEMBER(member, name, value, least, most, unit, meaning) int64_t member;
    LIMITS(LIMIT_AS_MEMBER)
#undef LIMIT_AS_MEMBER
};

/* The defaults. */
static inline void limits_init(struct limits *l)
{
#define LIMIT_AS_DEFAULT(member, name, value, least, most, unit, meaning) .member = value,
    *l = (struct limits){LIMITS(LIMIT_AS_DEFAULT)};
#undef LIMIT_AS_DEFAULT
}

#endif

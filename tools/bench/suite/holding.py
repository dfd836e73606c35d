"""What it costs to hold things: idle connections, a million webhooks, a million deliveries that
wait, and the start with them; matching; and a server that does nothing."""
import os
import shutil
import socket
import time

from . import journal, load, machine, peers, reading, writing
from .measure import Goal, Row, Scenario, say

IDLE_CONNECTIONS = 10000
MATCHING_COUNTS = (100, 10000, 100000, 1000000)
BATCH = 2000
NS_A_US = 1000


def connections(context):
    """Each has been answered once: it holds what a connection holds between requests."""
    rows = []
    for name, binary in context.builds:
        server = peers.Svcd(name, binary, context.place)
        before = machine.resident_mb(server.process.pid)
        held = []
        try:
            for _ in range(IDLE_CONNECTIONS):
                s = socket.create_connection(("127.0.0.1", server.port))
                s.sendall(b"GET /Svc.Admin.Webhook HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                s.recv(4096)
                held.append(s)
            rows.append(Row(f"{name}, {IDLE_CONNECTIONS:,} idle connections", "MB").add(
                machine.resident_mb(server.process.pid) - before))
        finally:
            for s in held:
                s.close()
            server.stop()
    return Scenario("idle-connections", "Memory of idle connections", rows,
                    [Goal("MB", rows[0].median, 8, at_least=False)])


def _fill(server, count):
    started = time.monotonic()
    for at in range(0, count, BATCH):
        server.post("/Svc.Admin.Webhook",
                    [dict(reading.WEBHOOK, Label=f"bench {i}",
                          EventSelector=f"/Bench.Placed/Amount>{i}")
                     for i in range(at, min(count, at + BATCH))])
    say(f"{count:,} webhooks made in {time.monotonic() - started:.1f} s")


def _rates(server, seconds):
    entity = server.post("/Svc.Admin.Webhook", reading.WEBHOOK)[0]["Id"]
    paths = {"the first page": "/Svc.Admin.Webhook/_/limit=10",
             "by Id": f"/Svc.Admin.Webhook/Id={entity}"}
    return {what: load.wrk(server.port, path, seconds) for what, path in paths.items()}


def _lists(context, binary, name, few, many):
    rows = []
    for what in many:
        row = Row(f"{name}, {what}, {context.count:,} webhooks")
        row.add(many[what].ops / many[what].seconds, many[what])
        small = Row(f"{name}, {what}, ten")
        small.add(few[what].ops / few[what].seconds, few[what])
        small.compare_to(row)
        rows += [row, small]
    return rows


def webhooks(context):
    """The first build only: a million of them takes a while."""
    name, binary = context.builds[0]
    count = context.count
    server = peers.Svcd(name, binary, context.place)
    _fill(server, 10)
    few = _rates(server, context.seconds)
    server.stop()
    data = os.path.join(context.place.directory, "million")
    server = peers.Svcd(name, binary, context.place, data=data)
    try:
        before = machine.resident_mb(server.process.pid)
        _fill(server, count)
        memory = machine.resident_mb(server.process.pid) - before
        many = _rates(server, context.seconds)
        server.stop()
        starts = Row(f"start with {count:,} webhooks", "ms")
        floor = Row("reading and checksumming the same files", "ms")
        for _ in range(context.runs):
            server = peers.Svcd(name, binary, context.place, data=data)
            starts.add(server.start_ms)
            floor.add(journal.checksum_ms(context, data))
            server.stop()
    finally:
        if server.process.poll() is None:
            server.stop()
        shutil.rmtree(data, ignore_errors=True)
    rows = [Row(f"{count:,} webhooks", "MB").add(memory),
            *_lists(context, binary, name, few, many), starts, floor]
    floor.ratio = starts.median / floor.median
    goals = [Goal("MB", memory, 1000 * count / 1e6, at_least=False),
             Goal("start, ms", starts.median, 3000, at_least=False)]
    goals += [Goal(f"{row.name} to ten of them", small.ratio, 0.95)
              for row, small in zip(rows[1:-2:2], rows[2:-2:2])]
    return Scenario("webhooks", f"{count:,} webhooks", rows, goals)


def pending(context):
    """A receiver that takes connections and never answers: what is not in flight, queues."""
    name, binary = context.builds[0]
    with socket.create_server(("127.0.0.1", 0), backlog=128) as silent:
        server = peers.Svcd(name, binary, context.place)
        try:
            server.post("/Svc.Admin.Webhook",
                        {"Label": "silent", "EventSelector": "/Bench.Placed",
                         "Destination": f"http://127.0.0.1:{silent.getsockname()[1]}/hook",
                         "Delivery": {"TimeoutSeconds": 600}})
            file = context.place.file("event", writing.request(
                "/Svc.Event", '{"Resource":"Bench.Placed","Payload":{"Serial":"@@@@@@@@@@"}}'))
            load.load(context.place, server.port, file, 60, count=200000)  # retention is full
            before = machine.resident_mb(server.process.pid)
            result = load.load(context.place, server.port, file, 600, count=context.count)
            grown = machine.resident_mb(server.process.pid) - before
        finally:
            server.process.kill()
            server.process.wait()
    row = Row(f"{name}, a pending delivery", "bytes").add(grown * 1048576 / max(result.ops, 1))
    row.note = f"{result.ops:,} deliveries, each of an event of its own"
    row.errors = result.errors
    return Scenario("pending", "Memory of deliveries that wait", [row])


def idle(context):
    name, binary = context.builds[0]
    start, memory = Row("start with an empty directory", "ms"), Row("resident size", "MB")
    wakes = Row(f"wake-ups in {context.seconds} s")
    wakes.unit = ""
    for _ in range(context.runs):
        server = peers.Svcd(name, binary, context.place)
        try:
            start.add(server.start_ms)
            time.sleep(1.5)
            before = machine.status(server.process.pid, "voluntary_ctxt_switches")
            time.sleep(context.seconds)
            wakes.add(machine.status(server.process.pid, "voluntary_ctxt_switches") - before)
            memory.add(machine.resident_mb(server.process.pid))
        finally:
            server.stop()
    return Scenario("idle", "A server that does nothing", [start, memory, wakes],
                    [Goal("start, ms", start.median, 20, at_least=False),
                     Goal("resident MB", memory.median, 16, at_least=False),
                     Goal("wake-ups", wakes.median, 0, at_least=False)])


def matching(context):
    text = load.run(machine.pinned(machine.SERVER_CORE, [context.place.program("matcher"),
                                                         *MATCHING_COUNTS]))
    costs, rows = {}, []
    for line in text.splitlines()[1:]:
        count, event_ns, found, add_ns, worst_us, remove_ns, size = map(float, line.split())
        costs[int(count)] = (event_ns / NS_A_US, add_ns / NS_A_US, remove_ns / NS_A_US)
        row = Row(f"an event against {count:,.0f} selectors", "µs").add(event_ns / NS_A_US)
        row.note = (f"{found:.0f} match; add {add_ns:,.0f} ns (worst {worst_us:,.0f} µs), "
                    f"remove {remove_ns:,.0f} ns, {size:.0f} bytes each")
        rows.append(row)
    most = max(costs)
    return Scenario("matching", "Matching, beyond parsing the event", rows, [
        Goal("µs with 100,000 selectors", costs[100000][0], 5, at_least=False),
        Goal("a million over 100,000", costs[most][0] / costs[100000][0], 2, at_least=False),
        Goal("µs to add or remove one of a million", max(costs[most][1:]), 50, at_least=False)])


SCENARIOS = {"matching": matching, "idle-connections": connections, "webhooks": webhooks,
             "pending": pending, "idle": idle}

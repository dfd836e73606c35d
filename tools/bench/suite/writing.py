"""Durable writes against Redis's append-only file, and a read beside them, also on a slow disk."""
import subprocess

from . import load, machine, peers
from .measure import Goal, Row, Scenario, Target, interleave, say

BODY_BYTES = 400
SLOW_SYNC_US = 5000
READS_PER_SECOND = 2000


def body():
    head = ('{"Serial":"@@@@@@@@@@","Label":"order","Customer":"someone@example.com",'
            '"Amount":1250.5,"Paid":true,"Lines":[{"Sku":"a","Count":2}],"Text":"')
    return head + "x" * (BODY_BYTES - len(head) - 2) + '"}'


def request(target, content):
    return (f"POST {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n{content}")


class Fresh:
    """A server that each round starts with an empty directory: what rounds leave does not add up."""

    def __init__(self, context, name, binary, **options):
        self.context = context
        self.name = name
        self.binary = binary
        self.options = options
        self.server = None

    def start(self):
        self.server = peers.Svcd(self.name, self.binary, self.context.place, **self.options)
        return self.server

    def stop(self):
        self.server.stop()


def _posting(context, fresh, file):
    return Target(fresh.name,
                  lambda seconds: load.load(context.place, fresh.server.port, file, seconds),
                  lambda: fresh.server.pids, fresh.start, fresh.stop)


def _setting(peer):
    return Target(peer.name, lambda seconds: load.redis_set(peer.port, BODY_BYTES, seconds),
                  lambda: peer.pids)


def post(context):
    file = context.place.file("post", request("/Bench.Item", body()))
    targets = []
    for name, binary in context.builds:
        targets.append(_posting(context, Fresh(context, name, binary), file))
        if context.peers:
            targets.append(_posting(context, Fresh(context, f"{name}, Fsync no", binary,
                                                   Fsync="no"), file))
    started = []
    if context.peers:
        started = [peers.redis(context.place, "always"), peers.redis(context.place, "no")]
        targets += [_setting(peer) for peer in started]
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(started)
    goals = []
    if context.peers:
        goals = [Goal("ours over Redis SET with appendfsync always", rows[2].ratio, 1.3),
                 Goal("ours over ours with Fsync no", rows[1].ratio, 0.7)]
    return Scenario("post", f"Durable POST of {BODY_BYTES} bytes, 64 connections", rows, goals)


def _read_beside(context, server, file, seconds, writers):
    """READS_PER_SECOND reads a second over four connections, timed from when each was due, with 64
    writers that never pause."""
    entity = server.post("/Svc.Admin.Webhook", WEBHOOK)[0]["Id"]
    get = context.place.file("get", f"GET /Svc.Admin.Webhook/Id={entity} HTTP/1.1\r\n"
                                    "Host: 127.0.0.1\r\n\r\n")
    background = None
    if writers:
        command = load.load_command(context.place, server.port, file, seconds + 2)
        core = machine.LOAD_CORES[-1]
        background = subprocess.Popen(["taskset", "-c", str(core), *command[3:]],
                                      stdout=subprocess.PIPE, text=True)
    command = load.load_command(context.place, server.port, get, seconds, connections=4,
                                rate=READS_PER_SECOND)
    result = load.read_load(load.run(["taskset", "-c", str(machine.LOAD_CORES[0]), *command[3:]]))
    posts = load.read_load(background.communicate()[0]) if background else None
    return result, posts


WEBHOOK = {"Label": "bench", "Destination": "http://127.0.0.1:9/hook",
           "EventSelector": "/Bench.Placed", "IsPaused": True}
BESIDE = [("alone", False, 0), ("beside 64 writers", True, 0),
          (f"beside 64 writers, each sync {SLOW_SYNC_US / 1000:g} ms longer", True, SLOW_SYNC_US)]


def beside(context):
    file = context.place.file("post", request("/Bench.Item", body()))
    rows = []
    for name, binary in context.builds:
        for what, writers, slow_us in BESIDE:
            row = Row(f"{name}, GET {what}", "µs, p99")
            for _ in range(context.runs):
                server = peers.Svcd(name, binary, context.place, env={
                    "LD_PRELOAD": context.place.library("slow_sync"),
                    "BENCH_SYNC_US": str(slow_us)} if slow_us else None)
                try:
                    result, posts = _read_beside(context, server, file, context.seconds, writers)
                finally:
                    server.stop()
                row.add(result.p99_us, result)
                if posts:
                    row.note = f"writers: {posts.ops / posts.seconds:,.0f}/s"
                say(f"{row.name}: p99 {result.p99_us:.0f} µs {row.note}")
            rows.append(row)
    goals = [Goal(f"p99 of a GET {what}, µs", row.median, 1000, at_least=False)
             for (what, *_), row in zip(BESIDE[1:], rows[1:3])]
    return Scenario("beside", f"GET by Id, {READS_PER_SECOND} a second, beside durable writes", rows,
                    goals)


SCENARIOS = {"post": post, "beside": beside}

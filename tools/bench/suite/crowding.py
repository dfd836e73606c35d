"""A well-behaved client beside five thousand that are slow, silent or gone."""
import json
import os
import statistics
import subprocess
import sys

from . import load, machine, reading
from .measure import Goal, Scenario, Target, interleave
from .peers import BENCH

CLIENTS = 5000
RATES = (("20,000 a second", 20000), ("as many as it can", 0))
LONG = [dict(reading.WEBHOOK, Label="x" * 1000)] * 80  # some 100 kB


class Crowd:
    """Comes before a round and goes after it."""

    def __init__(self, port, target):
        self.port = port
        self.target = target
        self.process = None
        self.connected = []
        self.counts = {}

    def come(self):
        command = [sys.executable, os.path.join(BENCH, "slow_clients.py"), self.port, self.target,
                   "--clients", CLIENTS]
        self.process = subprocess.Popen(machine.pinned(machine.RECEIVER_CORE, command), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def go(self):
        self.counts = json.loads(self.process.communicate("\n", timeout=60)[0])
        self.connected.append(self.counts.pop("connected"))

    def note(self):
        each = ", ".join(f"{count:,} {what}" for what, count in self.counts.items())
        return f"{min(self.connected):,} held at least; in the last round {each}"


def _p99_ratio(alone, beside):
    return statistics.median(b / a for a, b in zip(alone.p99_us, beside.p99_us))


def slow_clients(context):
    """The first build only, each rate alone and beside the crowd."""
    server = context.start_builds()[0]
    first = server.post("/Svc.Admin.Webhook", LONG)[0]["Id"]
    file = context.place.file(
        "get", f"GET /Svc.Admin.Webhook/Id={first} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    crowd = Crowd(server.port, "/Svc.Admin.Webhook")
    targets = []
    for what, rate in RATES:
        def run(seconds, rate=rate):
            return load.load(context.place, server.port, file, seconds, rate=rate)
        targets += [Target(f"{what}, alone", run, lambda: server.pids),
                    Target(f"{what}, beside them", run, lambda: server.pids, crowd.come, crowd.go)]
    try:
        rows = interleave(targets, context.runs, context.seconds, count_calls=False)
        resident = machine.status(server.process.pid, "VmHWM") / 1024
    finally:
        server.stop()
    for row in rows:
        row.ratio = None  # only pairs are comparable
    rows[-1].note = f"{crowd.note()}; {resident:.0f} MB resident at most"
    return Scenario("slow-clients", f"GET by Id, 64 connections, beside {CLIENTS:,} slow clients", rows,
                    [Goal(f"p99 beside them over p99 alone, {what}", _p99_ratio(*pair), 1.2, False)
                     for (what, _), pair in zip(RATES, (rows[:2], rows[2:]))])


SCENARIOS = {"slow-clients": slow_clients}

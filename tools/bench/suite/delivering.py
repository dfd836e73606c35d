"""Deliveries: events end to end, the time from acknowledgement to receipt, fan-out against other
clients posting the same bytes, long queues."""
import array
import os
import select
import statistics
import subprocess
import time

from . import load, machine, peers, writing
from .measure import Goal, Row, Scenario, Target, interleave, say

SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
PAYLOAD = ('{"Serial":"@@@@@@@@@@","Customer":"someone@example.com","Amount":1250.5,"Country":"NO",'
           '"Lines":[{"Sku":"a","Count":2},{"Sku":"b","Count":1}],"Note":"left at the door"}')
EVENT = '{"Resource":"Bench.Placed","Payload":' + PAYLOAD + "}"
SUSTAINED = 25000
OFFERED = SUSTAINED * 101 // 100  # the rate counts until the last is delivered
FAN_OUT = 100
QUEUED = 5000
FEW = 50
IN_FLIGHT = 64
SETTLE_S = 60


def webhook(receiver, in_flight=IN_FLIGHT):
    return {"Label": "bench", "Destination": receiver.url + "/hook",
            "EventSelector": "/Bench.Placed/Amount>100", "Signing": {"Secrets": [SECRET]},
            "Delivery": {"MaxInFlight": in_flight}}


def deliverer(context, binary, name, receiver, in_flight=IN_FLIGHT, **config):
    """A server of ours with so many connections to the receiver."""
    return peers.Svcd(name, binary, context.place, **config, Delivery={
        "MaxConnectionsPerHost": in_flight, **receiver.delivery})


def _event_file(context):
    return context.place.file("event", writing.request("/Svc.Event", EVENT))


def _read_stamps(path):
    with open(path, "rb") as file:
        file.read(16)
        stamps = array.array("Q")
        stamps.frombytes(file.read())
    return stamps


def lags_us(acknowledged, received):
    """Acknowledgement to receipt; a receipt that came first counts as 0."""
    return sorted(max(0, (r - a) / 1000) for a, r in zip(_read_stamps(acknowledged),
                                                         _read_stamps(received)) if a and r)


def histogram_us(metrics, name, part):
    """The end of the bucket that this part of the observations lies in: the percentile is at most
    that."""
    prefix = name + '_bucket{le="'
    counts = sorted((float(key[len(prefix):-2]), count) for key, count in metrics.items()
                    if key.startswith(prefix))
    return next((end * 1e6 for end, count in counts if count and count >= counts[-1][1] * part),
                None)


class Tally:
    """Whether each delivery came once: what the receiver has counted, against what the server says
    that events have matched. With failed attempts, which are repeated, one that is missing may hide
    behind one that came twice."""

    FAILED = [f'svc_attempts_total{{result="{result}"}}'
              for result in ("rejected", "no_answer", "aborted")]

    def __init__(self, server, receiver):
        self.server = server
        self.receiver = receiver
        self.missing = self.twice = self.failed = 0

    def begin(self):
        self.came = self.receiver.count()
        self.before = self.server.metrics()

    def end(self):
        """When nothing is pending any more: how many errors there were since the beginning."""
        metrics = self.server.settle(SETTLE_S)
        more = int(metrics["svc_matches_total"] - self.before["svc_matches_total"])
        more -= self.receiver.count() - self.came
        failed = int(sum(metrics[name] - self.before[name] for name in self.FAILED))
        self.missing += max(0, more)
        self.twice += max(0, -more)
        self.failed += failed
        return abs(more) + failed

    def note(self):
        return f"{self.missing} missing, {self.twice} sent twice, {self.failed} attempts failed"

    def goal(self):
        return Goal("missing, sent twice or failed", self.missing + self.twice + self.failed, 0,
                    at_least=False)


class Flow:
    """One run of events at a rate (0: as fast as they are taken) to one webhook each."""

    def __init__(self, context, binary, name, rate, seconds, receive):
        slots = int((rate or 100000) * seconds)
        self.rate = rate
        self.receiver = receive(slots)
        self.server = deliverer(context, binary, name, self.receiver)
        self.server.post("/Svc.Admin.Webhook", webhook(self.receiver))
        self.tally = Tally(self.server, self.receiver)
        self.acknowledged = os.path.join(context.place.directory, "acknowledged")
        self.command = load.load_command(context.place, self.server.port, _event_file(context),
                                         seconds, rate=rate, stamps=self.acknowledged,
                                         slots=slots)

    def run(self):
        self.tally.begin()
        cpu = machine.cpu_ns(self.server.pids)
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        memory = []
        while not select.select([process.stdout], [], [], 0.25)[0]:
            memory.append(machine.resident_mb(self.server.process.pid))
        self.behind_at = self.receiver.count()
        self.result = load.read_load(process.communicate()[0])
        self.behind = max(0, self.result.ops - self.behind_at)
        self.received = self.receiver.wait(self.result.ops, SETTLE_S)
        self.cpu_us = (machine.cpu_ns(self.server.pids) - cpu) / 1000 / max(self.received, 1)
        self.result.errors += self.tally.end()
        self.memory = memory
        self.result.p50_us, self.result.p99_us = self._percentile(0.5), self._percentile(0.99)
        return self

    def stop(self):
        self.server.stop()
        self.receiver.stop()

    def _percentile(self, part):
        if self.receiver.stamps is None:
            return histogram_us(self.server.metrics(), "svc_delivery_lag_seconds", part)
        lags = lags_us(self.acknowledged, self.receiver.stamps)
        return lags[int(len(lags) * part)] if lags else None

    def note(self):
        half = len(self.memory) // 2
        grown = statistics.mean(self.memory[-4:]) - statistics.mean(self.memory[half:][:4])
        return (f"{self.behind:,} behind at the end, {self.tally.note()}, "
                f"{self.memory[-1]:.0f} MB, {grown:+.1f} MB in the second half")


def flows(context, name, title, rate, seconds, receive=None):
    """`receive` starts a receiver for so many events."""
    receive = receive or (lambda slots: peers.Receiver(context.place, slots))
    rows = []
    flow = None
    for build, binary in context.builds:
        row = Row(build)
        for number in range(context.runs):
            flow = Flow(context, binary, build, rate, seconds, receive)
            try:
                flow.run()
            finally:
                flow.stop()
            delivered = (flow.received if rate == 0 else flow.behind_at) / flow.result.seconds
            row.add(delivered, flow.result, flow.cpu_us)
            row.note = flow.note()
            say(f"{number + 1}/{context.runs} {build}: {delivered:,.0f}/s, p99 "
                f"{flow.result.p99_us or 0:,.0f} µs, {row.note}")
        rows.append(row)
    for row in rows[1:]:
        row.compare_to(rows[0])
    return Scenario(name, title, rows)


def events(context):
    scenario = flows(context, "events", "Events raised, signed, delivered and logged, durable: "
                     f"{OFFERED:,} a second offered (p50, p99: acknowledgement to receipt)",
                     OFFERED, context.seconds)
    scenario.goals = [Goal("delivered a second", scenario.rows[0].median, SUSTAINED)]
    return scenario


def latency(context):
    rate = SUSTAINED // 2
    scenario = flows(context, "latency", f"The same at {rate:,} a second", rate, context.seconds)
    scenario.goals = [Goal("p99 from acknowledgement to receipt, ms",
                           statistics.median(scenario.rows[0].p99_us) / 1000, 10, at_least=False)]
    return scenario


def raise_events(context, server, count, connections=8):
    """Raises so many events as fast as they are taken."""
    file = _event_file(context)
    return load.load(context.place, server.port, file, 600, connections=connections, count=count)


class FanOut:
    """Events that a number of webhooks match, and when the last delivery was received."""

    def __init__(self, context, binary, name, webhooks, receiver=None, in_flight=IN_FLIGHT,
                 **config):
        self.context = context
        self.receiver = receiver or peers.Receiver(context.place)
        self.server = deliverer(context, binary, name, self.receiver, in_flight, **config)
        self.webhooks = webhooks
        self.name = name
        self.server.post("/Svc.Admin.Webhook", [webhook(self.receiver, in_flight)] * webhooks)

    def run(self, count):
        """Deliveries of `count` events, and the seconds to the last."""
        before = self.receiver.count()
        started = time.monotonic()
        raise_events(self.context, self.server, count)
        received = self.receiver.wait(before + count * self.webhooks, SETTLE_S) - before
        return load.Result(received, time.monotonic() - started,
                           errors=count * self.webhooks - received)

    def stop(self):
        self.server.stop()
        self.receiver.stop()


def _fan_target(fan):
    return Target(fan.name, lambda seconds: fan.run(int(seconds * 500)), lambda: fan.server.pids)


def _client_targets(context, fan):
    """Others that post the bytes of a delivery of ours to the same receiver, from our core."""
    port = fan.receiver.port
    first = fan.receiver.first

    def raw(seconds):
        command = load.load_command(context.place, port, first, seconds)
        command[2] = str(machine.SERVER_CORE)
        return load.read_load(load.run(command))

    def undici(seconds):
        return load.undici(fan.receiver.url, first, seconds)
    return [Target("Node undici Pool.request", undici), Target("a raw client", raw)]


def fanout(context):
    fans = [FanOut(context, binary, name, FAN_OUT) for name, binary in context.builds]
    targets = [_fan_target(fan) for fan in fans]
    try:
        fans[0].run(20)  # connections are open, and the receiver has kept the bytes
        if context.peers:
            targets += _client_targets(context, fans[0])
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(fans)
    goals = [Goal("deliveries a second", rows[0].median, 60000),
             Goal("epoll_ctl a delivery", rows[0].epoll_ctl, 0.01, at_least=False)]
    if context.peers:
        goals += [Goal("ours over undici", rows[-2].ratio, 1.0),
                  Goal("ours over a raw client", rows[-1].ratio, 0.35)]
    return Scenario("fanout", f"Fan-out 1 → {FAN_OUT}: signed deliveries a second", rows, goals)


def _cost_of_queue(fan, at_once, rounds):
    """CPU time a delivery when so many events are raised at once, each to FEW webhooks."""
    cpu, done = machine.cpu_ns(fan.server.pids), 0
    started = time.monotonic()
    for _ in range(rounds):
        done += fan.run(at_once).ops
    spent = machine.cpu_ns(fan.server.pids) - cpu
    return load.Result(done, time.monotonic() - started), spent / 1000 / max(done, 1)


def queue(context):
    rows = []
    for name, binary in context.builds:
        fan = FanOut(context, binary, name, FEW)
        many, few = Row(f"{name}, {QUEUED:,} queued", "µs"), Row(f"{name}, {FEW} queued", "µs")
        try:
            fan.run(20)
            for _ in range(context.runs):
                for row, at_once, rounds in ((many, QUEUED // FEW, 4), (few, 1, 400)):
                    _, cpu_us = _cost_of_queue(fan, at_once, rounds)
                    row.add(cpu_us)
        finally:
            fan.stop()
        many.ratio = few.median / many.median
        rows += [many, few]
    return Scenario("queue", "CPU time a delivery to one host, the event included", rows,
                    [Goal("5,000 queued over 50", rows[0].median / rows[1].median, 1.0,
                          at_least=False)])


SCENARIOS = {"events": events, "latency": latency, "fanout": fanout, "queue": queue}

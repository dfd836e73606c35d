"""Deliveries over https, as almost all webhooks are, and over http beside them. nginx receives and
counts them: each has to come once."""
import collections
import http.client
import json
import time

from . import certificates, delivering, load, machine, peers
from .delivering import SECRET, SETTLE_S, FanOut, Tally
from .measure import Goal, Row, Scenario, Target, interleave, say

WEBHOOKS = 20
OVER_UNDICI = 1.8
SUSTAINED = 20000
OFFERED = SUSTAINED * 101 // 100
AT_ONCE = (64, 128, 256)
IN_FLIGHT_MOST = 300000  # deliveries
HOSTS = 1000
HOSTS_A_POST = 10
RETAINED = 2000
CONNECTIONS = {
    "kept connections": "keepalive_timeout 1h;",
    "new, resumed": "keepalive_timeout 0; ssl_session_cache shared:resumed:16m;",
    "new, not resumed": "keepalive_timeout 0; ssl_session_tickets off; ssl_session_cache off;"}


def _nginx(context, scheme, **options):
    return peers.NginxReceiver(context.place,
                               context.place.certificate if scheme == "https" else None, **options)


class Fan(FanOut):
    """One event to WEBHOOKS webhooks at nginx, over http or https."""

    def __init__(self, context, binary, name, scheme):
        super().__init__(context, binary, name, WEBHOOKS, _nginx(context, scheme))
        self.tally = Tally(self.server, self.receiver)
        self.first = self._first_request()
        self.run(20)  # connections are open
        trial = self.run(500)
        self.events_per_second = trial.ops / trial.seconds / WEBHOOKS
        self.tally = Tally(self.server, self.receiver)  # only what is measured

    def _first_request(self):
        """A file with the bytes of a delivery, which a receiver without TLS has got."""
        receiver = peers.Receiver(self.context.place)
        entity = self.server.post("/Svc.Admin.Webhook", delivering.webhook(receiver))[0]["Id"]
        delivering.raise_events(self.context, self.server, 1)
        self.server.settle(SETTLE_S)
        receiver.stop()
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={entity}")
        return receiver.first

    def run(self, count):
        self.tally.begin()
        result = super().run(count)
        result.errors = self.tally.end()
        return result

    def target(self):
        """Runs for about so long: as long as the rate of the trial holds."""
        return Target(self.name, lambda seconds: self.run(max(1, int(
            seconds * self.events_per_second))), lambda: self.server.pids)

    def undici(self):
        """Signs, and posts to the same nginx from our core."""
        def run(seconds):
            before = self.receiver.count()
            result = load.undici(self.receiver.url, self.first, seconds, secret=SECRET,
                                 authority=self.receiver.delivery.get("CaFile", ""))
            result.errors += abs(self.receiver.count() - before - result.posted)
            return result
        return Target(f"undici {load.undici_version()} Pool.request, HMAC", run)


def _fan_out(context, scheme):
    fans = [Fan(context, binary, name, scheme) for name, binary in context.builds]
    targets = [fan.target() for fan in fans]
    if context.peers:
        targets.append(fans[0].undici())
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(fans)
    for fan, row in zip(fans, rows):
        row.note = fan.tally.note()
    goals = [fans[0].tally.goal()]
    if context.peers:
        goals.append(Goal("ours over undici", rows[-1].ratio, OVER_UNDICI))
    return Scenario(f"fanout-{scheme}", f"Fan-out 1 → {WEBHOOKS} over {scheme} to nginx: signed "
                    "deliveries a second", rows, goals)


def fanout_http(context):
    return _fan_out(context, "http")


def fanout_https(context):
    return _fan_out(context, "https")


def events(context):
    scenario = delivering.flows(
        context, "events-https", f"Events end to end over https: {OFFERED:,} a second offered (p50, "
        "p99: at most, by svc_delivery_lag_seconds)", OFFERED, context.seconds,
        lambda slots: _nginx(context, "https"))
    scenario.goals = [Goal("delivered a second", scenario.rows[0].median, SUSTAINED),
                      Goal("errors", scenario.rows[0].errors, 0, at_least=False)]
    return scenario


class InFlight:
    """Deliveries to one webhook, so many at a time, where the receiver offers HTTP/2."""

    NOTED = "$http_webhook_id $server_protocol"

    def __init__(self, context, binary, name, at_once):
        self.row = Row(f"{name}, {at_once} in flight")
        self.count = min(context.count, IN_FLIGHT_MOST)
        self.longest_ms = self.twice = self.other = 0
        self.start = lambda: FanOut(
            context, binary, name, 1, _nginx(context, "https", http2=True, log=self.NOTED), at_once,
            Retention={"WebhookLogEntries": 2 * self.count})

    def measure(self):
        fan = self.start()
        try:
            tally = Tally(fan.server, fan.receiver)
            tally.begin()
            cpu = machine.cpu_ns(fan.server.pids)
            result = fan.run(self.count)
            cpu = machine.cpu_ns(fan.server.pids) - cpu
            result.errors = tally.end()
            slowest = fan.server.get(
                "/Svc.Admin.WebhookLog/_/order_desc=DurationMs&limit=1&select=DurationMs")[1]
            noted = fan.receiver.take_noted()
        finally:
            fan.stop()
        self.row.add(result.ops / result.seconds, result, cpu / 1000 / max(result.ops, 1))
        self._look_at(json.loads(slowest or "[]"), noted)
        say(f"{self.row.name}: {self.row.values[-1]:,.0f}/s, {self.row.note}")

    def _look_at(self, slowest, noted):
        self.longest_ms = max(self.longest_ms, *(entry["DurationMs"] for entry in slowest), 0)
        came = len({event for event, _ in noted})
        self.twice += len(noted) - came
        protocols = collections.Counter(protocol for _, protocol in noted)
        self.other += len(noted) - protocols["HTTP/1.1"]
        self.row.note = ", ".join(
            [f"longest attempt {self.longest_ms:,} ms", f"{self.twice} sent twice",
             *(f"{count:,} by {protocol}" for protocol, count in protocols.items())] +
            [f"{self.count - came:,} missing"] * (came < self.count))


def in_flight(context):
    cases = [InFlight(context, binary, name, at_once) for name, binary in context.builds
             for at_once in AT_ONCE]
    for _ in range(context.runs):
        for case in cases:
            case.measure()
    longest_ms = max(case.longest_ms for case in cases)
    goals = [Goal("longest attempt, ms", longest_ms, 999, at_least=False),
             Goal("sent twice", sum(case.twice for case in cases), 0, at_least=False),
             Goal("not by HTTP/1.1", sum(case.other for case in cases), 0, at_least=False)]
    return Scenario("https-in-flight", f"{cases[0].count:,} deliveries over https to nginx, which "
                    "offers HTTP/2", [case.row for case in cases], goals)


class Hosts:
    """A thousand names of one nginx, each with a webhook of its own; and one without TLS."""

    NOTED = "$connection $ssl_session_reused"
    PLAIN = -1

    def __init__(self, context, binary, name, directives):
        self.name = name
        self.receiver = _nginx(context, "https", directives=directives, log=self.NOTED)
        self.server = delivering.deliverer(
            context, binary, name, self.receiver, 2 * HOSTS,
            Retention={"WebhookLogEntries": RETAINED, "Events": RETAINED})
        self.server.post("/Svc.Admin.Webhook", [
            {"Destination": self._url(host), "EventSelector": f"/Bench.Placed/Host={host}",
             "Signing": {"Secrets": [SECRET]}} for host in [self.PLAIN, *range(HOSTS)]])
        self.tally = Tally(self.server, self.receiver)
        self.seen = set()
        self.delivered = self.opened = self.resumed = 0

    def _url(self, host):
        if host == self.PLAIN:
            return f"http://127.0.0.1:{self.receiver.plain_port}/hook"
        return f"https://h{host:03}.{certificates.HOSTS}:{self.receiver.port}/hook"

    def raise_for(self, seconds, host=None):
        """HOSTS events a second, evenly, some in each request: one to each host, or all to one.
        Their number."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        began = time.monotonic()
        for at in range(0, int(seconds * HOSTS), HOSTS_A_POST):
            time.sleep(max(0, began + at / HOSTS - time.monotonic()))
            connection.request("POST", "/Svc.Event", json.dumps([
                {"Resource": "Bench.Placed",
                 "Payload": {"Host": number % HOSTS if host is None else host}}
                for number in range(at, at + HOSTS_A_POST)]), {"Prefer": "return=minimal"})
            answer = connection.getresponse()
            answer.read()
            if answer.status != 201:
                raise RuntimeError(f"POST /Svc.Event: {answer.status}")
        connection.close()
        return int(seconds * HOSTS)

    def memory(self):
        """What the first delivery to each host adds, when those to a host that is known add nothing
        any more."""
        self.raise_for(3 * RETAINED / HOSTS, self.PLAIN)
        self.server.settle(SETTLE_S)
        before = machine.resident_mb(self.server.process.pid)
        self.visit()
        grown = machine.resident_mb(self.server.process.pid) - before
        return Row(f"{self.name}: memory of a host", "kB").add(grown * 1024 / HOSTS)

    def visit(self):
        """Each host once: what is kept of a host is there."""
        self.raise_for(1)
        self.server.settle(SETTLE_S)
        self.seen |= {connection for connection, _ in self.receiver.take_noted()}

    def run(self, seconds):
        self.tally.begin()
        before = self.receiver.count()
        began = time.monotonic()
        raised = self.raise_for(seconds)
        came = self.receiver.wait(before + raised, SETTLE_S) - before
        return load.Result(came, time.monotonic() - began, errors=self.tally.end())

    def look(self):
        """At the connections of a round."""
        noted = self.receiver.take_noted()
        opened = {connection: resumed for connection, resumed in noted
                  if connection not in self.seen}
        self.delivered += len(noted)
        self.opened += len(opened)
        self.resumed += sum(resumed == "r" for resumed in opened.values())
        self.seen |= set(opened)

    def target(self):
        return Target(self.name, self.run, lambda: self.server.pids, self.visit, self.look)

    def note(self):
        return (f"{self.delivered:,} deliveries: {self.opened:,} connections opened, "
                f"{self.resumed:,} of them resumed; {self.tally.note()}")

    def stop(self):
        self.server.stop()
        self.receiver.stop()


def hosts(context):
    every = [Hosts(context, binary, f"{name}, {how}", directives)
             for name, binary in context.builds for how, directives in CONNECTIONS.items()]
    try:
        memory = [each.memory() for each in every]
        rows = interleave([each.target() for each in every], context.runs, context.seconds)
    finally:
        context.stop(every)
    for each, row in zip(every, rows):
        row.note = each.note()
        row.ratio = None  # the rate is given
    return Scenario("https-hosts", f"{HOSTS:,} https hosts, a delivery a second each",
                    rows + memory)


SCENARIOS = {"fanout-http": fanout_http, "fanout-https": fanout_https, "events-https": events,
             "https-in-flight": in_flight, "https-hosts": hosts}

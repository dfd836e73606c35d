"""What an operator sees: Svc.Metrics, Svc.Health, and the Status of a webhook."""
import base64
import os
import re
import socket
import subprocess
import time
import unittest

import harness
from test_keys import key

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? (\S+)")
ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


def parse_sample(line):
    """(name, labels, value) of one line."""
    found = SAMPLE.fullmatch(line)
    assert found, line
    labels = {name: re.sub(r'\\["\\n]', lambda m: ESCAPES[m.group(0)], value)
              for name, value in re.findall(LABEL, found.group(2) or "")}
    return found.group(1), labels, float(found.group(found.lastindex))


def check_histogram(name, samples):
    buckets = [(labels["le"], value) for sample, labels, value in samples if sample == f"{name}_bucket"]
    edges = [float(edge) for edge, _ in buckets]
    counts = [value for _, value in buckets]
    rest = {sample: value for sample, _, value in samples if sample != f"{name}_bucket"}
    assert edges == sorted(set(edges)) and buckets[-1][0] == "+Inf", name
    assert counts == sorted(counts), name
    assert set(rest) == {f"{name}_sum", f"{name}_count"}, name
    assert rest[f"{name}_count"] == counts[-1], name


def check_family(name, kind, samples):
    if kind == "histogram":
        check_histogram(name, samples)
        return
    assert all(sample == name for sample, _, _ in samples), name
    assert kind in ("counter", "gauge"), kind
    assert name.endswith("_total") == (kind == "counter"), name


def parse(text):
    """The text format 0.0.4, strictly: each family once, its HELP, its TYPE, its samples. Returns a
    dictionary from `name` or `name{label=value,...}` to the value."""
    families, values = {}, {}
    assert text.endswith("\n")
    lines = text[:-1].split("\n")
    while lines:
        name, text_of_help = re.fullmatch(rf"# HELP ({NAME}) (.+)", lines.pop(0)).groups()
        kind = re.fullmatch(rf"# TYPE {name} (\w+)", lines.pop(0)).group(1)
        assert name not in families and re.fullmatch(r"(?:[^\\]|\\[\\n])*", text_of_help), name
        samples = families[name] = []
        while lines and not lines[0].startswith("#"):
            samples.append(parse_sample(lines.pop(0)))
        check_family(name, kind, samples)
        for sample, labels, value in samples:
            series = sample + ("{" + ",".join(f"{k}={v}" for k, v in labels.items()) + "}" if labels else "")
            assert series not in values, series
            values[series] = value
    return values


class Watched(harness.ServerCase):
    keeps_connections = False

    def scrape(self, headers=None):
        answer = self.get("/Svc.Metrics", headers)
        self.assertEqual(answer.status, 200, answer)
        return parse(answer.body.decode())

    def moved(self, before, *prefixes):
        """The counters that moved since, of those whose names begin so."""
        return {name: value - before.get(name, 0) for name, value in self.scrape().items()
                if name.startswith(prefixes) and value != before.get(name, 0)}

    def wait_for(self, series, value):
        harness.wait_until(lambda: self.scrape().get(series) == value, f"{series} is {value}")

    def subscribe(self, destination, **members):
        return self.webhook(Destination=destination, EventSelector="/Shop.OrderPlaced", **members)

    def raise_event(self, **payload):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": payload})

    def status(self, webhook):
        entity, = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}/add=Status").json()
        return entity["Status"]

    def wait_for_state(self, webhook, state):
        return harness.wait_until(lambda: (s := self.status(webhook))["State"] == state and s,
                                  f"the webhook is {state}")


class Metrics(Watched):
    def test_the_answer(self):
        answers = [self.server.request(method, "/Svc.Metrics", headers={"Accept": "*/*"})
                   for method in ("GET", "GET", "HEAD")]
        for answer in answers:
            self.assertEqual(answer.status, 200)
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        values = [parse(answer.body.decode()) for answer in answers[:2]]
        self.assertEqual([value["svc_build_info{version=0.1.0}"] for value in values], [1, 1])
        self.assertGreater(int(answers[2].headers["Content-Length"]), 1000)
        self.assertEqual(answers[2].body, b"")
        self.assertEqual(self.post("/Svc.Metrics", {}).status, 405)
        accept = {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"}
        self.scrape(accept)
        listed = {entry["Name"]: entry for entry in self.get("/").json()}
        self.assertEqual(listed["Svc.Metrics"]["Kind"], "BinaryResource")

    def test_requests_are_counted(self):
        before = self.scrape()
        for _ in range(3):
            self.get("/Shop.Message")
        self.created("/Shop.Message", {"Text": "x"})
        self.get("/Nowhere")
        self.server.request("PATCH", "/Shop.Message/Nope!", {})
        self.server.request("BREW", "/Shop.Message")
        self.server.raw(b"GET / HTTP/1.1\r\n\r\n")
        moved = self.moved(before, "svc_requests_total", "svc_errors_total", "svc_request_seconds_count")
        self.assertEqual(moved, {
            "svc_requests_total{method=GET,status=200}": 1,  # the first scrape
            "svc_requests_total{method=GET,status=204}": 3,
            "svc_requests_total{method=POST,status=201}": 1,
            "svc_requests_total{method=GET,status=404}": 1,
            "svc_requests_total{method=PATCH,status=400}": 1,
            "svc_requests_total{method=other,status=501}": 1,
            "svc_requests_total{method=other,status=400}": 1,
            "svc_errors_total{code=UnknownResource}": 1,
            "svc_errors_total{code=InvalidConditionSyntax}": 1,
            "svc_errors_total{code=UnknownMethod}": 1,
            "svc_errors_total{code=InvalidUriSyntax}": 1,
            "svc_request_seconds_count": 9,
        })

    def test_connections_are_counted(self):
        def alone():
            values = self.scrape()
            return values["svc_connections_open"] == 1 and values

        def settled():
            return harness.wait_until(alone, "no other connection is open")
        before = settled()
        held = socket.create_connection(("127.0.0.1", self.server.port))
        self.wait_for("svc_connections_open", 2)
        held.close()
        after = settled()
        accepted = "svc_connections_accepted_total"
        closed = sum(value - before[name] for name, value in after.items()
                     if name.startswith("svc_connections_closed_total"))
        self.assertEqual(after[accepted] - before[accepted], closed)

    def test_events_and_matching(self):
        receiver = self.receiver()
        for total in (10, 10, 20):
            self.webhook(Destination=receiver.url(), EventSelector=f"/Shop.OrderPlaced/Total>{total}")
        before = self.scrape()
        for total in (5, 15, 25):
            self.raise_event(Total=total)
        self.wait_for("svc_deliveries_total{outcome=Delivered}", 5)
        moved = self.moved(before, "svc_events_total", "svc_matches_total", "svc_deliveries_total",
                           "svc_attempts_total", "svc_attempt_seconds_count",
                           "svc_delivery_lag_seconds_count")
        self.assertEqual(moved, {
            "svc_events_total": 3, "svc_matches_total": 5,
            "svc_deliveries_total{outcome=Delivered}": 5, "svc_attempts_total{result=success}": 5,
            "svc_attempt_seconds_count": 5, "svc_delivery_lag_seconds_count": 5,
        })
        examined = self.moved(before, "svc_selectors_examined_total", "svc_predicates_evaluated_total")
        self.assertGreaterEqual(examined["svc_selectors_examined_total"], 5)
        self.assertGreater(examined["svc_predicates_evaluated_total"], 0)
        self.assertEqual(self.scrape()["svc_events_kept"], 3)

    def test_outcomes_and_results(self):
        answers = iter([500, 200])
        receiver = self.receiver(lambda request: next(answers))
        self.subscribe(receiver.url(), Delivery={"RetrySchedule": [0.4]})
        self.subscribe(harness.nobody(), Delivery={"RetrySchedule": []})
        self.subscribe(receiver.url(), CustomPayloadRequest={"URI": "/Shop.Message/a=1",
                                                             "BreakOnNoContent": True})
        before, began = self.scrape(), time.monotonic()
        self.raise_event()
        for outcome in ("Delivered", "Dead", "Aborted"):
            self.wait_for(f"svc_deliveries_total{{outcome={outcome}}}", 1)
        self.assertEqual(self.moved(before, "svc_attempts_total"), {
            "svc_attempts_total{result=success}": 1, "svc_attempts_total{result=rejected}": 1,
            "svc_attempts_total{result=no_answer}": 1, "svc_attempts_total{result=aborted}": 1,
        })
        after = self.scrape()
        self.assertEqual({state: after[f"svc_deliveries_kept{{state={state}}}"]
                          for state in ("Pending", "InFlight", "Waiting", "Delivered", "Dead", "Aborted")},
                         {"Pending": 0, "InFlight": 0, "Waiting": 0, "Delivered": 1, "Dead": 1, "Aborted": 1})
        lag = after["svc_delivery_lag_seconds_sum"]
        self.assertTrue(0.4 <= lag < time.monotonic() - began, lag)
        buckets = {float(sample[len("svc_delivery_lag_seconds_bucket{le="):-1]): value for sample, value in after.items()
                   if sample.startswith("svc_delivery_lag_seconds_bucket{")}
        self.assertEqual(buckets, {bound: lag <= bound for bound in buckets})
        self.assertGreater(len(buckets), 2)

    def test_the_lag_is_the_servers(self):
        """It is counted from when the event was taken, whatever a client writes for its Time."""
        receiver, began = self.receiver(), time.monotonic()
        self.subscribe(receiver.url())
        for number, when in enumerate(("1999-01-01T00:00:00Z", "2999-01-01T00:00:00Z")):
            event = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Time": when,
                                                "Payload": {"No": 1, "Time": when}})
            self.assertNotEqual(event["Time"][:4], when[:4])
            self.wait_for("svc_deliveries_total{outcome=Delivered}", number + 1)
        after = self.scrape()
        self.assertEqual(after["svc_delivery_lag_seconds_count"], 2)
        self.assertTrue(0 < after["svc_delivery_lag_seconds_sum"] < time.monotonic() - began)

    def test_the_queue(self):
        receiver = self.receiver(lambda request: 500)
        webhook = self.subscribe(receiver.url(), Delivery={"RetrySchedule": [0.3, 60]})
        self.assertEqual(self.scrape()["svc_delivery_oldest_seconds"], 0)
        began = time.monotonic()
        self.raise_event()
        receiver.take()
        receiver.take()
        self.wait_for("svc_deliveries_kept{state=Waiting}", 1)
        values = self.scrape()
        self.assertEqual(values["svc_deliveries_pending"], 1)
        self.assertTrue(0.3 <= values["svc_delivery_oldest_seconds"] < time.monotonic() - began,
                        "its event, not its last attempt")
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": True})
        self.wait_for("svc_webhooks_paused", 1)
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        self.wait_for("svc_webhooks_paused", 0)
        self.wait_for("svc_deliveries_pending", 0)
        self.assertEqual(self.scrape()["svc_delivery_oldest_seconds"], 0)

    def test_gauges_survive_a_restart(self):
        receiver = self.receiver(lambda request: 500)
        self.subscribe(receiver.url(), Delivery={"RetrySchedule": [60]})
        self.subscribe(receiver.url(), IsPaused=True)
        self.raise_event()
        self.wait_for("svc_deliveries_kept{state=Waiting}", 1)
        names = ("svc_deliveries_pending", "svc_webhooks_paused", "svc_events_kept",
                 "svc_store_entities{resource=Svc.Admin.Webhook}")
        before = self.scrape()
        self.server.kill()
        self.server.start()
        after = self.scrape()
        self.assertEqual([after[name] for name in names], [before[name] for name in names])
        self.assertEqual([after[name] for name in names], [1, 1, 1, 2])
        self.assertGreater(after["svc_delivery_oldest_seconds"], before["svc_delivery_oldest_seconds"])
        self.assertEqual(after["svc_events_total"], 0, "a counter counts since the start")

    def test_the_journal_and_the_process(self):
        self.created("/Shop.Message", {"No": 0})  # what the start wrote is committed then, too
        before = self.scrape()
        for number in range(5):
            self.created("/Shop.Message", {"No": number})
        after = self.scrape()
        self.assertEqual(after["svc_journal_commits_total"] - before["svc_journal_commits_total"], 5)
        self.assertEqual(after["svc_journal_sync_seconds_count"], after["svc_journal_commits_total"])
        self.assertEqual(after["svc_journal_appended_bytes_total"]
                         - before["svc_journal_appended_bytes_total"], 5 * 4096)
        self.assertGreater(after["svc_journal_live_bytes"], before["svc_journal_live_bytes"])
        self.assertGreaterEqual(after["svc_journal_bytes"], 1 << 20)
        self.assertEqual(after["svc_store_entities{resource=Shop.Message}"], 6)
        self.assertGreater(after["svc_resident_bytes"], 1 << 20)
        self.assertGreaterEqual(after["svc_cpu_seconds_total"], before["svc_cpu_seconds_total"])
        self.assertLess(abs(after["svc_start_time_seconds"] - time.time()), 60)


class Worst(Watched):
    """svc_webhook_*: the 20 webhooks with the most failures."""

    def series(self, name):
        found = {}
        for sample, value in self.scrape().items():
            match = re.fullmatch(rf"svc_webhook_{name}{{webhook=(.+)}}", sample)
            if match:
                found[match.group(1)] = value
        return found

    def test_those_that_fail_are_told_apart(self):
        bad, good = self.receiver(lambda request: 500), self.receiver()
        settings = {"EventSelector": "/Shop.OrderPlaced", "Delivery": {"RetrySchedule": [0.01, 3600]}}
        failing = self.webhook(Destination=bad.url(), **settings)["Id"]
        self.webhook(Destination=good.url(), **settings)
        self.assertEqual(self.series("failures_total"), {})
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})
        harness.wait_until(lambda: self.series("failures_total") == {failing: 2}, "two attempts have failed")
        self.assertEqual(self.series("attempts_total"), {failing: 2})
        self.assertEqual(self.series("pending"), {failing: 1})
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={failing}")
        self.assertEqual(self.series("failures_total"), {})

    def test_of_many_only_the_worst(self):
        bad = self.receiver(lambda request: 500)
        hooks = [{"Destination": bad.url(), "EventSelector": f"/Shop.OrderPlaced/Total<{number}", "Label": str(number),
                  "Delivery": {"RetrySchedule": []}} for number in range(1, 31)]
        self.assertEqual(self.post("/Svc.Admin.Webhook", hooks).status, 201)
        labels = {hook["Id"]: int(hook["Label"]) for hook in self.get("/Svc.Admin.Webhook").json()}
        for total in range(30):
            self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": total}})
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.WebhookLog").json()[0]["Count"] == 465,
                           "all have failed")
        failures = {labels[webhook]: value for webhook, value in self.series("failures_total").items()}
        self.assertEqual(failures, {number: number for number in range(11, 31)})


class Limits(Watched):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"BodyBytes": 1000, "UriBytes": 200, "HeaderBytes": 1000, "Connections": 5,
                            "PendingDeliveries": 1, "HeaderSeconds": 1}
        return config

    def test_hits_are_counted(self):
        before = self.scrape()
        self.post("/Shop.Message", "[" + " " * 1000 + "]")
        self.get("/Shop.Message/a=" + "x" * 200)
        self.get("/Shop.Message", {"X-Long": "x" * 1000})
        self.subscribe("http://127.0.0.1:1/")
        self.raise_event()
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        self.assertIn(b" 408 ", self.server.raw(b"GET / HTTP/1.1\r\n"))
        held = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(5)]
        for connection in held:
            connection.sendall(b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n")  # none is idle
        self.assertEqual(self.get("/").status, 503)
        for connection in held:
            connection.close()
        harness.wait_until(lambda: self.get("/").status == 200, "there is room")
        moved = self.moved(before, "svc_limit_hits_total")
        self.assertGreaterEqual(moved.pop("svc_limit_hits_total{limit=Connections}"), 1)
        self.assertEqual(moved, {
            f"svc_limit_hits_total{{limit={limit}}}": 1 for limit in
            ("BodyBytes", "UriBytes", "HeaderBytes", "PendingDeliveries", "HeaderSeconds")})


class Cardinality(Watched):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Resources"] += [{"Name": f"Many.R{number:04}", "Kind": "EntityResource"}
                                for number in range(2000)]
        return config

    def test_the_text_stays_small(self):
        self.created("/Many.R0000", {"a": 1})
        self.created("/Many.R1999", [{"a": 1}, {"a": 2}])
        values = self.scrape()
        self.assertLess(len(self.get("/Svc.Metrics").body), 100_000)
        entities = {name: value for name, value in values.items() if name.startswith("svc_store_entities")}
        self.assertEqual(len(entities), 201)
        self.assertIn("svc_store_entities{resource=Svc.Admin.Webhook}", entities, "our own come first")
        self.assertEqual(entities["svc_store_entities{resource=Many.R0000}"], 1)
        self.assertEqual(entities["svc_store_entities{resource=_other}"], 2)


class Rights(Watched):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [key("prometheus", "secret-1", (["Svc.Metrics"], ["GET"])),
                             key("probe", "secret-2", (["Svc.Health"], ["GET"]))]
        return config

    def test_both_need_a_right(self):
        basic = {"Authorization": "Basic " + base64.b64encode(b"any:secret-1").decode()}
        probe = {"Authorization": "apikey secret-2"}
        self.assertIn("svc_events_total", self.scrape(basic))
        self.assertEqual(self.get("/Svc.Health", probe).json(), {"Status": "ok"})
        for target, headers, status in [("/Svc.Metrics", {}, 401), ("/Svc.Health", {}, 401),
                                        ("/Svc.Metrics", probe, 403), ("/Svc.Health", basic, 403)]:
            self.assertEqual(self.get(target, headers).status, status, target)


class Health(Watched):
    def test_ok(self):
        for method in ("GET", "HEAD"):
            for accept in ("*/*", "text/html", "application/json"):
                answer = self.server.request(method, "/Svc.Health", headers={"Accept": accept})
                self.assertEqual(answer.status, 200, (method, accept))
                self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertEqual(self.get("/Svc.Health").json(), {"Status": "ok"})

    def test_draining(self):
        """A connection that had begun a request before the drain hears of it, then is closed."""
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=harness.DEADLINE_S) as s:
            s.sendall(b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\n")
            for _ in range(2):
                self.get("/Svc.Health")  # what came before it has been read then
            self.server.process.terminate()
            harness.wait_until(lambda: any("draining" in line for line in self.server.log), "it drains")
            s.sendall(b"\r\n")
            received = b""
            while part := s.recv(65536):
                received += part
        self.assertTrue(received.startswith(b"HTTP/1.1 503 "), received)
        self.assertIn(b"Connection: close\r\n", received)
        self.assertTrue(received.endswith(b'{"Status":"failing","Reasons":["shutting down"]}'), received)
        self.assertEqual(self.server.process.wait(harness.DEADLINE_S), 0)


class Memory(Watched):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"MemoryBytes": 4000000}
        return config

    def test_past_the_limit(self):
        for size in (100000, 10):
            while self.post("/Shop.Message", {"Text": "x" * size}).status == 201:
                pass
        for _ in range(20):  # over the limit also without a body being read: errors are stored
            self.get("/nowhere")
        answer = self.get("/Svc.Health")
        self.assertEqual((answer.status, answer.json()),
                         (503, {"Status": "failing", "Reasons": ["the limit MemoryBytes is reached"]}))
        self.assertGreaterEqual(self.scrape()["svc_limit_hits_total{limit=MemoryBytes}"], 1)
        self.assertGreater(self.scrape()["svc_heap_bytes"], 4000000)
        self.server.request("DELETE", "/Shop.Message/_/unsafe=true")
        harness.wait_until(lambda: self.get("/Svc.Health").status == 200, "it is well again")


def has_faults():
    """Were the named faults compiled in? Then a malformed list is noticed."""
    result = subprocess.run([harness.SVCD, "--check"], env=dict(os.environ, SVCD_FAULT="?"),
                            capture_output=True, text=True, check=False)
    return "malformed" in result.stderr


@unittest.skipUnless(has_faults(), "built without faults")
class FullDisk(Watched):
    env = {"SVCD_FAULT": "disk.allocate:2+"}

    def make_config(self):
        return dict(super().make_config() or harness.load_config(harness.SHOP), SegmentBytes=65536)

    def test_it_is_told(self):
        def is_told():
            """Towards the end of a segment the next one is wanted."""
            self.post("/Shop.Message", {"Text": "x" * 5000})
            return self.get("/Svc.Health").status == 503
        harness.wait_until(is_told, "it is noticed")
        self.assertEqual(self.get("/Svc.Health").json(),
                         {"Status": "failing", "Reasons": ["the disk is full"]})
        self.assertEqual(self.scrape()["svc_journal_full"], 1)


class Status(Watched):
    def test_a_new_webhook(self):
        webhook = self.subscribe("http://127.0.0.1:1/")
        self.assertNotIn("Status", webhook)
        self.assertEqual(self.status(webhook), {
            "State": "Active", "Reason": None, "HeldBackUntil": None, "FailingSince": None, "Pending": 0,
            "InFlight": 0, "Waiting": 0, "OldestTime": None, "NextAttemptTime": None, "RecentAttempts": 0,
            "SuccessRate": None, "LastSuccessTime": None, "LastFailureTime": None, "LastError": None})

    def test_where_it_can_be_asked_for(self):
        self.subscribe("http://127.0.0.1:1/", Label="a")
        answer = self.get("/Svc.Admin.Webhook/_/add=status&select=Label,Status")
        self.assertEqual([list(entity) for entity in answer.json()], [["Label", "Status"]])
        renamed = self.get("/Svc.Admin.Webhook/_/add=Status&select=Label").json()
        self.assertEqual(renamed, [{"Label": "a"}])
        self.assertEqual(self.get("/Svc.Admin.Webhook/Status=null").status, 204)
        selected = self.get("/Svc.Admin.Webhook/Status.State=Active/order_asc=Status.Pending&select=Status").json()
        self.assertEqual([list(entity) for entity in selected], [["Status"]])
        self.server.request("PATCH", "/Svc.Admin.Webhook/Label=a", {"Status": {"State": "Paused"}})
        self.assertNotIn("Status", self.get("/Svc.Admin.Webhook").json()[0])

    def test_paused(self):
        answers = iter([410])
        receiver = self.receiver(lambda request: next(answers))
        gone = self.subscribe(receiver.url())
        self.raise_event()
        status = self.wait_for_state(gone, "Paused")
        self.assertIn("410", status["Reason"])
        by_hand = self.subscribe(receiver.url(), IsPaused=True)
        self.assertEqual(self.status(by_hand)["Reason"], "IsPaused is set")

    def test_paused_with_the_event_that_it_is_about(self):
        """What is queued waits too, also after a restart."""
        receiver = self.receiver(lambda request: 500)
        self.created("/Svc.Admin.Resource", {"Name": "Shop.Passing", "Kind": "EventResource"})
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.Passing",
                               Delivery={"RetrySchedule": [0.5] * 32})
        self.created("/Svc.Event", {"Resource": "Shop.Passing", "Payload": {}})
        receiver.take()
        answer = self.server.request("DELETE", "/Svc.Admin.Resource/Name=Shop.Passing")
        self.assertEqual(answer.status, 200, answer)
        for _ in range(2):
            status = self.wait_for_state(webhook, "Paused")
            self.assertIn("Shop.Passing", status["Reason"])
            self.assertIsNone(status["NextAttemptTime"])
            self.assertEqual(self.scrape()["svc_webhooks_paused"], 1)
            self.settle()
            receiver.forget()  # what was attempted before
            self.assertTrue(receiver.nothing(0.8))
            self.server.kill()
            self.server.start()

    def test_held_back(self):
        receiver = self.receiver(lambda request: (503, {"Retry-After": "600"}, b""))
        webhook = self.subscribe(receiver.url())
        event = self.raise_event()
        status = self.wait_for_state(webhook, "HeldBack")
        self.assertIn("Retry-After", status["Reason"])
        self.assertGreater(status["HeldBackUntil"], event["Time"])
        self.assertGreaterEqual(status["NextAttemptTime"], status["HeldBackUntil"])
        self.assertEqual((status["Waiting"], status["OldestTime"]), (1, event["Time"]))
        self.raise_event()
        status = self.status(webhook)
        self.assertEqual((status["Pending"], status["Waiting"]), (1, 1))
        self.assertEqual(status["NextAttemptTime"], status["HeldBackUntil"])

    def test_failing_and_well_again(self):
        answers = {"now": 500}
        receiver = self.receiver(lambda request: answers["now"])
        webhook = self.subscribe(receiver.url(), Delivery={"RetrySchedule": [60]})
        first = self.raise_event()
        self.wait_for_state(webhook, "Failing")
        second = self.raise_event()
        harness.wait_until(lambda: self.status(webhook)["Waiting"] == 2, "both have failed")
        status = self.status(webhook)
        self.assertEqual((status["RecentAttempts"], status["SuccessRate"]), (2, 0))
        self.assertEqual((status["LastError"], status["OldestTime"]),
                         ("answered 500 Internal Server Error", first["Time"]))
        self.assertGreater(status["NextAttemptTime"], second["Time"])
        self.server.kill()
        self.server.start()
        again = self.status(webhook)
        self.assertEqual((again["State"], again["FailingSince"]), ("Failing", status["FailingSince"]))
        self.assertEqual((again["RecentAttempts"], again["LastError"]), (0, None))
        answers["now"] = 200
        target = f"/Svc.Admin.Delivery/EventId={first['Id']}"
        self.server.request("PATCH", target, {"State": "Pending"})
        status = self.wait_for_state(webhook, "Active")
        self.assertEqual((status["FailingSince"], status["SuccessRate"]), (None, 1))
        self.assertEqual((status["Waiting"], status["OldestTime"]), (1, second["Time"]))

    def test_the_success_rate(self):
        answers = iter([200, 500, 200, 200])
        receiver = self.receiver(lambda request: next(answers))
        webhook = self.subscribe(receiver.url(), Delivery={"RetrySchedule": [], "Ordered": True})
        for _ in range(4):
            self.raise_event()
        harness.wait_until(lambda: self.status(webhook)["RecentAttempts"] == 4, "all are attempted")
        status = self.status(webhook)
        self.assertEqual((status["SuccessRate"], status["OldestTime"]), (0.75, None))
        self.assertLess(status["LastFailureTime"], status["LastSuccessTime"])

    def test_throttled(self):
        busy = self.receiver(lambda request: time.sleep(600))
        cases = [({"MaxInFlight": 1}, "MaxInFlight"), ({"Ordered": True}, "Ordered"),
                 ({"RatePerSecond": 0.0001}, "RatePerSecond")]
        webhooks = [self.subscribe(busy.url(), Delivery=dict(delivery, TimeoutSeconds=600)) for delivery, _ in cases]
        self.raise_event()
        self.raise_event()
        for webhook, (_, reason) in zip(webhooks, cases):
            status = self.wait_for_state(webhook, "Throttled")
            self.assertIn(reason, status["Reason"])
            self.assertEqual((status["Pending"], status["InFlight"]), (1, 1))
        for webhook in webhooks:
            self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")


if __name__ == "__main__":
    unittest.main()

"""Deliveries to receivers that misbehave: each attempt ends in time, with words for what happened, without
the server's memory growing, and without a healthy receiver noticing."""
import datetime
import gzip
import time
import unittest
import zlib

import harness
import hostile
from hostile import HEAD, Hostile, Names, memory_kib

TIMEOUT_S = 3
MEMORY_KIB = 64 * 1024
SENT_MOST = 64 << 20  # what fits into the buffers of many sockets, far from endless
TIMED_OUT = f"{TIMEOUT_S}000 ms were over while "
FORGED = b"HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n"


def answering(data, then=None):
    """Answers each request of a connection with bytes; then closes, or does what `then` says."""
    def script(c):
        while True:
            c.read()
            c.send(data)
            if then is None:
                return
            then(c)
    return script


def with_length(status, body=b"", headers=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


def reset_after_head(c):
    c.read_head()
    c.reset()


def zeros(wbits):
    """128 MiB, packed into some 128 KiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(128)) + packer.flush()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


# What a receiver does -> status of the answer, words of the Error (None: there is none), does it last
# until the time-out? A status of 200 delivers, all else is dead at once: there are no retries here.
CASES = {
    "ends at once": (lambda c: None, None, "Empty reply|reset|closed|Broken pipe", False),
    "resets at once": (lambda c: c.reset(), None, "reset|Broken pipe|connect", False),
    "resets after the head": (reset_after_head, None, "reset|Broken pipe|Empty reply", False),
    "resets after the request": (answering(b"", lambda c: c.reset()), None, "reset", False),
    "ends after the request": (answering(b""), None, "Empty reply", False),
    "resets in the head": (answering(HEAD + b"X: y", lambda c: c.reset()), None, "reset|ended in the head",
                           False),
    "ends in the head": (answering(HEAD + b"X: y"), None, "connection ended in the head", False),
    "resets in the body": (answering(HEAD + b"Content-Length: 9\r\n\r\nhello", lambda c: c.reset()), 200,
                           "reset|remaining", False),
    "ends in the body": (answering(HEAD + b"Content-Length: 9\r\n\r\nhello"), 200, "4 bytes remaining",
                         False),
    "fails in the body": (answering(b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\nhello"), 500,
                          "4 bytes remaining", False),
    "announces too little": (answering(HEAD + b"Content-Length: 2\r\n\r\nhello" + FORGED), 200, None,
                             False),
    "announces nonsense": (answering(HEAD + b"Content-Length: -2\r\n\r\nhello"), None, "Content-Length",
                           False),
    "endless body": (answering(HEAD + b"\r\n", lambda c: c.repeat(b"x" * 65536)), 200, None, False),
    "endless chunks": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
                                 lambda c: c.repeat(chunk(b"y" * 4096))), 200, None, False),
    "endless chunk extension": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;",
                                          lambda c: c.repeat(b"x" * 4096)), 200, "far more bytes came",
                                False),
    "endless headers": (answering(HEAD, lambda c: c.repeat(b"Some-Header: some value\r\n" * 100)), None,
                        "head of the answer is longer than 64 KiB", False),
    "endless header": (answering(HEAD + b"X: ", lambda c: c.repeat(b"y" * 4096)), None,
                       "head of the answer is longer than 64 KiB", False),
    "endless trailers": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n",
                                   lambda c: c.repeat(b"Some-Header: some value\r\n" * 100)), 200,
                         "head of the answer is longer than 64 KiB", False),
    "trickles a head": (answering(HEAD, lambda c: c.trickle(b"X: y\r\n")), None, TIMED_OUT + "waiting",
                        True),
    "trickles a body": (answering(HEAD + b"Content-Length: 99999\r\n\r\n", lambda c: c.trickle(b"x")), 200,
                        TIMED_OUT + "reading the answer", True),
    "silent": (answering(b"", lambda c: c.hang()), None, TIMED_OUT + "waiting for the answer", True),
    "never reads": (lambda c: time.sleep(TIMEOUT_S * 2), None, TIMED_OUT + "waiting for the answer", True),
    "interim answers": (answering(b"", lambda c: c.repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n")), None,
                        "more than 16 interim answers", False),
    "speaks no HTTP": (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), None, "not HTTP", False),
    "NUL in a header": (answering(HEAD + b"X: a\0b\r\nContent-Length: 0\r\n\r\n"), None, "Nul byte", False),
    "odd bytes in headers": (answering(b"HTTP/1.1 200 \xff\xfe\x01\r\nX: \x01\x7f\xff\r\n"
                                       b"Content-Length: 0\r\n\r\n"), 200, None, False),
    "odd bytes in a name": (answering(HEAD + b"X\xff: y\r\nContent-Length: 0\r\n\r\n"), None,
                            "Invalid header token", False),
    "redirects to itself": (answering(with_length(b"302 Found", headers=b"Location: /hook\r\n")), 302,
                            "302 Found", False),
    "redirects elsewhere": (answering(with_length(b"307 Go", headers=b"Location: http://169.254.169.254/\r\n")),
                            307, "307 Temporary Redirect", False),
    "a bomb": (answering(HEAD + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(bytes(1 << 24))),
               200, None, False),
    "a bomb in the transfer": (answering(HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n"
                                         + chunk(zeros(31)) + b"0\r\n\r\n"), None,
                               "Transfer-Encoding that was not asked for", False),
    "not text": (answering(with_length(b"200 OK", bytes(range(256)) * 30)), 200, None, False),
    "switches protocols": (answering(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x01\x02"), None,
                           "ended in the head|Unsupported|101", False),
}


class Hostility(harness.ServerCase):
    """Subscriptions to receivers of any kind, and what the server tells of them."""

    env = hostile.ENVIRONMENT

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Delivery={"MaxInFlight": 128, "ConnectSeconds": 5})

    def hostile(self, script, **options):
        receiver = Hostile(script, **options)
        self.addCleanup(receiver.close)
        return receiver

    def subscribe(self, url, schedule=(), **delivery):
        return self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced",
                            Delivery=dict(delivery, TimeoutSeconds=TIMEOUT_S, RetrySchedule=schedule))

    def raise_event(self, number=0):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number}})

    def log_of(self, webhook, count=1):
        """The webhook's log, when it has so many entries."""
        def entries():
            answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
            return answer.status == 200 and len(answer.json()) >= count and answer.json()
        return harness.wait_until(entries, f"{count} log entries")

    def delivery_of(self, webhook):
        return self.get(f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}").json()[0]

    def expect_bounded_memory(self, before):
        self.assertLess(memory_kib(self.server.process.pid, "VmHWM") - before, MEMORY_KIB)

    def memory(self):
        return memory_kib(self.server.process.pid, "VmRSS")


class BadAnswers(Hostility):
    def expect_outcome(self, webhook, status, words, lasts):
        entry, = self.log_of(webhook)
        delivery = self.delivery_of(webhook)
        is_success = status == 200
        self.assertEqual(entry["StatusCode"], status, entry)
        self.assertEqual(entry["IsSuccess"], is_success, entry)
        self.assertEqual(delivery["State"], "Delivered" if is_success else "Dead", entry)
        self.assertEqual((delivery["Attempts"], delivery["LastError"]), (1, entry["Error"]))
        if words is None:
            self.assertIsNone(entry["Error"])
        else:
            self.assertRegex(entry["Error"] or "", words)
        self.assertLessEqual(len((entry["ResponseBody"] or "").encode()), 3 * 4096)
        self.expect_times(entry, lasts)

    def expect_times(self, entry, lasts):
        phases = [ms for ms in (entry[name] for name in
                                ("DnsMs", "ConnectMs", "FirstByteMs", "DurationMs")) if ms]
        self.assertEqual(phases, sorted(phases), entry)
        if lasts:
            self.assertGreaterEqual(entry["DurationMs"], TIMEOUT_S * 1000 - 50)
            self.assertLess(entry["DurationMs"], TIMEOUT_S * 1000 + 3000)
        else:
            self.assertLess(entry["DurationMs"], TIMEOUT_S * 1000, entry)

    def test_each_has_its_outcome_and_none_delays_another(self):
        """All at once: while the worst of them last, a healthy receiver gets what is for it."""
        healthy = self.receiver()
        hanging = {}
        for what, (script, *expected) in CASES.items():
            receiver = self.hostile(script)
            hanging[what] = receiver, self.subscribe(receiver.url()), expected
        good = self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        before = self.memory()
        self.raise_event()
        for number in range(20):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        self.assertTrue(self.get("/Svc.Admin.Delivery/State=InFlight").json(), "they still hang")
        for what, (receiver, webhook, expected) in hanging.items():
            with self.subTest(what):
                self.expect_outcome(webhook, *expected)
                self.assertLessEqual(len(receiver.requests), 1)
                self.assertEqual(receiver.connections, 1)
                self.assertLess(receiver.sent, SENT_MOST, what)
        self.assertEqual({entry["IsSuccess"] for entry in self.log_of(good, 20)}, {True})
        self.expect_bounded_memory(before)
        hostile.expect_clean_end(self)

    def test_floods_of_many_attempts_leave_no_memory_behind(self):
        """Two hundred attempts, each answered without end."""
        receiver = self.hostile(answering(b"HTTP/1.1 500 Oh\r\n\r\n", lambda c: c.repeat(b"x" * 65536)))
        webhook = self.subscribe(receiver.url())
        before = self.memory()
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(200)])
        entries = self.log_of(webhook, 200)
        self.assertEqual({(entry["StatusCode"], len(entry["ResponseBody"])) for entry in entries}, {(500, 4096)})
        self.expect_bounded_memory(before)


class Holds(Hostility):
    def test_a_huge_retry_after_holds_for_a_day(self):
        """Longer than asked never, but for more than a day neither."""
        day = datetime.timedelta(days=1)
        asked = [b"86401", b"99999999999999999999999999", b"Fri, 31 Dec 9999 23:59:59 GMT"]
        for value in asked:
            with self.subTest(value):
                answer = with_length(b"503 No", headers=b"Retry-After: " + value + b"\r\n")
                receiver = self.hostile(answering(answer))
                webhook = self.subscribe(receiver.url(), schedule=[0.01, 0.01])
                began = datetime.datetime.now(datetime.timezone.utc)
                self.raise_event()
                self.log_of(webhook)
                at = datetime.datetime.fromisoformat(self.delivery_of(webhook)["NextAttemptTime"][:26] + "+00:00")
                now = datetime.datetime.now(datetime.timezone.utc)
                self.assertLessEqual(began + day - datetime.timedelta(seconds=1), at)
                self.assertLessEqual(at, now + day)
                self.raise_event()
                time.sleep(0.1)
                self.assertEqual(len(receiver.requests), 1, "the whole webhook is held back")
                self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")


class KeptConnections(Hostility):
    def make_config(self):
        return dict(super().make_config(), Delivery={"MaxConnectionsPerHost": 1})

    def serve_then(self, last):
        """Answers the first request of the first connection and gives the second to `last`; other
        connections are served well."""
        def script(c):
            while True:
                c.read()
                if c.number == 1 and len(self.target.requests) > 1:
                    return last(c)
                c.send(with_length(b"204 Fine"))
        self.target = self.hostile(script)
        return self.subscribe(self.target.url(), schedule=[0.05], Ordered=True)

    def deliver_two(self, webhook):
        self.raise_event(1)
        self.log_of(webhook)
        self.raise_event(2)

    def test_closed_at_the_next_request(self):
        """No answer has begun: the request is sent again at once, within the same attempt."""
        webhook = self.serve_then(lambda c: c.reset())
        self.deliver_two(webhook)
        entries = self.log_of(webhook, 2)
        self.assertEqual([(entry["Attempt"], entry["StatusCode"], entry["Error"]) for entry in entries],
                         [(1, 204, None)] * 2)
        second, third = self.target.requests[1:]
        self.assertEqual(second.head, third.head)
        self.assertEqual((second.body, self.target.connections), (third.body, 2))

    def test_closed_in_the_next_answer(self):
        """An answer has begun: that attempt has failed, and is counted."""
        webhook = self.serve_then(lambda c: (c.send(HEAD), c.reset()))
        self.deliver_two(webhook)
        entries = self.log_of(webhook, 3)
        self.assertEqual([(entry["Attempt"], entry["StatusCode"]) for entry in entries],
                         [(1, 204), (1, None), (2, 204)])
        self.assertEqual([request.header("Svc-attempt") for request in self.target.requests], ["1", "1", "2"])

    def test_closed_between_two_requests(self):
        webhook = self.serve_then(lambda c: self.fail("the connection was closed"))
        self.raise_event(1)
        self.log_of(webhook)
        self.target.drop_all()
        time.sleep(0.05)
        self.raise_event(2)
        entries = self.log_of(webhook, 2)
        self.assertEqual([entry["Attempt"] for entry in entries], [1, 1])
        self.assertEqual((len(self.target.requests), self.target.connections), (2, 2))

    def test_every_new_connection_is_closed_at_once(self):
        """A connection that was not kept is not tried twice."""
        receiver = self.hostile(lambda c: c.read())
        webhook = self.subscribe(receiver.url(), schedule=[0.02])
        self.raise_event()
        self.assertEqual(len(self.log_of(webhook, 2)), 2)
        self.assertEqual(receiver.connections, 2)

    def test_bytes_behind_an_answer_answer_nothing(self):
        """An answer longer than announced: the rest is not the answer to the next request. What has been
        announced is as long as what the server reads at a time, so that the rest is still to be read."""
        answer = with_length(b"200 OK", b"x" * 900)
        answer = with_length(b"200 OK", b"x" * (900 + 1024 - len(answer)))
        self.assertEqual(len(answer), 1024)
        receiver = self.hostile(answering(answer + FORGED, lambda c: None))
        webhook = self.subscribe(receiver.url())
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(50)])
        entries = self.log_of(webhook, 50)
        self.assertEqual({entry["StatusCode"] for entry in entries}, {200})
        self.assertEqual(len(receiver.requests), 50)


class NamesThatLie(Hostility):
    """Names that lead to good and to forbidden addresses."""

    def make_config(self):
        self.names = Names({})
        self.addCleanup(self.names.close)
        return dict(super().make_config(),
                    Delivery={"NameServers": [self.names.address], "Egress": {"Deny": ["127.0.0.2"]}})

    def attempt(self, url):
        webhook = self.subscribe(url)
        self.raise_event()
        entry, = self.log_of(webhook)
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        return entry

    def test_rebinding(self):
        """Good at first, then a forbidden address: the check is made when the connection is."""
        fine = with_length(b"204 Fine", headers=b"Connection: close\r\n")
        good, secret = hostile.on_one_port({"127.0.0.1": answering(fine),
                                            "127.0.0.2": answering(with_length(b"200 OK", b"secret"))})
        self.addCleanup(good.close)
        self.addCleanup(secret.close)
        self.names.answers["moving.test"] = ["127.0.0.1"]
        webhook = self.subscribe(good.url("moving.test"))
        self.raise_event()
        first, = self.log_of(webhook)
        self.assertEqual(first["StatusCode"], 204, first)
        self.names.answers["moving.test"] = ["127.0.0.2"]
        count = 1

        def is_refused():
            nonlocal count
            self.raise_event()
            count += 1
            last = self.log_of(webhook, count)[-1]
            return last["StatusCode"] is None and last
        last = harness.wait_until(is_refused, "the name is asked for again")
        self.assertRegex(last["Error"], r"moving\.test:\d+: .*127\.0\.0\.2")
        self.assertEqual(secret.connections, 0)
        self.names.answers["moving.test"] = ["127.0.0.1"]

    def test_what_names_lead_to(self):
        receiver = self.hostile(answering(with_length(b"204 Fine")))
        cases = {
            ("127.0.0.2", "127.0.0.1"): (204, None),
            ("169.254.169.254",): (None, "169.254.169.254"),
            ("::ffff:169.254.169.254",): (None, "169.254.169.254"),
            ("64:ff9b::a9fe:a9fe",): (None, "169.254.169.254"),
            ("0.0.0.0",): (None, "0.0.0.0"),
            ("255.255.255.255",): (None, "255.255.255.255"),
            Names.NXDOMAIN: (None, "name|domain|found"),
            Names.SERVFAIL: (None, "server"),
            Names.SILENCE: (None, TIMED_OUT + "resolving the name"),
            Names.GARBAGE: (None, TIMED_OUT + "resolving the name"),
        }
        for number, (found, (status, words)) in enumerate(cases.items()):
            name = f"n{number}.test"
            self.names.answers[name] = found if isinstance(found, str) else list(found)
            with self.subTest(found):
                entry = self.attempt(receiver.url(name))
                self.assertEqual(entry["StatusCode"], status, entry)
                self.assertRegex(entry["Error"] or "", words or "^$")
                self.assertLess(entry["DurationMs"], TIMEOUT_S * 1000 + 3000)
        self.assertEqual(receiver.connections, 1)


if __name__ == "__main__":
    unittest.main()

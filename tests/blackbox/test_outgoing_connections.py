"""The life of a connection to a receiver: used again, or lost just then; given up at any moment. All of it over
TLS as well."""
import collections
import os
import random
import socket
import ssl
import threading
import time
import unittest

import harness
import hostile
from hostile import FORGED, HEAD, Hostility, Mute, answering, chunk, with_length
from tls import UNREADABLE, OverTls

FINE = with_length(b"204 Fine")
IN_FLIGHT = 'svc_deliveries_kept{state="InFlight"}'


def spin():
    """Up to two milliseconds: about what it takes until the next request is there."""
    end = time.monotonic() + random.random() / 500
    while time.monotonic() < end:
        pass


class Kept(Hostility):
    """One connection to each receiver, as long as it is good."""
    shares_server = True
    leaves_webhooks = True

    def make_config(self):
        return dict(super().make_config(), Delivery={"MaxInFlight": 128, "MaxConnectionsPerHost": 1})

    def expect_first_attempts(self, webhook, count, status=204):
        entries = self.log_of(webhook, count)
        self.assertEqual({(entry["Attempt"], entry["StatusCode"], entry["Error"]) for entry in entries},
                         {(1, status, None)})
        self.assertEqual(len(entries), count)

    # Which is the receiver's answer -> is the connection used again?
    ANSWERS = {
        "with a length": (with_length(b"200 OK", b"hello"), True),
        "without a body": (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        "in chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"hello") + b"0\r\n\r\n", True),
        "with trailers": (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"hello") + b"0\r\nX: y\r\n\r\n", True),
        "behind interim ones": (b"HTTP/1.1 103 Oh\r\nX: y\r\n\r\n" * 3 + with_length(b"200 OK", b"hello"), True),
        "HTTP/1.0, kept": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", True),
        "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", False),
        "says that it closes": (with_length(b"200 OK", b"hello", b"Connection: close\r\n"), False),
        "says so among others": (with_length(b"200 OK", b"hello", b"Connection: x, Close\r\n"), False),
        "says so behind others": (with_length(b"200 OK", b"", b"Connection: x\r\nconnection: close\r\n"), False),
        "with bytes behind it": (with_length(b"200 OK", b"hello") + b"\0", False),
        "with an answer behind it": (with_length(b"200 OK", b"hello") + FORGED, False),
        "in unreadable chunks": (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", False),
    }

    def test_which_are_used_again(self):
        """Those that are not are closed by the server, for the receivers do not close them."""
        receivers = {what: self.hostile(answering(answer, lambda c: None))
                     for what, (answer, _) in self.ANSWERS.items()}
        webhooks = {what: self.subscribe(receiver.url()) for what, receiver in receivers.items()}
        for count in (1, 2):
            self.raise_event()
            for what, webhook in webhooks.items():
                with self.subTest(what):
                    entries = self.log_of(webhook, count)
                    self.assertEqual({(entry["Attempt"], entry["StatusCode"]) for entry in entries}, {(1, 200)})
        for what, (_, is_used_again) in self.ANSWERS.items():
            with self.subTest(what):
                self.assertEqual(receivers[what].connections, 1 if is_used_again else 2)
                if not is_used_again:
                    harness.wait_until(lambda: not receivers[what].open, f"{what}: both are closed")

    def test_answers_to_head(self):
        """Announce a body that does not come."""
        receiver = self.hostile(answering(HEAD + b"Content-Length: 5\r\n\r\n", lambda c: None))
        webhook = self.subscribe(receiver.url(), method="HEAD")
        for count in range(1, 4):
            self.raise_event()
            self.expect_first_attempts(webhook, count, 200)
        self.assertEqual(receiver.connections, 1)

    def test_cut_anywhere_in_two(self):
        """Each byte of an answer may be the first that comes alone."""
        answer = (b"HTTP/1.1 103 Oh\r\n\r\n" + HEAD + b"Transfer-Encoding: chunked\r\nX: y\r\n\r\n" + chunk(b"hello")
                  + b"0\r\nX: y\r\n\r\n")
        cuts = iter(range(1, len(answer)))

        def script(c):
            c.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            while True:
                c.read()
                cut = next(cuts)
                c.send(answer[:cut])
                c.send(answer[cut:])
        receiver = self.hostile(script)
        webhook = self.subscribe(receiver.url())
        count = len(answer) - 1
        self.raise_events(count)
        self.expect_first_attempts(webhook, count, 200)
        self.assertEqual({entry["ResponseBody"] for entry in self.log_of(webhook)}, {"hello"})
        self.assertEqual(receiver.connections, 1)

    # What becomes of a kept connection that nobody uses.
    IDLE = {
        "ends": lambda c: c.end(),
        "is cut off": lambda c: c.cut(),
        "is reset": lambda c: c.reset(),
        "is half closed": lambda c: c.raw.shutdown(socket.SHUT_WR),
        "brings an answer": lambda c: c.send(FORGED),
        "brings many": lambda c: c.send(FORGED * 1000),
        "brings half a line": lambda c: c.send(b"HTTP/1.1 29"),
        "brings an answer and ends": lambda c: (c.send(FORGED), c.end()),
    }

    def test_what_becomes_of_idle_ones(self):
        """The next delivery fails by none of it, and takes nothing for its answer that was there before."""
        goes, went = threading.Event(), threading.Semaphore(0)

        def idle(act):
            def script(c):
                c.read()
                c.send(FINE)
                if c.number == 1:
                    goes.wait(harness.DEADLINE_S)
                    act(c)
                    went.release()
                answering(FINE, lambda c: None)(c)
            return script
        receivers = {what: self.hostile(idle(act)) for what, act in self.IDLE.items()}
        webhooks = {what: self.subscribe(receiver.url()) for what, receiver in receivers.items()}
        self.raise_event(1)
        for webhook in webhooks.values():
            self.expect_first_attempts(webhook, 1)
        goes.set()
        for _ in receivers:
            self.assertTrue(went.acquire(timeout=harness.DEADLINE_S))
        self.raise_event(2)
        for what, webhook in webhooks.items():
            with self.subTest(what):
                self.expect_first_attempts(webhook, 2)
                self.assertLessEqual(receivers[what].connections, 2)

    # What becomes of a kept connection just when the next request is on its way.
    LOST = {
        "ends": lambda c: c.end(),
        "is cut off": lambda c: c.cut(),
        "is reset": lambda c: c.reset(),
        "ends a little later": lambda c: (spin(), c.end()),
        "is cut off a little later": lambda c: (spin(), c.cut()),
        "is reset a little later": lambda c: (spin(), c.reset()),
        "ends at the first byte": lambda c: (c.wait(), c.end()),
        "is reset at the first byte": lambda c: (c.wait(), c.reset()),
        "is cut off in the request": lambda c: (c.read_head(), c.cut()),
        "ends behind the request": lambda c: (c.read(), c.end()),
        "is cut off behind the request": lambda c: (c.read(), c.cut()),
        "is reset behind the request": lambda c: (c.read(), c.reset()),
    }

    def losing(self, answered, endings):
        """Each connection answers one to three requests, and is lost then; its next one is answered elsewhere."""
        def script(c):
            for _ in range(c.number % 3 + 1):
                answered.append(c.read().header("webhook-id"))
                c.send(FINE)
            endings[c.number % len(endings)](c)
        return script

    def expect_none_lost(self, receiver, answered, count):
        """Each was answered once, and asked once more at most: on the connection that was lost."""
        asked = collections.Counter(request.header("webhook-id") for request in receiver.requests)
        self.assertEqual((len(asked), collections.Counter(answered)), (count, collections.Counter(asked.keys())))
        self.assertLessEqual(max(asked.values()), 2)

    def test_lost_at_the_next_request(self):
        """Nothing of an answer has come: the request is sent again at once, within the same attempt."""
        count = 24
        answered = {what: [] for what in self.LOST}
        receivers = {what: self.hostile(self.losing(answered[what], [ending])) for what, ending in self.LOST.items()}
        webhooks = {what: self.subscribe(receiver.url(), Ordered=True) for what, receiver in receivers.items()}
        self.raise_events(count)
        for what, webhook in webhooks.items():
            with self.subTest(what):
                self.expect_first_attempts(webhook, count)
                self.expect_none_lost(receivers[what], answered[what], count)

    @harness.apart
    def test_lost_again_and_again(self):
        """Several connections to one receiver, each of which ends in another way."""
        count, answered = 200, []
        receiver = self.hostile(self.losing(answered, list(self.LOST.values())))
        self.server.config["Delivery"]["MaxConnectionsPerHost"] = 8
        self.server.kill()
        self.server.start()
        webhook = self.subscribe(receiver.url(), MaxInFlight=16)
        self.raise_events(count)
        self.expect_first_attempts(webhook, count)
        self.expect_none_lost(receiver, answered, count)

    def serve_then(self, last):
        """Answers the first request of the first connection and gives the second to `last`; other
        connections are served well."""
        def script(c):
            while True:
                c.read()
                if c.number == 1 and len(self.target.requests) > 1:
                    return last(c)
                c.send(FINE)
        self.target = self.hostile(script)
        return self.subscribe(self.target.url(), schedule=[0.05], Ordered=True)

    def deliver_two(self, webhook):
        self.raise_event(1)
        self.log_of(webhook)
        self.raise_event(2)

    def test_the_same_is_sent_again(self):
        webhook = self.serve_then(lambda c: c.reset())
        self.deliver_two(webhook)
        self.expect_first_attempts(webhook, 2)
        second, third = self.target.requests[1:]
        self.assertEqual(second.head, third.head)
        self.assertEqual((second.body, self.target.connections), (third.body, 2))

    def test_lost_in_the_next_answer(self):
        """An answer has begun: that attempt has failed, and is counted."""
        webhook = self.serve_then(lambda c: (c.send(HEAD), c.reset()))
        self.deliver_two(webhook)
        entries = self.log_of(webhook, 3)
        self.assertEqual([(entry["Attempt"], entry["StatusCode"]) for entry in entries],
                         [(1, 204), (1, None), (2, 204)])
        self.assertEqual([request.header("Svc-attempt") for request in self.target.requests], ["1", "1", "2"])

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
        self.raise_events(50)
        self.expect_first_attempts(webhook, 50, 200)
        self.assertEqual(len(receiver.requests), 50)


def sealed(make):
    """Sends records of a kind that only TLS has."""
    return lambda c: c.raw.sendall(make(c.socket))


class KeptOverTls(OverTls, Kept):
    IDLE = dict(Kept.IDLE, **{
        "says that it ends": sealed(lambda tls: tls.notify()),
        "brings tickets": sealed(lambda tls: tls.call("SSL_new_session_ticket")),
        "has new keys": sealed(lambda tls: tls.call("SSL_key_update", 1)),
        "brings tickets and an answer": sealed(lambda tls: tls.call("SSL_new_session_ticket") + tls.seal(FORGED)),
        "brings an alert": sealed(lambda tls: tls.alert()),
        "brings an unreadable record": sealed(lambda tls: UNREADABLE),
        "brings half a record": sealed(lambda tls: tls.seal(FORGED)[:-7]),
        "brings an answer in plain": sealed(lambda tls: FORGED),
    })
    LOST = dict(Kept.LOST, **{
        "says that it ends": lambda c: (c.raw.sendall(c.socket.notify()), c.wait_for_end()),
        "says so a little later": lambda c: (spin(), c.raw.sendall(c.socket.notify()), c.wait_for_end()),
        "says so behind the request": lambda c: (c.read(), c.raw.sendall(c.socket.notify()), c.wait_for_end()),
        "brings an alert": lambda c: (c.raw.sendall(c.socket.alert()), c.wait_for_end()),
    })

    def test_an_answer_and_the_end_in_one_segment(self):
        def script(c):
            c.read()
            c.raw.sendall(c.socket.seal(FINE) + c.socket.notify())
            c.wait_for_end()
        receiver = self.hostile(script)
        webhook = self.subscribe(receiver.url())
        self.raise_events(10)
        self.expect_first_attempts(webhook, 10)
        self.assertEqual(receiver.connections, 10)


class KeptOverTls12(KeptOverTls):
    """Whose sessions, keys and ends are others: what it lacks is not sent."""

    latest = ssl.TLSVersion.TLSv1_2


LARGE = bytes(8 << 20)  # more than what is on its way when the receiver does not read


class Large(Hostility):
    """Events whose bodies are sent for as long as the receiver wants."""

    def make_config(self):
        return dict(super().make_config(), Limits={"BodyBytes": 2 * len(LARGE)})

    def hostile(self, script, **options):
        """With little room for what it has not read."""
        receiver = super().hostile(script, **options)
        receiver.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        return receiver

    def subscribe_to_reports(self, url, **delivery):
        return self.webhook(Destination=url, EventSelector="/Shop.ReportReady",
                            Delivery=dict({"TimeoutSeconds": hostile.PATIENT_S, "RetrySchedule": []}, **delivery))

    def raise_report(self):
        self.created("/Svc.Event/Resource=Shop.ReportReady", LARGE)


class Early(Large):
    REFUSAL = with_length(b"413 Too Large", b"hello")
    CLOSING = with_length(b"413 Too Large", headers=b"Connection: close\r\n")

    # What a receiver does that has read the head of a request only -> status.
    CASES = {
        "refuses, and ends": (lambda c: c.send(Early.REFUSAL), 413),
        "refuses, and is cut off": (lambda c: (c.send(Early.REFUSAL), c.cut()), 413),
        "refuses, and reads nothing": (lambda c: (c.send(Early.REFUSAL), c.wait_for_end()), 413),
        "says that it closes": (lambda c: (c.send(Early.CLOSING), c.hang()), 413),
        "accepts, and ends": (lambda c: c.send(with_length(b"200 OK")), 200),
    }
    # What one does that goes on with the next request.
    READING = {
        "refuses, and reads all": (REFUSAL, 413),
        "accepts, and reads all": (with_length(b"200 OK"), 200),
    }

    def test_answers_before_the_request_is_there(self):
        """They count; the connection, on which the rest of the request is missing, is not used again."""
        heads = {what: [] for what in self.CASES}

        def early(what, act):
            def script(c):
                heads[what].append(c.read_head())
                act(c)
            return script
        receivers = {what: self.hostile(early(what, act)) for what, (act, _) in self.CASES.items()}
        webhooks = {what: self.subscribe_to_reports(receiver.url()) for what, receiver in receivers.items()}
        for count in (1, 2):
            self.raise_report()
            for what, webhook in webhooks.items():
                with self.subTest(what):
                    entry = self.log_of(webhook, count)[-1]
                    self.assertEqual(entry["StatusCode"], self.CASES[what][1], entry)
                    self.assertNotIn("were over", entry["Error"] or "")
                    self.assertEqual((len(heads[what]), receivers[what].connections), (count, count))

    def test_answers_while_the_request_is_read(self):
        """They count. The connection is used again if all of the request was sent meanwhile."""
        def reading(answer):
            def script(c):
                while True:
                    request = c.read_head()
                    c.send(answer)
                    c.skip(int(request.header("Content-Length")))
            return script
        receivers = {what: self.hostile(reading(answer)) for what, (answer, _) in self.READING.items()}
        webhooks = {what: self.subscribe_to_reports(receiver.url()) for what, receiver in receivers.items()}
        for count in (1, 2):
            self.raise_report()
            for what, webhook in webhooks.items():
                with self.subTest(what):
                    entry = self.log_of(webhook, count)[-1]
                    self.assertEqual((entry["StatusCode"], entry["Attempt"]), (self.READING[what][1], 1), entry)
                    self.assertNotIn("were over", entry["Error"] or "")
                    self.assertLessEqual(receivers[what].connections, count)


class EarlyOverTls(OverTls, Early):
    pass


class Cancelled(Large):
    """Attempts that are given up, wherever they are: nothing is left of them."""

    def make_config(self):
        return dict(super().make_config(),
                    Delivery={"MaxInFlight": 128, "MaxConnectionsPerHost": 128, "ConnectSeconds": 60})

    def setUp(self):
        super().setUp()
        if not os.access(f"/proc/{self.server.process.pid}/fd", os.R_OK):
            self.skipTest("only root may see what a process has open that no debugger may attach to")
        self.reached, self.goes = threading.Semaphore(0), threading.Event()
        self.addCleanup(self.goes.set)

    def stop(self):
        """There: goes on when the test says so."""
        self.reached.release()
        self.goes.wait()

    def shakes_no_hands(self, c):
        c.wait()
        self.stop()
        if self.context:
            c.secure(self.context)
        answering(FINE, lambda c: None)(c)

    def reads_no_body(self, c):
        while True:
            request = c.read_head()
            self.stop()
            c.skip(int(request.header("Content-Length")))
            c.send(FINE)

    def stops_behind(self, *parts):
        """In the answer, of which the last part is sent when the test says so."""
        def script(c):
            while True:
                c.read()
                c.send(b"".join(parts[:-1]))
                self.stop()
                c.send(parts[-1])
        return script

    def targets(self):
        """A receiver for each moment of an attempt."""
        scripts = {"answer": self.stops_behind(FINE), "head": self.stops_behind(FINE[:20], FINE[20:]),
                   "interim": self.stops_behind(b"HTTP/1.1 103 Oh\r\n\r\n", FINE),
                   "body": self.stops_behind(HEAD + b"Content-Length: 5\r\n\r\nhe", b"llo"),
                   "chunk": self.stops_behind(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhe",
                                              b"llo\r\n0\r\n\r\n")}
        receivers = {what: self.hostile(script) for what, script in scripts.items()}
        receivers["handshake"] = self.hostile(self.shakes_no_hands, context=None, scheme=self.scheme)
        receivers["large"] = self.hostile(self.reads_no_body)
        return receivers

    def sockets(self):
        """How many connections the server has made: not those that it was asked on, which end when they end.
        While sockets come and go, the table may show one twice, or not at all: only to be waited for."""
        directory, its_own = f"/proc/{self.server.process.pid}/fd/", set()
        for name in os.listdir(directory):
            try:
                its_own.add(os.readlink(directory + name))
            except FileNotFoundError:
                pass  # closed meanwhile
        with open("/proc/net/tcp", encoding="ascii") as file:
            rows = [line.split() for line in file][1:]
        return len({row[9] for row in rows if int(row[1].split(":")[1], 16) != self.server.port and
                    f"socket:[{row[9]}]" in its_own})

    def gauge(self, name):
        line, = [line for line in self.get("/Svc.Metrics").body.decode().splitlines() if line.startswith(name + " ")]
        return float(line.split()[-1])

    def wait_for_gauge(self, name, value):
        harness.wait_until(lambda: self.gauge(name) == value, f"{name} is {value}")

    def subscribe_all(self, urls):
        return [self.subscribe_to_reports(url, TimeoutSeconds=60) if what == "large" else
                self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced", Delivery={"TimeoutSeconds": 60})
                for what, url in urls.items()]

    def deliver_well(self):
        self.created("/Shop.Person", {"Name": "Ann"})
        self.healthy.take()

    def begin(self):
        """The receivers, and one that is well: its connection is the only one before they are met."""
        self.healthy = self.receiver()
        self.webhook(Destination=self.healthy.url(), EventSelector="/Shop.PersonCreated")
        self.deliver_well()
        self.receivers = self.targets()
        harness.wait_until(lambda: self.sockets() == 1, "the one that is well has a connection")

    def raise_all(self, webhooks):
        """Until all attempts are under way, and as far as they can be: two to each receiver, one to the large one.
        Returns how many there are."""
        self.raise_events(2)
        self.raise_report()
        for _ in range(2 * len(self.receivers) - 1):
            self.assertTrue(self.reached.acquire(timeout=harness.DEADLINE_S))
        count = 2 * (len(webhooks) - 1) + 1
        self.wait_for_gauge(IN_FLIGHT, count)
        self.deliver_well()
        return count

    def expect_given_up(self, act):
        self.begin()
        memory = None
        mute = Mute()
        self.addCleanup(mute.close)
        urls = {what: receiver.url() for what, receiver in self.receivers.items()}
        urls["mute"] = f"{self.scheme}://127.0.0.1:{mute.port}/"
        for _ in range(2):
            self.goes.clear()
            webhooks = self.subscribe_all(urls)
            self.raise_all(webhooks)
            harness.wait_until(lambda: self.sockets() >= 2 * len(urls), "all are under way")
            for webhook in webhooks:
                act(webhook)
            self.wait_for_gauge(IN_FLIGHT, 0)
            self.wait_for_gauge("svc_deliveries_pending", 0)
            harness.wait_until(lambda: self.sockets() == 1, "only the one that is well has a connection, as before")
            self.goes.set()
            harness.wait_until(lambda: not any(r.open for r in self.receivers.values()), "they are closed")
            self.deliver_well()
            for webhook in webhooks:
                self.delete(f"/Svc.Admin.Webhook/Id={webhook['Id']}")
            memory = memory or self.memory()
        self.expect_bounded_memory(memory)
        hostile.expect_clean_end(self)

    def delete(self, target):
        self.server.request("DELETE", target)

    def test_by_deleting_the_webhook(self):
        self.expect_given_up(lambda webhook: self.delete(f"/Svc.Admin.Webhook/Id={webhook['Id']}"))

    def test_by_deleting_the_deliveries(self):
        self.expect_given_up(lambda webhook: self.delete(f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}/unsafe=true"))

    def test_not_by_pausing_the_webhook(self):
        """What is under way goes on to its end."""
        self.begin()
        webhooks = self.subscribe_all({what: receiver.url() for what, receiver in self.receivers.items()})
        count = self.raise_all(webhooks)
        for webhook in webhooks:
            self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": True})
        self.goes.set()
        self.wait_for_gauge("svc_deliveries_pending", 0)
        self.assertEqual(self.gauge(IN_FLIGHT), 0)
        log = [entry for webhook in webhooks for entry in self.log_of(webhook)]
        self.assertEqual({(entry["Attempt"], entry["IsSuccess"]) for entry in log}, {(1, True)})
        self.assertEqual(len(log), count)
        harness.wait_until(lambda: self.sockets() <= 2 * len(webhooks), "what was used may be kept")
        self.deliver_well()

    def test_whenever_it_comes(self):
        """In some rounds before the connection is made, in others behind the last answer."""
        self.begin()
        receiver = self.hostile(answering(FINE, lambda c: None))
        for _ in range(25):
            webhook = self.subscribe(receiver.url())
            self.raise_events(4)
            time.sleep(random.random() / 50)
            self.delete(f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        self.wait_for_gauge("svc_deliveries_pending", 0)
        self.assertEqual(self.gauge(IN_FLIGHT), 0)
        harness.wait_until(lambda: self.sockets() <= 1 + 4, "four connections are kept at most")
        self.deliver_well()
        hostile.expect_clean_end(self)


class CancelledOverTls(OverTls, Cancelled):
    pass


if __name__ == "__main__":
    unittest.main()

"""Deliveries to receivers that misbehave: each attempt ends in time, with words for what happened, without
the server's memory growing, and without a healthy receiver noticing."""
import datetime
import gzip
import time
import unittest
import zlib

import harness
import hostile
from hostile import FORGED, HEAD, PATIENT_S, TIMED_OUT, Hostility, Names, answering, chunk, with_length
from tls import OverTls



def reset_after_head(c):
    c.read_head()
    c.reset()


def zeros(wbits):
    """128 MiB, packed into some 128 KiB."""
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(128)) + packer.flush()


# What a receiver does -> status of the answer, words of the Error (None: there is none), does it last
# until the time-out? A status of 200 delivers, all else is dead at once: there are no retries here.
CASES = {
    "ends at once": (lambda c: None, None, "Empty reply|reset|closed|Broken pipe", False),
    "resets at once": (lambda c: c.reset(), None, "reset|Broken pipe|connect|Empty reply", False),
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
    "announces two lengths": (answering(HEAD + b"Content-Length: 2\r\nContent-Length: 5\r\n\r\nhello"), None,
                              "Content-Length", False),
    "announces a length and chunks": (answering(HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
                                                + chunk(b"hello") + b"0\r\n\r\n"), None, "Content-Length", False),
    "announces nonsense": (answering(HEAD + b"Content-Length: -2\r\n\r\nhello"), None, "Content-Length",
                           False),
    "endless body": (answering(HEAD + b"\r\n", lambda c: c.repeat(b"x" * 65536)), 200, None, False),
    "endless chunks": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
                                 lambda c: c.repeat(chunk(b"y" * 4096))), 200, None, False),
    "endless chunk extension": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;",
                                          lambda c: c.repeat(b"x" * 4096)), 200, "far more bytes came",
                                False),
    "unreadable chunks": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nhello"), 200, "^|chunk", False),
    "half a chunk": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\nhello"), 200, "body|remaining", False),
    "chunks and trailers": (answering(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(b"hello")
                                      + b"0\r\n" + b"X: y\r\n" * 1000 + b"\r\n"), 200, None, False),
    "a long head": (answering(with_length(b"200 OK", headers=b"Some-Header: some value\r\n" * 2600)), 200, None,
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
    "never reads": (lambda c: c.wait_for_end(), None, TIMED_OUT + "waiting for the answer", True),
    "interim answers": (answering(b"", lambda c: c.repeat(b"HTTP/1.1 103 Early Hints\r\n\r\n")), None,
                        "more than 16 interim answers", False),
    "some interim answers": (answering(b"HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n" * 16 + with_length(b"200 OK")), 200,
                             None, False),
    "interim answers only": (answering(b"HTTP/1.1 100 Continue\r\n\r\n"), None, "in the head|Empty reply", False),
    "HTTP/1.0": (answering(b"HTTP/1.0 200 OK\r\n\r\nhello"), 200, None, False),
    "HTTP/0.9": (answering(b"hello"), None, "not HTTP", False),
    "no reason": (answering(b"HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n"), 200, None, False),
    "bare line feeds": (answering(b"HTTP/1.1 200 OK\nContent-Length: 0\n\n"), 200, None, False),
    "a folded header": (answering(HEAD + b"X: y\r\n z\r\nContent-Length: 0\r\n\r\n"), 200, None, False),
    "a blank before a colon": (answering(HEAD + b"X : y\r\nContent-Length: 0\r\n\r\n"), 200, None, False),
    "a status of four digits": (answering(b"HTTP/1.1 2000 OK\r\nContent-Length: 0\r\n\r\n"), None, "not HTTP", False),
    "a status of two digits": (answering(b"HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"), None, "not HTTP|in the head",
                               False),
    "an empty line at first": (answering(b"\r\n" + with_length(b"200 OK")), 200, None, False),
    "answers twice": (answering(with_length(b"200 OK") * 2), 200, None, False),
    "speaks TLS": (answering(b"\x15\x03\x03\x00\x02\x02\x46"), None, "not HTTP", False),
    "speaks HTTP/2": (answering(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), None, "not HTTP", False),
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


class BadAnswers(Hostility):
    timeout_s = 5 * hostile.TIMEOUT_S  # those that last do so behind steps of the receiver, which is this process

    def test_each_has_its_outcome_and_none_delays_another(self):
        self.expect_outcomes(CASES)

    def test_floods_of_many_attempts_leave_no_memory_behind(self):
        """Two hundred attempts, each answered without end."""
        receiver = self.hostile(answering(b"HTTP/1.1 500 Oh\r\n\r\n", lambda c: c.repeat(b"x" * 65536)))
        webhook = self.subscribe(receiver.url())
        before = self.memory()
        self.raise_events(200)
        entries = self.log_of(webhook, 200)
        self.assertEqual({(entry["StatusCode"], len(entry["ResponseBody"])) for entry in entries}, {(500, 4096)})
        self.expect_bounded_memory(before)


class BadAnswersOverTls(OverTls, BadAnswers):
    pass


class Holds(Hostility):
    def test_a_huge_retry_after_holds_for_a_day(self):
        """Longer than asked never, but for more than a day neither."""
        day = datetime.timedelta(days=1)
        began = datetime.datetime.now(datetime.timezone.utc)
        held = {}
        for value in (b"86401", b"99999999999999999999999999", b"Fri, 31 Dec 9999 23:59:59 GMT"):
            answer = with_length(b"503 No", headers=b"Retry-After: " + value + b"\r\n")
            receiver = self.hostile(answering(answer))
            held[value] = receiver, self.subscribe(receiver.url(), schedule=[0.01, 0.01])
        self.raise_event()
        for value, (_, webhook) in held.items():
            with self.subTest(value):
                self.log_of(webhook)
                at = datetime.datetime.fromisoformat(self.delivery_of(webhook)["NextAttemptTime"][:26] + "+00:00")
                now = datetime.datetime.now(datetime.timezone.utc)
                self.assertLessEqual(began + day - datetime.timedelta(seconds=1), at)
                self.assertLessEqual(at, now + day)
        self.raise_event()
        time.sleep(0.1)
        for value, (receiver, _) in held.items():
            self.assertEqual(len(receiver.requests), 1, f"{value}: the whole webhook is held back")


class HoldsOverTls(OverTls, Holds):
    pass


class NamesThatLie(Hostility):
    """Names that lead to good and to forbidden addresses."""

    def make_config(self):
        self.names = Names({})
        self.addCleanup(self.names.close)
        return dict(super().make_config(),
                    Delivery={"NameServers": [self.names.address], "Egress": {"Deny": ["127.0.0.2"]}})

    def test_rebinding(self):
        """Good at first, then a forbidden address: the check is made when the connection is."""
        fine = with_length(b"204 Fine", headers=b"Connection: close\r\n")
        good, secret = hostile.on_one_port({"127.0.0.1": answering(fine),
                                            "127.0.0.2": answering(with_length(b"200 OK", b"secret"))},
                                           self.context)
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
        webhooks = []
        for number, found in enumerate(cases):
            self.names.answers[f"n{number}.test"] = found if isinstance(found, str) else list(found)
            lasts = (cases[found][1] or "").startswith(TIMED_OUT)
            webhooks.append(self.subscribe(receiver.url(f"n{number}.test"), lasts=lasts))
        self.raise_event()
        for webhook, (found, (status, words)) in zip(webhooks, cases.items()):
            with self.subTest(found):
                entry, = self.log_of(webhook)
                self.assertEqual(entry["StatusCode"], status, entry)
                self.assertRegex(entry["Error"] or "", words or "^$")
                self.assertLess(entry["DurationMs"], PATIENT_S * 1000)
        self.assertEqual(receiver.connections, 1)


class NamesThatLieOverTls(OverTls, NamesThatLie):
    pass


if __name__ == "__main__":
    unittest.main()

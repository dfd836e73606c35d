"""Receivers over TLS: whom the server believes, with what words it refuses the others, what it keeps
and uses again, and what it bears of those who use TLS badly."""
import collections
import os
import shutil
import signal
import socket
import ssl
import subprocess
import unittest

import cluster
import harness
import hostile
from hostile import HEAD, SENT_MOST, TIMED_OUT, Hostile, Hostility, answering, chunk, with_length
from tls import RSA_KEY, UNREADABLE, Authority, OverTls, Secured, TlsReceiver, make_context, openssl, ours

NGINX = """
daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log nginx.log;
events {{ worker_connections 256; }}
http {{
    log_format seen '$server_protocol $status $connection';
    access_log access.log seen;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    keepalive_requests 10;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        location / {{ proxy_pass {backend}; }}
    }}
}}
"""


class Tls(harness.ServerCase):
    env = harness.SMALL_QUARANTINE

    def make_config(self):
        self.directory = self.make_directory()
        self.authority = Authority(self.directory, "ours")
        self.hosts = os.path.join(self.directory, "hosts")
        with open(self.hosts, "w", encoding="ascii") as file:
            file.write("127.0.0.1 good.test other.test\n")
        return dict(harness.load_config(harness.SHOP),
                    Delivery={"CaFile": self.authority.file, "HostsFile": self.hosts})

    def make_directory(self):
        directory = harness.tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, directory, True)
        return directory

    def secured(self, certificate, script=None):
        receiver = TlsReceiver(certificate, script)
        self.addCleanup(receiver.close)
        return receiver

    def subscribe(self, url, **delivery):
        return self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced",
                            Delivery=dict(delivery, RetrySchedule=[]))

    def raise_event(self, number=0):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number}})

    def log_of(self, webhook, count=1):
        def entries():
            answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
            return answer.status == 200 and len(answer.json()) >= count and answer.json()
        return harness.wait_until(entries, f"{count} log entries")

    def attempt(self, url, **delivery):
        """The log entry of one event to a webhook of its own, which ends with it."""
        webhook = self.subscribe(url, **delivery)
        self.raise_event()
        entry = self.log_of(webhook)[0]
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        return entry


class Certificates(Tls):
    def test_those_of_the_file_are_believed(self):
        receiver = self.secured(self.authority.sign("good.test", "127.0.0.1"))
        for host in ("good.test", "127.0.0.1"):
            entry = self.attempt(receiver.url(host=host))
            self.assertEqual((entry["StatusCode"], entry["Error"]), (200, None))
            self.assertTrue(0 <= entry["ConnectMs"] <= entry["TlsMs"] <= entry["FirstByteMs"]
                            <= entry["DurationMs"], entry)
            self.assertEqual(receiver.take().headers["Host"], f"{host}:{receiver.port}")

    def test_refusals_name_their_reason(self):
        stranger = Authority(self.directory, "theirs")
        cases = [
            (stranger.sign("good.test"), "good.test", "certificate.*unable to get local issuer certificate"),
            ((stranger.file, stranger.base + ".key"), "good.test", "self-signed certificate"),
            (self.authority.sign("good.test"), "other.test", "no alternative certificate subject name "
                                                             "matches target host name 'other.test'"),
            (self.authority.sign("good.test"), "127.0.0.1", "no alternative certificate subject name "
                                                            "matches target host name '127.0.0.1'"),
            (self.authority.sign("good.test", days=0), "good.test", "certificate has expired"),
        ]
        for certificate, host, words in cases:
            with self.subTest(words):
                receiver = self.secured(certificate)
                entry = self.attempt(receiver.url(host=host))
                self.assertEqual((entry["StatusCode"], entry["IsSuccess"]), (None, False))
                self.assertRegex(entry["Error"], rf"^{host}:{receiver.port}: .*{words}")
                self.assertTrue(receiver.nothing(0), "not a byte of the request went out")
                self.assertEqual(entry["FirstByteMs"], 0)

    def test_old_versions_are_refused(self):
        receiver = self.secured(self.authority.sign("good.test"))
        receiver.context.set_ciphers("ALL:@SECLEVEL=0")
        receiver.context.minimum_version = ssl.TLSVersion.TLSv1
        receiver.context.maximum_version = ssl.TLSVersion.TLSv1_1
        entry = self.attempt(receiver.url(host="good.test"))
        self.assertRegex(entry["Error"], "OpenSSL.*(protocol|unsupported|disallowed)")
        self.assertTrue(receiver.nothing(0))

    def test_no_numbers_of_the_receivers_choice(self):
        """A key exchange over a finite field may be made to take seconds: it is not offered."""
        parameters = os.path.join(self.directory, "dh.pem")
        openssl("genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out", parameters)
        receiver = self.secured(self.authority.sign("good.test", key=RSA_KEY))
        receiver.context.load_dh_params(parameters)
        receiver.context.set_ciphers("kDHE")
        receiver.context.maximum_version = ssl.TLSVersion.TLSv1_2
        entry = self.attempt(receiver.url(host="good.test"))
        self.assertRegex(entry["Error"], "OpenSSL.*handshake failure")
        receiver.context.set_ciphers("kECDHE")
        self.assertEqual(self.attempt(receiver.url(host="good.test"))["StatusCode"], 200)


ANSWER = with_length(b"200 OK", b"hello")
LOST = "SSL|TLS|reset|closed|eof|ended"  # in a handshake
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def hello_then(*parts):
    """Reads what begins a handshake, and sends bytes or does what is said; then closes."""
    def script(c):
        c.raw.recv(65536)
        for part in parts:
            part(c) if callable(part) else c.raw.sendall(part)
    return script


def refusal(number):
    """A fatal alert, while nothing is sealed yet."""
    return b"\x15\x03\x03\x00\x02\x02" + bytes([number])


def half_a_flight_then(last):
    def script(c):
        flight = Secured(c.raw, make_context(ours()[1])).first_flight()
        c.raw.sendall(flight[:len(flight) // 2])
        last(c)
    return script


def sealed(*parts, piece=None, latest=None):
    """Takes a request by TLS, and sends bytes or does what is said; then closes."""
    def script(c):
        c.secure(make_context(ours()[1], latest), piece)
        c.read()
        for part in parts:
            part(c) if callable(part) else c.send(part)
    return script


def unsealed(data):
    return lambda c: c.raw.sendall(data)


def tiny(data):
    """In records of a byte."""
    return lambda c: c.raw.sendall(c.socket.seal(data, 1))


def cut(c):
    c.cut()


def alert(c):
    c.raw.sendall(c.socket.alert())


def half_a_record(c):
    c.raw.sendall(c.socket.seal(ANSWER)[:-7])


def behind_the_end(c):
    c.raw.sendall(c.socket.notify() + UNREADABLE)


def asks(function, *arguments):
    return lambda c: c.raw.sendall(c.socket.call(function, *arguments))


# What a receiver does with TLS -> as in test_hostile_receivers.
CASES = {
    "HTTP in plain": (hello_then(b"HTTP/1.1 400 Bad\r\n\r\n"), None, "wrong version number", False),
    "says nothing": (hello_then(lambda c: c.hang()), None, TIMED_OUT + "(connecting|.*TLS)", True),
    "ends at once": (lambda c: None, None, LOST, False),
    "ends after the hello": (hello_then(), None, LOST, False),
    "resets after the hello": (hello_then(lambda c: c.reset()), None, LOST, False),
    "refuses the handshake": (hello_then(refusal(40)), None, "handshake failure", False),
    "knows no such name": (hello_then(refusal(112)), None, "unrecognized name", False),
    "insists on HTTP/2": (hello_then(refusal(120)), None, "no application protocol", False),
    "garbage in the handshake": (hello_then(b"\x16\x03\x03\x00\x40" + b"\xee" * 64), None,
                                 "SSL|TLS|unexpected message", False),
    "garbage instead of it": (hello_then(b"\xee" * 64), None, "SSL|TLS|wrong version number", False),
    "a long record": (hello_then(b"\x16\x03\x03\xff\xff" + bytes(65535)), None, "SSL|TLS|too (long|large)",
                      False),
    "a long message": (hello_then(b"\x16\x03\x03\x40\x00\x02\xff\xff\xff" + bytes(16380)), None,
                       "excessive message size", False),
    "ends in its flight": (half_a_flight_then(cut), None, LOST, False),
    "stops in its flight": (half_a_flight_then(lambda c: c.hang()), None, TIMED_OUT + "(connecting|.*TLS)", True),
    "byte by byte": (sealed(ANSWER, piece=1), 200, None, False),
    "a record a byte": (sealed(tiny(ANSWER)), 200, None, False),
    "many records": (sealed(HEAD + b"\r\n", tiny(b"x" * 20000)), 200, None, False),
    "ends": (sealed(), None, "Empty reply", False),
    "is cut off": (sealed(cut), None, "Empty reply|eof|closed", False),
    "is cut off in the head": (sealed(HEAD + b"X: y", cut), None, "in the head|eof", False),
    "ends in the head": (sealed(HEAD + b"X: y", behind_the_end), None, "in the head", False),
    "is cut off in the body": (sealed(HEAD + b"Content-Length: 9\r\n\r\nhello", cut), 200, "remaining|eof", False),
    "is cut off in a chunk": (sealed(CHUNKED + b"9\r\nhello", cut), 200, "in the body|remaining|eof", False),
    "is cut off between chunks": (sealed(CHUNKED + chunk(b"hello"), cut), 200, "in the body|remaining|eof", False),
    "ends without a length": (sealed(HEAD + b"\r\nhello"), 200, None, False),
    "is cut off without a length": (sealed(HEAD + b"\r\nhello", cut), 200, None, False),
    "is cut off behind its answer": (sealed(ANSWER, cut), 200, None, False),
    "an alert instead": (sealed(alert), None, "bad record mac|alert", False),
    "an alert in the head": (sealed(HEAD + b"X: y", alert), None, "bad record mac|alert", False),
    "an alert in the body": (sealed(HEAD + b"Content-Length: 9\r\n\r\nhello", alert), 200, "bad record mac|alert",
                             False),
    "an alert behind its answer": (sealed(ANSWER, alert), 200, None, False),
    "an unreadable record": (sealed(unsealed(UNREADABLE)), None, "bad record mac|decryption failed", False),
    "an unreadable record in the body": (sealed(HEAD + b"\r\nhello", unsealed(UNREADABLE)), 200,
                                         "bad record mac|decryption failed", False),
    "half a record": (sealed(half_a_record, cut), None, "eof|Empty reply|closed", False),
    "an answer in plain": (sealed(unsealed(ANSWER)), None, "SSL|TLS|wrong version number|record", False),
    "new keys": (sealed(HEAD, asks("SSL_key_update", 0), b"\r\nhello"), 200, None, False),
    "new keys of both": (sealed(HEAD, asks("SSL_key_update", 1), b"\r\nhello"), 200, None, False),
    "more tickets": (sealed(HEAD, asks("SSL_new_session_ticket"), b"\r\nhello"), 200, None, False),
    "a new handshake": (sealed(asks("SSL_renegotiate"), ANSWER, latest=ssl.TLSVersion.TLSv1_2), 200, None, False),
}


class WithTls(OverTls, Hostility):
    def test_each_has_its_outcome_and_none_delays_another(self):
        self.expect_outcomes(CASES, context=None, scheme="https")


def flood(latest, function, *arguments):
    """In the head of an answer thousands of messages in one go."""
    def script(c):
        messages = b"".join(c.socket.call(function, *arguments) for _ in range(5000))
        c.raw.sendall(messages)
    return sealed(HEAD, script, b"\r\n", latest=latest)


FLOODS = {
    "new keys": flood(None, "SSL_key_update", 0),
    "new keys of both": flood(None, "SSL_key_update", 1),
    "tickets": flood(None, "SSL_new_session_ticket"),
    "new handshakes": flood(ssl.TLSVersion.TLSv1_2, "SSL_renegotiate"),
    # OpenSSL reads these for as long as there are any.
    "handshakes that do not begin": lambda c: c.repeat(b"\x16\x03\x03\x40\x00" + bytes(0x4000)),
}


class Resets(OverTls, Hostility):
    def test_one_that_comes_with_the_end_of_the_handshake_is_named(self):
        """libcurl then finds a connection that is made and has no peer."""
        def script(c):
            secured = Secured(c.raw, make_context(ours()[1], ssl.TLSVersion.TLSv1_2))
            while not secured.is_agreed():
                pass
            server = self.server.process.pid
            os.kill(server, signal.SIGSTOP)
            try:
                harness.wait_until(lambda: harness.state_of(server) == "T", "the server has stopped")
                secured.flush()
                c.reset()
            finally:
                os.kill(server, signal.SIGCONT)
        webhook = self.subscribe(self.hostile(script, context=None, scheme="https").url())
        self.raise_event()
        entry, = self.log_of(webhook)
        self.assertRegex(entry["Error"], "reset by peer|Broken pipe")
        self.assertIsNone(entry["StatusCode"])


class Floods(OverTls, Hostility):
    """What is for the TLS library, and never for the one who waits for an answer."""

    def test_they_delay_nobody(self):
        """Those that end may be borne to their end."""
        before = self.memory()
        receivers = {what: self.hostile(script, context=None, scheme="https") for what, script in FLOODS.items()}
        flooded = {what: self.subscribe(receiver.url(), TimeoutSeconds=60) for what, receiver in receivers.items()}
        healthy = self.receiver()
        self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        self.raise_event()
        for number in range(20):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        for what, webhook in flooded.items():
            with self.subTest(what):
                entry, = self.log_of(webhook)
                if what == "handshakes that do not begin":
                    self.assertRegex(entry["Error"] or "", "far more|too many")
                self.assertTrue(entry["StatusCode"] == 200 or entry["Error"], entry)
                self.assertNotIn("were over", entry["Error"] or "")
                self.assertLess(receivers[what].sent, SENT_MOST)
        self.expect_bounded_memory(before)
        hostile.expect_clean_end(self)


class Alpn(Tls):
    def test_nothing_but_http_1_1_is_offered(self):
        """A receiver takes what it likes best of what both have (RFC 7301, section 3.2)."""
        cases = [(["h2", "http/1.1"], "http/1.1"), (["h2"], None), (["h2c", "http/1.0", "spdy/3.1"], None)]
        certificate = self.authority.sign("good.test")
        for offered, expected in cases:
            with self.subTest(offered):
                receiver = self.secured(certificate)
                receiver.context.set_alpn_protocols(offered)
                self.assertEqual(self.attempt(receiver.url(host="good.test"))["StatusCode"], 200)
                self.assertEqual(receiver.protocols, [expected])


class KeptOpen(Tls):
    def deliver(self, webhook, count):
        for number in range(count):
            self.raise_event(number)
            entries = self.log_of(webhook, number + 1)
        self.assertEqual({entry["StatusCode"] for entry in entries}, {200})
        return entries

    def test_connections_are_used_again(self):
        receiver = self.secured(self.authority.sign("good.test"))
        entries = self.deliver(self.subscribe(receiver.url(host="good.test")), 10)
        self.assertEqual(len(receiver.resumed), 1)
        self.assertEqual([entry["TlsMs"] for entry in entries[1:]], [0] * 9)

    def test_sessions_are_taken_up_again(self):
        receiver = self.secured(self.authority.sign("good.test"),
                                lambda request: (200, {"Connection": "close"}, b""))
        self.deliver(self.subscribe(receiver.url(host="good.test")), 4)
        self.assertEqual(receiver.resumed, [False, True, True, True])

    def test_sessions_may_be_forgotten(self):
        """As by a receiver that is many machines."""
        certificate = self.authority.sign("good.test")

        def script(c):
            c.secure(make_context(certificate))
            answering(with_length(b"200 OK", headers=b"Connection: close\r\n"))(c)
        receiver = Hostile(script, scheme="https")
        self.addCleanup(receiver.close)
        self.deliver(self.subscribe(receiver.url("good.test")), 4)
        self.assertEqual(receiver.connections, 4)


class BehindNginx(Tls):
    def nginx(self, backend):
        """Starts one in front of a receiver; returns its port."""
        self.assertIsNotNone(shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"),
                             "nginx is not installed: apt-get install nginx-light")
        certificate, key = self.authority.sign("good.test")
        port = cluster.free_port()
        path = os.path.join(self.directory, "nginx.conf")
        with open(path, "w", encoding="ascii") as file:
            file.write(NGINX.format(port=port, certificate=certificate, key=key, backend=backend))
        process = subprocess.Popen(
            ["nginx", "-p", self.directory, "-c", path, "-e", os.path.join(self.directory, "nginx.log")],
            env=dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        harness.wait_until(lambda: self.answers(port), "nginx listens")
        return port

    @staticmethod
    def answers(port):
        try:
            socket.create_connection(("127.0.0.1", port), harness.DEADLINE_S).close()
            return True
        except OSError:
            return False

    def seen(self):
        """(protocol, status, connection) of each request that nginx has logged."""
        with open(os.path.join(self.directory, "access.log"), encoding="ascii") as file:
            return [line.split() for line in file if line.startswith("HTTP/")]

    def test_it_ends_connections_now_and_then(self):
        """And offers HTTP/2, which nobody takes."""
        receiver = self.receiver()
        port = self.nginx(receiver.url(""))
        webhook = self.subscribe(f"https://good.test:{port}/hook")
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(60)])
        entries = self.log_of(webhook, 60)
        self.assertEqual({(entry["StatusCode"], entry["Error"]) for entry in entries}, {(200, None)})
        seen = harness.wait_until(lambda: len(found := self.seen()) == 60 and found, "nginx has logged all")
        self.assertEqual({(protocol, status) for protocol, status, _ in seen}, {("HTTP/1.1", "200")})
        requests = collections.Counter(connection for _, _, connection in seen)
        self.assertLessEqual(max(requests.values()), 10)
        self.assertLess(len(requests), 60, "requests share them")
        self.assertEqual(sorted(receiver.take().json()[0]["No"] for _ in range(60)), [*range(60)])

    def test_a_dead_backend_and_a_large_answer(self):
        """Statuses come through; of a body what is read at most, and the connection lives on."""
        answers = iter([(200, {}, b"x" * 300000), (200, {}, b"short")])
        receiver = self.receiver(lambda request: next(answers))
        webhook = self.subscribe(f"https://good.test:{self.nginx(receiver.url(''))}/hook")
        for number in range(2):
            self.raise_event(number)
            entries = self.log_of(webhook, number + 1)
        self.assertEqual([entry["ResponseBody"] for entry in entries], ["x" * 4096, "short"])
        receiver.close()
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"Method": "PUT"})
        self.raise_event()
        self.assertIn(self.log_of(webhook, 3)[2]["StatusCode"], (502, 504))


if __name__ == "__main__":
    unittest.main()

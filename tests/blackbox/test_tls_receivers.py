"""Receivers over TLS: whom the server believes, with what words it refuses the others, and what it keeps
and uses again; HTTP/2 with a receiver behind nginx."""
import os
import shutil
import socket
import ssl
import subprocess
import unittest

import harness
import hostile
from hostile import Hostile, memory_kib
from tls import RSA_KEY, Authority, TlsReceiver, openssl

NGINX = """
daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log nginx.log;
events {{ worker_connections 256; }}
http {{
    log_format seen '$server_protocol $status $connection';
    access_log access.log seen;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate}; ssl_certificate_key {key};
        location / {{ proxy_pass {backend}; }}
    }}
}}
"""

# Of HTTP/2 (RFC 9113): kinds of frames, flags, and `:status: 200` packed.
DATA, HEADERS, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 5, 6, 7, 8, 9
ACK, END_HEADERS, STATUS_200 = 1, 4, b"\x88"


def number(value):
    return value.to_bytes(4, "big")


def frame(kind, flags=0, stream=0, payload=b""):
    return number(len(payload))[1:] + bytes([kind, flags]) + number(stream) + payload


class Tls(harness.ServerCase):
    env = hostile.ENVIRONMENT

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

    def test_no_tls_there(self):
        """Plain HTTP, silence, an end, where TLS was expected."""
        cases = {"wrong version number": lambda c: (c.socket.recv(1), c.send(b"HTTP/1.1 400 Bad\r\n\r\n")),
                 "1000 ms were over while connecting": lambda c: c.hang(),
                 "SSL|reset|closed": lambda c: None}
        for words, script in cases.items():
            with self.subTest(words):
                receiver = Hostile(script)
                self.addCleanup(receiver.close)
                entry = self.attempt(f"https://127.0.0.1:{receiver.port}/", TimeoutSeconds=1)
                self.assertRegex(entry["Error"], words)
                self.assertIsNone(entry["StatusCode"])


class Floods(Tls):
    """What is for the TLS library, or for HTTP/2, and never for the one who waits for an answer."""

    def expect_bounded(self, url, words):
        before = memory_kib(self.server.process.pid, "VmRSS")
        healthy = self.receiver()
        flooded = self.subscribe(url, TimeoutSeconds=5)
        self.subscribe(healthy.url())
        self.raise_event()
        healthy.take()
        entry, = self.log_of(flooded)
        self.assertRegex(entry["Error"], words)
        self.assertIsNone(entry["StatusCode"])
        self.assertLess(entry["DurationMs"], 4500, entry)
        self.assertLess(memory_kib(self.server.process.pid, "VmHWM") - before, 64 << 10)

    def test_a_handshake_of_requests_to_begin_it(self):
        """OpenSSL reads these for as long as there are any."""
        receiver = Hostile(lambda c: c.repeat(b"\x16\x03\x03\x40\x00" + bytes(0x4000)))
        self.addCleanup(receiver.close)
        self.expect_bounded(f"https://127.0.0.1:{receiver.port}/", "far more bytes came")
        self.assertLess(receiver.sent, 64 << 20)

    def http2(self, certificate, answer, again=None):
        """Answers the first frames with some of its own, and goes on for ever with others."""
        def speak(connection):
            connection.recv(65536)
            connection.sendall(frame(SETTINGS) + answer)
            while again:
                connection.sendall(again * 1000)
            while connection.recv(65536):
                pass
        receiver = self.secured(certificate)
        receiver.context.set_alpn_protocols(["h2"])
        receiver.speak(speak)
        return receiver

    def test_frames_without_end(self):
        floods = {
            "acknowledged pings": (b"", frame(PING, ACK, 0, bytes(8))),
            "pings": (b"", frame(PING, 0, 0, bytes(8))),
            "settings": (b"", frame(SETTINGS)),
            "unknown frames": (b"", frame(0xee, 0, 0, bytes(4096))),
            "continuations": (frame(HEADERS, 0, 1, STATUS_200), frame(CONTINUATION, 0, 1, b"\x00\x01\x61\x00")),
        }
        certificate = self.authority.sign("good.test")
        for what, (first, again) in floods.items():
            with self.subTest(what):
                receiver = self.http2(certificate, first, again)
                self.expect_bounded(receiver.url(host="good.test"),
                                    "HTTP/2|nghttp2|sending data|Send failure|far more bytes came")
        hostile.expect_clean_end(self)

    def test_frames_that_make_no_answer(self):
        """Of each the attempt ends, with words, after a bounded number of connections."""
        cases = {
            "refused": frame(RST_STREAM, 0, 1, number(7)), "cancelled": frame(RST_STREAM, 0, 1, number(8)),
            "cancelled in the body": frame(HEADERS, END_HEADERS, 1, STATUS_200) + frame(RST_STREAM, 0, 1, number(8)),
            "wants HTTP/1.1": frame(RST_STREAM, 0, 1, number(13)), "goes away": frame(GOAWAY, 0, 0, bytes(8)),
            "interim answers": frame(HEADERS, END_HEADERS, 1, b"\x08\x03103") * 40,
            "speaks HTTP/1.1": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
            "a body at first": frame(DATA, 1, 1, b"hello"), "a large frame": frame(DATA, 0, 1, bytes(60000)),
            "another stream": frame(HEADERS, 5, 99, STATUS_200), "packed badly": frame(HEADERS, 5, 1, b"\xff" * 40),
            "a push": frame(PUSH_PROMISE, END_HEADERS, 1, number(2) + b"\x82\x84\x86"),
            "too large a window": frame(WINDOW_UPDATE, 0, 0, number(0x7fffffff)) * 3,
        }
        certificate = self.authority.sign("good.test")
        for what, answer in cases.items():
            with self.subTest(what):
                receiver = self.http2(certificate, answer)
                entry = self.attempt(receiver.url(host="good.test"), TimeoutSeconds=1)
                self.assertEqual((entry["StatusCode"], entry["IsSuccess"]), (None, False), entry)
                self.assertGreater(len(entry["Error"]), len("good.test:12345: "))
                self.assertLessEqual(len(receiver.resumed), 6)
        hostile.expect_clean_end(self)


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


class Http2(Tls):
    def nginx(self, backend):
        """Starts one in front of a receiver; returns its port."""
        self.assertIsNotNone(shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"),
                             "nginx is not installed: apt-get install nginx-light")
        certificate, key = self.authority.sign("good.test")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
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
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return True
        except OSError:
            return False

    def seen(self):
        """(protocol, status, connection) of each request that nginx has logged."""
        with open(os.path.join(self.directory, "access.log"), encoding="ascii") as file:
            return [line.split() for line in file if line.startswith("HTTP/")]

    def test_it_is_used_where_offered(self):
        receiver = self.receiver()
        port = self.nginx(receiver.url(""))
        webhook = self.subscribe(f"https://good.test:{port}/hook")
        self.raise_event()
        self.log_of(webhook)
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(60)])
        entries = self.log_of(webhook, 61)
        self.assertEqual({(entry["StatusCode"], entry["Error"]) for entry in entries}, {(200, None)})
        seen = harness.wait_until(lambda: len(found := self.seen()) == 61 and found, "nginx has logged all")
        self.assertEqual({(protocol, status) for protocol, status, _ in seen}, {("HTTP/2.0", "200")})
        self.assertEqual(len({connection for _, _, connection in seen}), 1, "many requests share one")
        bodies = sorted(receiver.take().json()[0]["No"] for _ in range(61))
        self.assertEqual(bodies, sorted([0, *range(60)]))

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

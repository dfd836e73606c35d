"""How the server reaches its receivers: through a proxy, over either family of addresses, by names of a
hosts file."""
import base64
import os
import shutil
import socket
import ssl
import threading
import unittest

import harness
import hostile
from hostile import Hostile, Names
from tls import Authority, TlsReceiver

USER, PASSWORD = "someone", "secret"


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def pump_both_ways(near, far):
    threading.Thread(target=pump, args=(far, near), daemon=True).start()
    pump(near, far)


class Proxy:
    """Takes requests in absolute form and CONNECT, over TLS when it has a certificate. Looks every name up
    in `names`, and records what it is asked: the first line and the headers."""

    def __init__(self, names, certificate=None):
        self.names = names
        self.refusal = None
        self.asked = []
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(*certificate)
        self.server = Hostile(self._serve)
        self.port = self.server.port

    def _serve(self, c):
        if self.context:
            c.socket = self.context.wrap_socket(c.socket, server_side=True)
        while True:
            request = c.read_head()
            self.asked.append(request)
            method, target, _ = request.head.split(b"\r\n")[0].decode().split()
            if self.refusal is not None:
                c.send(self.refusal)
                return
            if method == "CONNECT":
                return self._tunnel(c, target)
            self._forward(c, request, method, target)

    def _connect(self, authority):
        host, port = authority.rsplit(":", 1)
        return socket.create_connection((self.names.get(host, host), int(port)), timeout=10)

    def _tunnel(self, c, authority):
        with self._connect(authority) as far:
            c.send(b"HTTP/1.1 200 Connected\r\nX-From: the proxy\r\n\r\n")
            far.sendall(c.rest)
            pump_both_ways(c.socket, far)

    def _forward(self, c, request, method, target):
        """One answer, which is small, comes back in one go and ends the connection to the receiver."""
        authority, path = target.removeprefix("http://").split("/", 1)
        lines = [line for line in request.head.split(b"\r\n")[1:] if not line.lower().startswith(b"proxy-")]
        count = int(request.header("Content-Length") or 0)
        while len(c.rest) < count:
            c.more()
        body, c.rest = c.rest[:count], c.rest[count:]
        with self._connect(authority) as far:
            far.sendall(f"{method} /{path} HTTP/1.1\r\n".encode() + b"\r\n".join(lines) + b"\r\n\r\n" + body)
            c.send(far.recv(65536))


class Socks:
    """A SOCKS 5 proxy (RFC 1928, RFC 1929): a name, a password, CONNECT to names."""

    def __init__(self, names):
        self.names = names
        self.asked = []
        self.server = Hostile(self._serve)
        self.port = self.server.port

    @staticmethod
    def _take(c, count):
        while len(c.rest) < count:
            c.more()
        taken, c.rest = c.rest[:count], c.rest[count:]
        return taken

    def _take_text(self, c):
        return self._take(c, self._take(c, 1)[0]).decode()

    def _serve(self, c):
        self._take(c, self._take(c, 2)[1])  # the methods that are offered
        c.send(b"\x05\x02")
        self._take(c, 1)
        credentials = self._take_text(c), self._take_text(c)
        c.send(b"\x01\x00")
        command = self._take(c, 4)
        name = self._take_text(c) if command[3] == 3 else socket.inet_ntoa(self._take(c, 4))
        port = int.from_bytes(self._take(c, 2), "big")
        self.asked.append((credentials, name, port))
        with socket.create_connection((self.names.get(name, name), port), timeout=10) as far:
            c.send(b"\x05\x00\x00\x01" + bytes(6))
            far.sendall(c.rest)
            pump_both_ways(c.socket, far)


class Case(harness.ServerCase):
    def make_config(self):
        self.directory = harness.tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        return dict(harness.load_config(harness.SHOP), Delivery=self.make_delivery())

    def closing(self, thing):
        self.addCleanup(thing.close)
        return thing

    def attempt(self, url, seconds=10):
        webhook = self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": [], "TimeoutSeconds": seconds})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})

        def entries():
            answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
            return answer.status == 200 and answer.json()
        entry, = harness.wait_until(entries, "a log entry")
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        return entry


class ThroughAProxy(Case):
    def make_delivery(self):
        """With a name server that must never be asked: names are the proxy's."""
        self.authority = Authority(self.directory, "ours")
        self.proxy = Proxy({"only-the-proxy-knows.test": "127.0.0.1"})
        self.closing(self.proxy.server)
        self.names = self.closing(Names({}))
        return {"Proxy": f"http://{USER}:{PASSWORD}@127.0.0.1:{self.proxy.port}", "CaFile": self.authority.file,
                "NameServers": [self.names.address], "Egress": {"Deny": ["127.0.0.2"]}}

    def expect_credentials(self):
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        self.assertEqual({request.header("Proxy-Authorization") for request in self.proxy.asked}, {expected})

    def test_plain(self):
        receiver = self.receiver()
        url = f"http://only-the-proxy-knows.test:{receiver.port}/hook?a=b"
        for _ in range(2):
            self.assertEqual(self.attempt(url)["StatusCode"], 200)
            request = receiver.take()
            self.assertEqual(request.path, "/hook?a=b")
            self.assertIsNone(request.headers["Proxy-Authorization"])
        self.assertEqual({request.head.split(b"\r\n")[0].decode() for request in self.proxy.asked},
                         {f"POST {url} HTTP/1.1"})
        self.expect_credentials()
        self.assertEqual((self.proxy.server.connections, self.names.asked), (1, {}))

    def test_tls(self):
        """A tunnel: the proxy sees a name, and nothing of the request."""
        receiver = self.closing(TlsReceiver(self.authority.sign("only-the-proxy-knows.test")))
        url = receiver.url(host="only-the-proxy-knows.test")
        for _ in range(2):
            entry = self.attempt(url)
            self.assertEqual((entry["StatusCode"], entry["Error"]), (200, None))
            self.assertIsNone(receiver.take().headers["Proxy-Authorization"])
        self.assertEqual([request.head.split(b"\r\n")[0].decode() for request in self.proxy.asked],
                         [f"CONNECT only-the-proxy-knows.test:{receiver.port} HTTP/1.1"])
        self.assertNotIn(b"webhook-id", b"".join(request.head for request in self.proxy.asked))
        self.expect_credentials()
        self.assertEqual(self.names.asked, {})

    def test_certificates_are_checked_behind_it_too(self):
        receiver = self.closing(TlsReceiver(self.authority.sign("another.test")))
        entry = self.attempt(receiver.url(host="only-the-proxy-knows.test"))
        self.assertRegex(entry["Error"], "no alternative certificate subject name")
        self.assertTrue(receiver.nothing(0))

    def test_it_is_no_way_around_the_rules(self):
        refused = self.post("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.2:9/",
                                                   "EventSelector": "/Shop.OrderPlaced"})
        self.assertEqual(refused.status, 400, refused)
        self.assertIn("127.0.0.2", refused.json()["detail"])
        self.assertEqual(self.proxy.asked, [])

    def test_it_refuses(self):
        receiver = self.closing(TlsReceiver(self.authority.sign("127.0.0.1")))
        for status, words in ((b"407 Proxy Authentication Required", "407"), (b"403 Forbidden", "403")):
            self.proxy.refusal = b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n"
            entry = self.attempt(receiver.url())
            self.assertIsNone(entry["StatusCode"], "that was the proxy's, not the receiver's")
            self.assertRegex(entry["Error"], f"CONNECT.*{words}")

    def test_it_is_gone(self):
        self.proxy.server.close()
        entry = self.attempt("http://only-the-proxy-knows.test:9/")
        self.assertRegex(entry["Error"], "onnect")
        self.assertNotIn(PASSWORD, entry["Error"])


class ThroughAProxyOverTls(Case):
    """The authorities of CaFile are those for the proxy, too."""

    def make_delivery(self):
        self.authority = Authority(self.directory, "ours")
        self.proxy = Proxy({"known.test": "127.0.0.1"}, self.authority.sign("127.0.0.1"))
        self.closing(self.proxy.server)
        return {"Proxy": f"https://127.0.0.1:{self.proxy.port}", "CaFile": self.authority.file}

    def test_plain_and_tls(self):
        plain = self.receiver()
        secured = self.closing(TlsReceiver(self.authority.sign("known.test")))
        for url in (f"http://known.test:{plain.port}/hook", secured.url(host="known.test")):
            entry = self.attempt(url)
            self.assertEqual((entry["StatusCode"], entry["Error"]), (200, None))
        self.assertEqual([request.head.split(b" ")[0] for request in self.proxy.asked], [b"POST", b"CONNECT"])

    def test_it_must_be_the_one(self):
        self.proxy.context.load_cert_chain(*self.authority.sign("another.test"))
        entry = self.attempt("http://known.test:9/")
        self.assertRegex(entry["Error"], "no alternative certificate subject name")
        self.assertEqual(self.proxy.asked, [])


class ThroughSocks(Case):
    def make_delivery(self):
        self.authority = Authority(self.directory, "ours")
        self.proxy = Socks({"known.test": "127.0.0.1"})
        self.closing(self.proxy.server)
        return {"Proxy": f"socks5h://{USER}:{PASSWORD}@127.0.0.1:{self.proxy.port}",
                "CaFile": self.authority.file}

    def test_plain_and_tls(self):
        plain = self.receiver()
        secured = self.closing(TlsReceiver(self.authority.sign("known.test")))
        for url in (f"http://known.test:{plain.port}/hook", secured.url(host="known.test")):
            entry = self.attempt(url)
            self.assertEqual((entry["StatusCode"], entry["Error"]), (200, None))
        self.assertEqual(self.proxy.asked, [((USER, PASSWORD), "known.test", port)
                                            for port in (plain.port, secured.port)])
        self.assertIsNone(plain.take().headers["Proxy-Authorization"])


class Families(Case):
    """One name with an address of each family."""

    def make_delivery(self):
        self.hosts = os.path.join(self.directory, "hosts")
        with open(self.hosts, "w", encoding="ascii") as file:
            file.write("# both\n::1 both.test\n127.0.0.1 both.test Alias.test. # a comment\n"
                       "127.0.0.1 four.test\n::1 six.test\n")
        return {"HostsFile": self.hosts, "ConnectSeconds": 1}

    def setUp(self):
        try:
            socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        except OSError as error:
            self.skipTest(f"no IPv6 on this machine: {error}")
        super().setUp()

    @staticmethod
    def fine(c):
        while True:
            c.read()
            c.send(b"HTTP/1.1 204 Fine\r\n\r\n")

    def pair(self):
        four, six = hostile.on_one_port({"127.0.0.1": self.fine, "::1": self.fine})
        return self.closing(four), self.closing(six)

    def expect(self, url):
        entry = self.attempt(url)
        self.assertEqual((entry["StatusCode"], entry["Error"]), (204, None))
        return entry

    def test_names_of_the_file(self):
        four, six = self.pair()
        cases = {"four.test": (1, 0), "ALIAS.test": (1, 0), "six.test": (0, 1), "both.test": (0, 1)}
        for name, expected in cases.items():
            with self.subTest(name):
                before = len(four.requests), len(six.requests)
                self.expect(four.url(name))
                counts = len(four.requests), len(six.requests)
                self.assertEqual((counts[0] - before[0], counts[1] - before[1]), expected)

    def test_either_may_be_dead(self):
        for alive in ("127.0.0.1", "::1"):
            with self.subTest(alive):
                receiver = self.closing(Hostile(self.fine, alive))
                self.expect(receiver.url("both.test"))
                self.assertEqual(len(receiver.requests), 1)

    def mute(self, family, address, port=0):
        """Listens, but whoever connects is not answered: its queue is full. Returns the port."""
        listener = self.closing(socket.socket(family))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(3):
            waiting = self.closing(socket.socket(family))
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        return listener.getsockname()[1]

    def test_one_that_does_not_answer_costs_little(self):
        """The other family is tried soon, long before the time to connect is over."""
        four, six = self.pair()
        six.close()
        self.mute(socket.AF_INET6, "::1", four.port)
        for number in range(5):
            four.drop_all()
            entry = self.expect(four.url("both.test"))
            self.assertLess(entry["ConnectMs"], 3000)
            self.assertEqual((len(four.requests), four.connections), (number + 1, number + 1))

    def test_neither_answers(self):
        """Whichever time is over first, to connect or for the whole: nothing is left of the sockets."""
        four, six = self.pair()
        four.close()
        six.close()
        self.mute(socket.AF_INET6, "::1", four.port)
        self.mute(socket.AF_INET, "127.0.0.1", four.port)
        for seconds, words in ((10, "not made in time"), (0.6, "600 ms were over while connecting")):
            for _ in range(3):
                entry = self.attempt(four.url("both.test"), seconds)
                self.assertIsNone(entry["StatusCode"])
                self.assertRegex(entry["Error"], words)
                self.assertLess(entry["DurationMs"], 5000)
        self.test_one_that_does_not_answer_costs_little()
        hostile.expect_clean_end(self)

    def test_the_file_is_read_again(self):
        four, _ = self.pair()
        self.assertIn("name", self.attempt(four.url("new.test"))["Error"])
        with open(self.hosts, "a", encoding="ascii") as file:
            file.write("127.0.0.1 new.test\n")
        harness.wait_until(lambda: self.attempt(four.url("new.test"))["StatusCode"] == 204, "it is read again")


class TheSystemsHosts(Case):
    def make_delivery(self):
        return {}

    @staticmethod
    def local_names():
        """Of /etc/hosts those, but localhost, that lead to an address of this machine."""
        with open("/etc/hosts", encoding="utf-8") as file:
            for line in file:
                words = line.partition("#")[0].split()
                for name in words[1:]:
                    if name != "localhost" and not name.endswith(".localhost"):
                        yield name, words[0]

    def test_they_count(self):
        for name, address in self.local_names():
            try:
                receiver = self.closing(Hostile(Families.fine, address))
            except OSError:
                continue
            entry = self.attempt(receiver.url(name))
            self.assertEqual((entry["StatusCode"], entry["Error"]), (204, None))
            return
        self.skipTest("/etc/hosts has no name but localhost for an address of this machine")


if __name__ == "__main__":
    unittest.main()

"""How the server reaches its receivers: through a proxy, over either family of addresses, by names of a
hosts file."""
import base64
import os
import shutil
import socket
import threading
import unittest
import urllib.parse

import harness
import hostile
from hostile import CONNECT_S, HEAD, TIMED_OUT, Hostile, Hostility, Mute, Names, answering, with_length
from test_hostile_receivers import CASES
from tls import Authority, make_context, ours

SECRET = "someone:se cr@t:%"  # user and password
OK = with_length(b"200 OK")
CONNECTED = b"HTTP/1.1 200 Connected\r\nX-From: the proxy\r\n\r\n"
GRANTED = b"\x05\x00\x00\x01" + bytes(6)  # as SOCKS says it


def pump(source, target):
    try:
        while data := source.recv(65536):
            target.sendall(data)
    except OSError:
        pass
    try:
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def tunneling(reply, piece=None):
    """What a proxy does with a connection and the one to the receiver: says something, and passes all on."""
    def act(c, far):
        if piece:
            c.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, len(reply), piece or len(reply)):
            c.send(reply[at:at + (piece or len(reply))])
        far.sendall(c.rest)
        back = threading.Thread(target=pump, args=(far, c.socket), daemon=True)
        back.start()
        pump(c.socket, far)
        harness.end(far)
        back.join()
    return act


def saying(reply, then=None):
    """Or it ends, or does what is said."""
    def act(c, _):
        c.send(reply)
        if then:
            then(c)
    return act


class Proxy:
    """Leads every name to 127.0.0.1; records what it is asked. `odd` maps names to what it does instead."""

    def __init__(self, secret=None, context=None):
        self.secret = secret
        self.asked = []
        self.odd = {}
        self.server = Hostile(self._serve, context=context)

    def url(self, secret=None):
        """As those write it who say this user and password, or none."""
        userinfo = ":".join(urllib.parse.quote(part, "") for part in secret.split(":", 1)) + "@" if secret else ""
        return f"{self.scheme}://{userinfo}127.0.0.1:{self.server.port}"

    @staticmethod
    def _connect(port):
        return socket.create_connection(("127.0.0.1", port), timeout=harness.DEADLINE_S)


class HttpProxy(Proxy):
    """Takes requests in absolute form and CONNECT."""

    scheme = "http"

    def credentials(self):
        return "Basic " + base64.b64encode(self.secret.encode()).decode()

    def _serve(self, c):
        while True:
            request = c.read_head()
            self.asked.append(request)
            method, target, _ = request.head.split(b"\r\n")[0].decode().split()
            name, _, port = target.removeprefix("http://").split("/")[0].rpartition(":")
            if self.secret and request.header("Proxy-Authorization") != self.credentials():
                c.send(with_length(b"407 Who Are You?", headers=b"Proxy-Authenticate: Basic realm=x\r\n"))
                return
            with self._connect(int(port)) as far:
                if name in self.odd:
                    return self.odd[name](c, far)
                if method == "CONNECT":
                    return tunneling(CONNECTED)(c, far)
                self._forward(c, request, far)

    @staticmethod
    def _forward(c, request, far):
        """One answer, which is small, comes back in one go and ends the connection to the receiver."""
        method, target, _ = request.head.split(b"\r\n")[0].split()
        lines = [line for line in request.head.split(b"\r\n")[1:] if not line.lower().startswith(b"proxy-")]
        count = int(request.header("Content-Length") or 0)
        while len(c.rest) < count:
            c.more()
        body, c.rest = c.rest[:count], c.rest[count:]
        path = target.removeprefix(b"http://").split(b"/", 1)[1]
        far.sendall(method + b" /" + path + b" HTTP/1.1\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body)
        c.send(far.recv(65536))


class HttpsProxy(HttpProxy):
    scheme = "https"

    def __init__(self, secret=None):
        super().__init__(secret, make_context(ours()[1]))


class SocksProxy(Proxy):
    """SOCKS 5 (RFC 1928, RFC 1929): CONNECT to names and addresses."""

    scheme = "socks5h"
    greeting = None  # instead of the right one

    @staticmethod
    def _take(c, count):
        while len(c.rest) < count:
            c.more()
        taken, c.rest = c.rest[:count], c.rest[count:]
        return taken

    def _take_text(self, c):
        return self._take(c, self._take(c, 1)[0]).decode()

    def _serve(self, c):
        methods = self._take(c, self._take(c, 2)[1])
        method = 2 if self.secret else 0
        if self.greeting is not None or method not in methods:
            return c.send(self.greeting or b"\x05\xff")
        c.send(bytes([5, method]))
        if method == 2:
            self._take(c, 1)
            is_right = f"{self._take_text(c)}:{self._take_text(c)}" == self.secret
            c.send(b"\x01\x00" if is_right else b"\x01\x01")
        kind = self._take(c, 4)[3]
        name = self._take_text(c) if kind == 3 else socket.inet_ntoa(self._take(c, 4))
        port = int.from_bytes(self._take(c, 2), "big")
        self.asked.append((name, port))
        with self._connect(port) as far:
            self.odd.get(name, tunneling(GRANTED))(c, far)


# What a proxy does when it is asked for a tunnel -> as in test_hostile_receivers.
CONNECTS = {
    "forbids it": (saying(with_length(b"403 Forbidden", b"Never.")), None, "403", False),
    "asks who is there": (saying(with_length(b"407 Who Are You?")), None, "407", False),
    "is overloaded": (saying(with_length(b"503 Later", headers=b"Retry-After: 9\r\n")), None, "503", False),
    "leads elsewhere": (saying(with_length(b"302 Found", headers=b"Location: http://good.test/\r\n")), None, "302",
                        False),
    "forbids it for ever": (saying(b"HTTP/1.1 403 No\r\n\r\n", lambda c: c.repeat(b"x" * 65536)), None, "403", False),
    "ends": (saying(b""), None, ".", False),
    "resets": (saying(b"", lambda c: c.reset()), None, ".", False),
    "ends in its head": (saying(HEAD + b"X: y"), None, ".", False),
    "says nothing": (saying(b"", lambda c: c.hang()), None, TIMED_OUT, True),
    "trickles a head": (saying(HEAD, lambda c: c.trickle(b"X: y\r\n")), None, TIMED_OUT, True),
    "endless headers": (saying(HEAD, lambda c: c.repeat(b"Some-Header: some value\r\n" * 100)), None, ".", False),
    "endless header": (saying(HEAD + b"X: ", lambda c: c.repeat(b"y" * 4096)), None, ".", False),
    "interim answers": (saying(b"", lambda c: c.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")), None, ".", False),
    "speaks no HTTP": (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), None, ".", False),
    "garbage": (saying(b"\xee" * 64 + b"\r\n\r\n"), None, ".", False),
    "NUL in a header": (saying(HEAD + b"X: a\0b\r\n\r\n"), None, ".", False),
    "a tunnel to nowhere": (saying(CONNECTED), None, ".", False),
    "a tunnel to silence": (saying(CONNECTED, lambda c: c.hang()), None, TIMED_OUT, True),
    "bytes behind its head": (saying(CONNECTED + b"\xee" * 64), None, ".", False),
    "an answer behind its head": (saying(CONNECTED + OK), None, ".", False),
    "a head byte by byte": (tunneling(CONNECTED, 1), 200, None, False),
    "a length": (tunneling(HEAD + b"Content-Length: 5\r\n\r\n"), 200, None, False),
    "chunks": (tunneling(HEAD + b"Transfer-Encoding: chunked\r\n\r\n"), 200, None, False),
    "no content": (tunneling(b"HTTP/1.1 204 No Content\r\n\r\n"), 200, None, False),
    # libcurl's word: no such answer is asked for.
    "an interim answer": (tunneling(b"HTTP/1.1 100 Continue\r\n\r\n" + CONNECTED), None, "response 100", False),
    "HTTP/1.0": (tunneling(b"HTTP/1.0 200 OK\r\n\r\n"), 200, None, False),
    "that it closes": (tunneling(HEAD + b"Connection: close\r\n\r\n"), 200, None, False),
}

# What it answers to a request: nobody can tell it from what the receiver would.
FORWARDS = {
    "forbids it": (saying(with_length(b"403 Forbidden", b"Never.")), 403, "403", False),
    "asks who is there": (saying(with_length(b"407 Who Are You?")), 407, "407", False),
    "ends": (saying(b""), None, "Empty reply", False),
    "ends in its head": (saying(HEAD + b"X: y"), None, "in the head", False),
    "says nothing": (saying(b"", lambda c: c.hang()), None, TIMED_OUT, True),
    "endless headers": (saying(HEAD, lambda c: c.repeat(b"Some-Header: some value\r\n" * 100)), None,
                        "head of the answer is longer than 64 KiB", False),
    "speaks no HTTP": (saying(b"SSH-2.0-OpenSSH_9.2\r\n"), None, "not HTTP", False),
}

# What a SOCKS proxy replies.
GRANTS = {
    "fails": (saying(b"\x05\x01\x00\x01" + bytes(6)), None, ".", False),
    "does not allow it": (saying(b"\x05\x02\x00\x01" + bytes(6)), None, ".", False),
    "reaches nobody": (saying(b"\x05\x04\x00\x01" + bytes(6)), None, ".", False),
    "is refused": (saying(b"\x05\x05\x00\x01" + bytes(6)), None, ".", False),
    "fails in its own way": (saying(b"\x05\xee\x00\x01" + bytes(6)), None, ".", False),
    "fails in few words": (saying(b"\x05\x05"), None, ".", False),
    "speaks SOCKS 4": (saying(b"\x00\x5a" + bytes(6)), None, ".", False),
    "speaks HTTP": (saying(with_length(b"400 Bad Request", b"This is no SOCKS.")), None, ".", False),
    "an address of no kind": (saying(b"\x05\x00\x00\x09" + bytes(250)), None, ".", False),
    "ends": (saying(b""), None, ".", False),
    "resets": (saying(b"", lambda c: c.reset()), None, ".", False),
    "ends in its reply": (saying(GRANTED[:-1]), None, ".", False),
    "ends in a name": (saying(b"\x05\x00\x00\x03\xffname"), None, ".", False),
    "says nothing": (saying(b"", lambda c: c.hang()), None, TIMED_OUT, True),
    "stops in its reply": (saying(GRANTED[:-1], lambda c: c.hang()), None, TIMED_OUT, True),
    "a tunnel to nowhere": (saying(GRANTED), None, ".", False),
    "a tunnel to silence": (saying(GRANTED, lambda c: c.hang()), None, TIMED_OUT, True),
    "byte by byte": (tunneling(GRANTED, 1), 200, None, False),
    "by name": (tunneling(b"\x05\x00\x00\x03\x09good.test\x00\x50"), 200, None, False),
    "by a long name": (tunneling(b"\x05\x00\x00\x03\xff" + b"x" * 255 + b"\x00\x50"), 200, None, False),
    "by an IPv6 address": (tunneling(b"\x05\x00\x00\x04" + bytes(18)), 200, None, False),
}

class Case(harness.ServerCase):
    def make_config(self):
        self.directory = harness.tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        return dict(harness.load_config(harness.SHOP), Delivery=self.make_delivery())

    def closing(self, thing):
        self.addCleanup(thing.close)
        return thing

    def attempt(self, url, seconds=harness.DEADLINE_S):
        webhook = self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": [], "TimeoutSeconds": seconds})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})

        def entries():
            answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
            return answer.status == 200 and answer.json()
        entry, = harness.wait_until(entries, "a log entry")
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        return entry

class Proxied(Hostility):
    """All goes through a proxy, to receivers whose names nobody else knows."""

    def make_config(self):
        """With a name server that must never be asked."""
        self.names = Names({})
        self.addCleanup(self.names.close)
        self.secured = make_context(ours()[1])
        return dict(super().make_config(), Delivery={
            "MaxInFlight": 128, "ConnectSeconds": CONNECT_S, "Proxy": self.proxy_url(), "CaFile": ours()[0],
            "NameServers": [self.names.address], "Egress": {"Deny": ["127.0.0.2"]}})

    def pair(self, script):
        """A receiver that speaks plain, and one that speaks TLS."""
        return self.hostile(script), self.hostile(script, context=self.secured)

    def delete(self, webhook):
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")


class Passwords(Proxied):
    """What the proxy wants to hear, and what it is told."""

    CASES = [
        (HttpProxy, SECRET, SECRET, True), (HttpProxy, SECRET, "someone:else", False),
        (HttpProxy, SECRET, None, False), (HttpProxy, None, SECRET, True),
        (HttpsProxy, SECRET, SECRET, True), (HttpsProxy, SECRET, None, False),
        (SocksProxy, SECRET, SECRET, True), (SocksProxy, SECRET, "someone:else", False),
        (SocksProxy, SECRET, None, False), (SocksProxy, None, SECRET, True), (SocksProxy, None, None, True),
    ]

    def proxy_url(self):
        return None

    def lead_through(self, url):
        self.server.config["Delivery"]["Proxy"] = url
        self.server.kill()
        self.server.start()

    def test_each_as_it_should_be(self):
        receivers = self.pair(answering(OK, lambda c: None))
        webhooks = [self.subscribe(receiver.url("good.test")) for receiver in receivers]
        for count, (kind, wanted, given, is_right) in enumerate(self.CASES, 1):
            proxy = kind(wanted)
            self.addCleanup(proxy.server.close)
            self.lead_through(proxy.url(given))
            self.raise_event()
            for webhook in webhooks:
                with self.subTest((kind.scheme, wanted, given, webhook["Destination"])):
                    entry = self.log_of(webhook, count)[-1]
                    self.assertEqual(entry["IsSuccess"], is_right, entry)
                    if not is_right:
                        self.expect_refusal(entry, kind)
        self.assertEqual([len(receiver.requests) for receiver in receivers],
                         [sum(is_right for *_, is_right in self.CASES)] * 2)

    def expect_refusal(self, entry, kind):
        """Of a request the proxy's answer counts, of a tunnel it does not."""
        is_answer = kind != SocksProxy and entry["Destination"].startswith("http:")
        self.assertEqual(entry["StatusCode"], 407 if is_answer else None)
        self.assertRegex(entry["Error"], "(?i)auth|password|rejected|refused|accept" if kind == SocksProxy else "407")
        self.assertNotIn("else", entry["Error"])


class ThroughAProxy(Proxied):
    """Which speaks HTTP."""

    kind = HttpProxy
    odd = {"http": FORWARDS, "https": CONNECTS}

    def proxy_url(self):
        self.proxy = self.kind(SECRET)
        self.addCleanup(self.proxy.server.close)
        return self.proxy.url(SECRET)

    def test_connections_are_kept(self):
        plain, secured = self.pair(answering(OK, lambda c: None))
        for receiver in (plain, secured):
            webhook = self.subscribe(receiver.url("good.test", "/hook?a=b"))
            for count in range(1, 4):
                self.raise_event()
                entry = self.log_of(webhook, count)[-1]
                self.assertEqual((entry["StatusCode"], entry["Error"]), (200, None))
                request = receiver.requests[-1]
                self.assertTrue(request.head.startswith(b"POST /hook?a=b HTTP/1.1\r\n"), request.head)
                self.assertEqual(request.header("Host"), f"good.test:{receiver.port}")
                self.assertNotIn(b"Proxy-", request.head)
            self.delete(webhook)
        self.expect_asked(plain.port, secured.port)
        self.assertEqual((self.proxy.server.connections, secured.connections), (2, 1))
        self.assertEqual(self.names.asked, {})

    def expect_asked(self, plain, secured):
        """For a tunnel it sees a name, and nothing of the request."""
        self.assertEqual([request.head.split(b"\r\n")[0].decode() for request in self.proxy.asked],
                         [f"POST http://good.test:{plain}/hook?a=b HTTP/1.1"] * 3
                         + [f"CONNECT good.test:{secured} HTTP/1.1"])
        self.assertEqual({request.header("Proxy-Authorization") for request in self.proxy.asked},
                         {self.proxy.credentials()})
        self.assertEqual(self.proxy.asked[-1].header("Host"), f"good.test:{secured}")
        self.assertIsNone(self.proxy.asked[-1].header("webhook-id"))

    def test_certificates_are_checked_behind_it_too(self):
        receiver = self.hostile(answering(OK), context=self.secured)
        webhook = self.subscribe(receiver.url("another.test"))
        self.raise_event()
        self.assertRegex(self.log_of(webhook)[0]["Error"], "no alternative certificate subject name")
        self.assertEqual(receiver.requests, [])

    def test_kept_ones_that_are_lost(self):
        """By the receiver at the next request, then by the proxy: there is another, within the same attempt."""
        def script(c):
            c.read()
            c.send(OK)
            c.read()
            if c.number == 1:
                return c.reset()
            c.send(OK)
            answering(OK, lambda c: None)(c)
        webhooks = [self.subscribe(receiver.url("good.test")) for receiver in self.pair(script)]
        for count in range(1, 5):
            if count == 4:
                self.proxy.server.drop_all()
            self.raise_event()
            for webhook in webhooks:
                entry = self.log_of(webhook, count)[-1]
                self.assertEqual((entry["Attempt"], entry["StatusCode"], entry["Error"]), (1, 200, None))

    def test_it_is_no_way_around_the_rules(self):
        for scheme in ("http", "https"):
            refused = self.post("/Svc.Admin.Webhook", {"Destination": f"{scheme}://127.0.0.2:9/",
                                                       "EventSelector": "/Shop.OrderPlaced"})
            self.assertEqual(refused.status, 400, refused)
            self.assertIn("127.0.0.2", refused.json()["detail"])
        self.assertEqual(self.proxy.asked, [])

    def test_it_is_gone(self):
        self.proxy.server.close()
        webhooks = [self.subscribe(f"{scheme}://good.test:9/") for scheme in ("http", "https")]
        self.raise_event()
        for webhook in webhooks:
            entry, = self.log_of(webhook)
            self.assertRegex(entry["Error"], "onnect")
            self.assertNotIn(SECRET.split(":", 1)[1], entry["Error"])

    def test_what_it_does_instead(self):
        """All at once; meanwhile somebody who is well gets through it what is for him."""
        plain, secured = self.pair(answering(OK, lambda c: None))
        webhooks = {}
        for receiver in (plain, secured):
            for number, (what, (act, *expected)) in enumerate(self.odd[receiver.scheme].items()):
                name = f"n{number}.test" if receiver is secured else f"p{number}.test"
                self.proxy.odd[name] = act
                webhooks[receiver.scheme, what] = self.subscribe(receiver.url(name), lasts=expected[-1]), expected
        healthy = self.receiver()
        good = self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        before = self.memory()
        self.raise_event()
        for number in range(20):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        for what, (webhook, expected) in webhooks.items():
            with self.subTest(what):
                self.expect_outcome(webhook, *expected)
        self.assertEqual({entry["IsSuccess"] for entry in self.log_of(good, 20)}, {True})
        self.expect_bounded_memory(before)
        hostile.expect_clean_end(self)


class ThroughAProxyOverTls(ThroughAProxy):
    """The authorities of CaFile are those for the proxy, too."""

    kind = HttpsProxy

    def test_it_must_be_the_one(self):
        self.proxy.server.context = make_context(Authority(self.server.directory, "theirs").sign("127.0.0.1"))
        webhooks = [self.subscribe(f"{scheme}://good.test:9/") for scheme in ("http", "https")]
        self.raise_event()
        for webhook in webhooks:
            self.assertRegex(self.log_of(webhook)[0]["Error"], "unable to get local issuer certificate")
        self.assertEqual(self.proxy.asked, [])

    def test_it_speaks_no_tls(self):
        self.proxy.server.context = None
        self.proxy.server.script = lambda c: (c.raw.recv(65536), c.send(with_length(b"400 Bad")))
        webhooks = [self.subscribe(f"{scheme}://good.test:9/") for scheme in ("http", "https")]
        self.raise_event()
        for webhook in webhooks:
            self.assertRegex(self.log_of(webhook)[0]["Error"], "wrong version number")

    def test_hostile_receivers_behind_it(self):
        """TLS within TLS, of which the proxy has to get all connections ready before the time is over. Resets end at
        the proxy."""
        self.timeout_s = 5 * hostile.TIMEOUT_S
        cases = {what: case for what, case in CASES.items() if "resets" not in what}
        self.expect_outcomes(cases, context=self.secured)


class ThroughSocks(ThroughAProxy):
    kind = SocksProxy
    odd = {"http": GRANTS, "https": GRANTS}

    def expect_asked(self, plain, secured):
        self.assertEqual(self.proxy.asked, [("good.test", plain), ("good.test", secured)])

    def test_what_it_greets_with(self):
        receivers = self.pair(answering(OK))
        webhooks = [self.subscribe(receiver.url("good.test")) for receiver in receivers]
        greetings = [b"\x05\xff", b"\x05\x01", b"\x05\x80", b"\x04\x02", b"\x05", b"\xee" * 64,
                     with_length(b"400 Bad", b"This is no SOCKS."), b"\x05\x02\x01\x01", b"\x05\x02\x07\x00",
                     b"\x05\x02\x01"]
        for count, self.proxy.greeting in enumerate(greetings, 1):
            self.raise_event()
            for webhook in webhooks:
                with self.subTest((self.proxy.greeting, webhook["Destination"])):
                    entry = self.log_of(webhook, count)[-1]
                    self.assertIsNone(entry["StatusCode"])
                    self.assertNotIn("were over", entry["Error"])
        self.assertEqual((self.proxy.asked, [len(receiver.requests) for receiver in receivers]), ([], [0, 0]))


class Families(Case):
    """One name with an address of each family."""

    def make_delivery(self):
        self.hosts = os.path.join(self.directory, "hosts")
        with open(self.hosts, "w", encoding="ascii") as file:
            file.write("# both\n::1 both.test\n127.0.0.1 both.test Alias.test # a comment\n"
                       "127.0.0.1 four.test\n::1 six.test\n")
        return {"HostsFile": self.hosts, "ConnectSeconds": CONNECT_S}

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

    def again(self, **members):
        """The server, with this for deliveries."""
        self.assertEqual(self.server.stop(), 0)
        self.server.config["Delivery"].update(members)
        self.server.start()

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

    def test_one_that_does_not_answer_costs_little(self):
        """The other family is tried soon, long before the time to connect is over."""
        four, six = self.pair()
        six.close()
        self.closing(Mute("::1", four.port))
        for number in range(5):
            four.drop_all()
            entry = self.expect(four.url("both.test"))
            self.assertLess(entry["ConnectMs"], 1000 * CONNECT_S / 10)
            self.assertEqual((len(four.requests), four.connections), (number + 1, number + 1))

    def test_neither_answers(self):
        """Whichever time is over first, to connect or for the whole: nothing is left of the sockets."""
        four, six = self.pair()
        four.close()
        six.close()
        self.closing(Mute("::1", four.port))
        self.closing(Mute("127.0.0.1", four.port))
        self.again(ConnectSeconds=2)
        for seconds, words in ((harness.DEADLINE_S, "Timeout was reached"), (0.6, "600 ms were over while connecting")):
            for _ in range(3):
                entry = self.attempt(four.url("both.test"), seconds)
                self.assertIsNone(entry["StatusCode"])
                self.assertRegex(entry["Error"], words)
                self.assertLess(entry["DurationMs"], 1000 * harness.DEADLINE_S)
        hostile.expect_clean_end(self)
        self.again(ConnectSeconds=CONNECT_S)
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

"""The PROXY protocol: whose a connection is that a proxy forwards. A UNIX socket stands for the proxy's
address in most tests; the other listener shows what came of it."""
import os
import re
import shutil
import socket
import subprocess
import unittest

import cluster
import harness

GET = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\n\r\n"
CLOSING = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
V2 = b"\r\n\r\n\0\r\nQUIT\n"


def v1(client, family="TCP4"):
    return f"PROXY {family} {client} {client} 1024 80\r\n".encode()


def v2(client, command=0x21, extra=b""):
    family, code = (socket.AF_INET6, 0x21) if ":" in client else (socket.AF_INET, 0x11)
    address = socket.inet_pton(family, client)
    rest = address * 2 + b"\x04\x00\x00\x50" + extra
    return V2 + bytes([command, code]) + len(rest).to_bytes(2, "big") + rest


class ProxyCase(unittest.TestCase):
    limits = {}
    members = {}

    def setUp(self):
        self.server = harness.Server(dict(harness.load_config(harness.SHOP), Limits=self.limits,
                                          **self.members))
        self.addCleanup(self.server.remove)
        self.path = os.path.join(self.server.directory, "proxied")
        self.server.listen.append({"Address": "unix:" + self.path, "ProxyProtocol": True})
        self.server.start()

    def connect(self):
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        connection.settimeout(harness.DEADLINE_S)
        connection.connect(self.path)
        return connection

    def answer(self, *parts):
        """What comes back until the server closes; the connection stays open on this side."""
        connection = self.connect()
        for part in parts:
            connection.sendall(part)
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received

    def status(self, connection):
        received = b""
        while b"\r\n\r\n" not in received:
            part = connection.recv(65536)
            if not part:
                return None
            received += part
        return int(received.split()[1])

    def metric(self, sample):
        for line in self.server.request("GET", "/Svc.Metrics").body.decode().splitlines():
            if line.startswith(sample + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError("no sample " + sample)

    def wait_closed(self, reason, count=1):
        sample = f'svc_connections_closed_total{{reason="{reason}"}}'
        harness.wait_until(lambda: self.metric(sample) == count, f"{count} closed: {reason}")


class Headers(ProxyCase):
    limits = {"ConnectionsPerAddress": 2}

    def open(self, header):
        connection = self.connect()
        connection.sendall(header + GET)
        return self.status(connection)

    def test_limits_are_for_the_client_that_is_named(self):
        headers = [v1("192.0.2.1"), v2("192.0.2.1"), v1("192.0.2.1"), v2("192.0.2.2"),
                   v1("2001:db8::1", "TCP6"), v2("2001:db8::2", extra=b"\x05\x00\x03abc"),
                   v2("2001:db8::3"), v1("192.0.2.1")]
        self.assertEqual([self.open(h) for h in headers], [204, 204, 429, 204, 204, 204, 429, 429])
        self.server.wait_for_line("192.0.2.1: refused")
        self.assertEqual(self.metric("svc_client_addresses"), 3)

    def test_the_proxys_own_connections_are_not_limited(self):
        headers = [b"PROXY UNKNOWN\r\n", b"PROXY UNKNOWN ff 1 2 3\r\n", V2 + b"\x20\0\0\0",
                   v2("192.0.2.1", command=0x20), V2 + b"\x21\0\0\0"]
        self.assertEqual([self.open(h) for h in headers], [204] * 5)
        self.assertEqual(self.metric("svc_client_addresses"), 0)

    def test_in_pieces(self):
        for header in (v1("192.0.2.1"), v2("192.0.2.2", extra=b"\x04\x00\x0a" + b"x" * 10)):
            whole = header + CLOSING
            pieces = [whole[i:i + 1] for i in range(len(whole))]
            self.assertTrue(self.answer(*pieces).startswith(b"HTTP/1.1 204 "))

    def test_with_requests_behind_it(self):
        answer = self.answer(v1("192.0.2.1") + GET * 3 + CLOSING)
        self.assertEqual(answer.count(b"HTTP/1.1 204 "), 4)

    def test_the_other_listener_takes_none(self):
        self.assertTrue(self.server.raw(v1("192.0.2.1") + GET).startswith(b"HTTP/1.1 400 "))
        self.assertEqual(self.server.request("GET", "/Shop.Message").status, 204)


class Requests(ProxyCase):
    limits = {"RequestsPerAddress": 1}

    def test_whose_the_requests_are(self):
        """The proxy is asked, a client that it named is not."""
        def post(client):
            return (f"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: {client}\r\n"
                    "Content-Length: 2\r\n\r\n{}").encode()
        requests = post("192.0.2.1") + post("192.0.2.1") + post("192.0.2.2") + CLOSING
        for header, statuses in ((b"PROXY UNKNOWN\r\n", [b"201", b"429", b"201"]),
                                 (v1("192.0.2.7"), [b"201", b"429", b"429"])):
            answer = self.answer(header + requests)
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", answer)[:3], statuses)


class NoHeaders(ProxyCase):
    limits = {"HeaderSeconds": 1}

    def test_what_does_not_begin_with_a_header_is_closed(self):
        for n, data in enumerate([GET, b"\x16\x03\x01\x02\x00", b"PROXY TCP4 nonsense\r\n" + GET,
                                  V2 + b"\x21\x11\xff\xff", b"PROXY UNKNOWN" + b" " * 200]):
            self.assertEqual(self.answer(data), b"", data)
            self.wait_closed("no PROXY header", n + 1)
        self.server.wait_for_line("unix: no PROXY header: it begins otherwise")

    def test_a_silent_proxy(self):
        self.assertEqual(self.answer(), b"")
        self.assertEqual(self.answer(v1("192.0.2.1")[:20]), b"")
        self.wait_closed("request head took too long", 2)
        self.assertEqual(self.metric('svc_limit_hits_total{limit="HeaderSeconds"}'), 2)

    def test_it_ends_before_its_header_does(self):
        connection = self.connect()
        connection.sendall(b"PROXY ")
        connection.shutdown(socket.SHUT_WR)
        self.assertEqual(connection.recv(1), b"")
        self.wait_closed("closed by the client")


class SilentProxies(ProxyCase):
    limits = {"HeaderSeconds": 600}

    def test_stopping_does_not_wait_for_headers(self):
        held = [self.connect() for _ in range(3)]
        harness.wait_until(lambda: self.metric("svc_connections_open") == 4, "all are accepted")
        self.assertEqual(self.server.stop(), 0)
        self.assertEqual([connection.recv(1) for connection in held], [b""] * 3)


class OverTcp(unittest.TestCase):
    def start(self, config):
        server = harness.Server(dict(harness.load_config(harness.SHOP), **config))
        self.addCleanup(server.remove)
        server.listen = [{"ProxyProtocol": True, "Address": "127.0.0.1:0"}]
        return server.start()

    def test_a_peer_that_is_trusted(self):
        server = self.start({"Limits": {"ConnectionsPerAddress": 1}})
        self.assertTrue(server.raw(v2("192.0.2.1") + CLOSING).startswith(b"HTTP/1.1 204 "))

    def test_a_peer_that_is_not_trusted(self):
        server = self.start({"TrustedProxies": ["192.0.2.0/24"]})
        self.assertEqual(server.raw(v1("192.0.2.1") + CLOSING), b"")
        harness.wait_until(lambda: any("127.0.0.1: no PROXY header: the peer is not in TrustedProxies"
                                       in line for line in server.log), "the log says why")

    def test_bad_listeners_are_named(self):
        address = "127.0.0.1:0"
        good = {"Address": address, "ProxyProtocol": True}
        for listen, why in (([{"ProxyProtocol": True}], r"\[0\].Address: is required"),
                            ([good, {"Address": address, "ProxyProtocol": 1}],
                             r"\[1\].ProxyProtocol: must be of type boolean"),
                            ([{"Address": address, "ProxyProtocoll": True}],
                             r"\[0\].ProxyProtocoll: .*is 'ProxyProtocol' meant"),
                            ([{"Address": 1}], r"\[0\].Address: must be of type string"),
                            ([{"Address": "x"}], r"\[0\].Address: listen address 'x' lacks a port"),
                            ([1], r"\[0\]: listen address '1' lacks a port"),
                            (address, ": must be of type array")):
            server = harness.Server()
            self.addCleanup(server.remove)
            server.listen = listen
            with self.assertRaisesRegex(AssertionError, "Listen" + why):
                server.start()


@unittest.skipUnless(shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin"), "no haproxy")
class Haproxy(ProxyCase):
    limits = {"ConnectionsPerAddress": 1}
    members = {"TrustedProxies": ["127.0.0.1"]}
    template = """
        defaults
            mode tcp
            timeout connect 10s
            timeout client 20s
            timeout server 20s
        listen one
            bind 127.0.0.1:{port}
            server svcd unix@{path} {options}
"""

    def start_haproxy(self, options):
        port = cluster.free_port()
        file = os.path.join(self.server.directory, "haproxy.cfg")
        with open(file, "w", encoding="ascii") as config:
            config.write(self.template.format(port=port, path=self.path, options=options))
        env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
        process = subprocess.Popen(["haproxy", "-db", "-q", "-f", file], env=env)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        harness.wait_until(lambda: self.can_connect(port) or process.poll() is not None,
                           "haproxy listens")
        return port

    @staticmethod
    def can_connect(port):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def ask(self, port, source):
        connection = socket.create_connection(("127.0.0.1", port), harness.DEADLINE_S,
                                              source_address=(source, 0))
        self.addCleanup(connection.close)
        connection.sendall(GET)
        return self.status(connection)

    def check(self, options):
        """Behind haproxy each loopback address is a client, but for the one that is trusted."""
        port = self.start_haproxy(options)
        sources = ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.1", "127.0.0.1"]
        self.assertEqual([self.ask(port, source) for source in sources], [204, 204, 429, 204, 204])
        self.server.wait_for_line("127.0.0.2: refused")

    def test_version_1(self):
        self.check("send-proxy")

    def test_version_2(self):
        self.check("send-proxy-v2 check check-send-proxy inter 100ms")


if __name__ == "__main__":
    unittest.main()

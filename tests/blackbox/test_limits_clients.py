"""Limits per client address, and whose requests a proxy's are."""
import socket
import unittest

import harness

GET = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\n\r\n"


def post(client=None, body=b'{"a":1}'):
    forwarded = b"" if client is None else b"X-Forwarded-For: %s\r\n" % client.encode()
    return (b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"
            % (forwarded, len(body)) + body)


class ClientsCase(harness.ServerCase):
    compares_digest = False
    limits = {}
    members = {}

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits=self.limits, **self.members)

    def connect(self, source="127.0.0.1"):
        connection = socket.create_connection(("127.0.0.1", self.server.port), harness.DEADLINE_S,
                                              source_address=(source, 0))
        self.addCleanup(connection.close)
        return connection

    def statuses(self, connection, requests):
        """Sends requests in one piece, all before the first can be on disk. Returns their statuses."""
        connection.sendall(b"".join(requests))
        stream = connection.makefile("rb")
        statuses = []
        for _ in requests:
            statuses.append(int(stream.readline().split()[1]))
            length = 0
            while (line := stream.readline()) != b"\r\n":
                if line.startswith(b"Content-Length:"):
                    length = int(line.split()[1])
            stream.read(length)
        return statuses

    def metric(self, sample):
        for line in self.get("/Svc.Metrics").body.decode().splitlines():
            if line.startswith(sample + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError("no sample " + sample)

    def hits(self, limit):
        return self.metric(f'svc_limit_hits_total{{limit="{limit}"}}')


class Addresses(ClientsCase):
    """Loopback addresses are clients here."""
    limits = {"ConnectionsPerAddress": 3, "Requests": 8, "RequestsPerAddress": 5}
    members = {"TrustedProxies": []}

    def test_connections_per_address(self):
        held = [self.connect("127.0.0.2") for _ in range(3)]
        self.assertEqual([self.statuses(c, [GET]) for c in held], [[204]] * 3)
        fourth = self.connect("127.0.0.2")
        answer = fourth.recv(65536)
        self.assertTrue(answer.startswith(b"HTTP/1.1 429 "), answer)
        self.assertIn(b"\r\nRetry-After: 1\r\n", answer)
        self.assertIn(b'"ErrorCode":"TooManyRequests"', answer)
        self.assertEqual(fourth.recv(1), b"", "it is closed")
        self.assertEqual(self.statuses(self.connect("127.0.0.3"), [GET]), [204], "others are served")
        self.assertEqual(self.hits("ConnectionsPerAddress"), 1)
        harness.wait_until(lambda: any("127.0.0.2: refused" in line for line in self.server.log),
                           "the log names the address")
        held[0].close()
        harness.wait_until(lambda: self.statuses(self.connect("127.0.0.2"), [GET]) == [204],
                           "there is room again")

    def test_an_address_is_forgotten_with_its_last_connection(self):
        held = [self.connect(f"127.0.1.{i}") for i in range(1, 50)]
        self.assertEqual({self.statuses(c, [GET])[0] for c in held}, {204})
        self.assertGreaterEqual(self.metric("svc_client_addresses"), 49)
        for connection in held:
            connection.close()
        harness.wait_until(lambda: self.metric("svc_client_addresses") == 1, "they are forgotten")

    def test_requests_per_address(self):
        connection = self.connect()
        self.assertEqual(self.statuses(connection, [post()] * 7), [201] * 5 + [429] * 2)
        self.assertEqual(self.statuses(connection, [post()] * 5), [201] * 5, "it goes on")
        self.assertEqual(self.hits("RequestsPerAddress"), 2)

    def test_nobody_is_believed(self):
        requests = [post(f"192.0.2.{i}") for i in range(7)]
        self.assertEqual(self.statuses(self.connect(), requests), [201] * 5 + [429] * 2)


class Proxies(ClientsCase):
    """Without configuration, what connects over loopback is a proxy."""
    limits = {"ConnectionsPerAddress": 1, "Requests": 8, "RequestsPerAddress": 2}

    def test_a_proxy_is_not_limited(self):
        held = [self.connect() for _ in range(20)]
        self.assertEqual([self.statuses(c, [GET]) for c in held], [[204]] * 20)
        self.assertEqual(self.statuses(self.connect(), [post()] * 8), [201] * 8)

    def test_requests_in_all(self):
        connection = self.connect()
        self.assertEqual(self.statuses(connection, [post()] * 10), [201] * 8 + [503] * 2)
        connection.sendall(b"".join([post()] * 9))
        answers = b""
        while answers.count(b"HTTP/1.1 ") < 9 or not answers.endswith(b"}"):
            answers += connection.recv(65536)
        refused = answers[answers.index(b"HTTP/1.1 503"):]
        self.assertIn(b"\r\nRetry-After: 1\r\n", refused)
        self.assertIn(b'"ErrorCode":"Overloaded"', refused)
        self.assertEqual(self.hits("Requests"), 3)
        self.assertEqual(self.get("/Svc.Admin.Error").status, 204, "refusals are not stored")

    def test_each_client_of_a_proxy(self):
        connection = self.connect()
        requests = [post("192.0.2.1"), post("192.0.2.1"), post("192.0.2.1"), post("192.0.2.2"),
                    post("6.6.6.6, 192.0.2.1"), post("192.0.2.1, 127.0.0.9")]
        self.assertEqual(self.statuses(connection, requests), [201, 201, 429, 201, 429, 429])
        requests = [post("2001:db8::1"), post("2001:db8::2"), post("2001:db8::3"), post("nonsense"),
                    post("192.0.2.1, nonsense"), post()]
        self.assertEqual(self.statuses(connection, requests), [201, 201, 429, 201, 201, 201])
        self.assertEqual(self.hits("RequestsPerAddress"), 4)
        self.assertEqual(self.metric("svc_client_addresses"), 0, "they are forgotten")


class Configuration(unittest.TestCase):
    def test_bad_proxies_are_named(self):
        for value, why in ((["10.0.0.1/8"], "goes on after its first 8 bits"),
                           (["proxy.example"], "neither an IP address nor a range"),
                           ("10.0.0.1", "array of strings")):
            server = harness.Server(dict(harness.load_config(harness.SHOP), TrustedProxies=value))
            self.addCleanup(server.remove)
            with self.assertRaisesRegex(AssertionError, "TrustedProxies: .*" + why):
                server.start()


if __name__ == "__main__":
    unittest.main()

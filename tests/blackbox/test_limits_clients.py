"""Limits per client address, and whose requests a proxy's are."""
import hashlib
import socket
import unittest

import harness

GET = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\n\r\n"
METRICS = b"GET /Svc.Metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def post(client=None, body=b'{"a":1}'):
    forwarded = b"" if client is None else b"X-Forwarded-For: %s\r\n" % client.encode()
    return (b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n"
            % (forwarded, len(body)) + body)


class ClientsCase(harness.ServerCase):
    keeps_connections = False
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
        return [harness.read_answer(stream).status for _ in requests]

    @staticmethod
    def sample(metrics, name):
        for line in metrics.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.rsplit(" ", 1)[1])
        raise AssertionError("no sample " + name)

    def metric(self, name):
        return self.sample(self.get("/Svc.Metrics").body, name)

    def hits(self, limit):
        return self.metric(f'svc_limit_hits_total{{limit="{limit}"}}')


class Addresses(ClientsCase):
    """Loopback addresses are clients here."""
    limits = {"Connections": 120, "ConnectionsPerAddress": 3, "Requests": 8, "RequestsPerAddress": 5}
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

    def test_a_flood_takes_nobodys_place(self):
        """Of those that are refused few are waited for, until they have read why."""
        for _ in range(300):
            self.connect("127.0.0.2")
        self.assertEqual(self.statuses(self.connect("127.0.0.3"), [GET]), [204])
        self.assertEqual(self.hits("Connections"), 0)
        self.assertGreaterEqual(self.hits("ConnectionsPerAddress"), 297)

    def test_requests_per_address(self):
        connection = self.connect()
        self.assertEqual(self.statuses(connection, [post()] * 7), [201] * 5 + [429] * 2)
        self.assertEqual(self.statuses(connection, [post()] * 5), [201] * 5, "it goes on")
        self.assertEqual(self.hits("RequestsPerAddress"), 2)

    def test_nobody_is_believed(self):
        requests = [post(f"192.0.2.{i}") for i in range(7)]
        self.assertEqual(self.statuses(self.connect(), requests), [201] * 5 + [429] * 2)


class Room(ClientsCase):
    """At the limit, who comes takes the place of who has been idle for longest."""
    limits = {"Connections": 10, "IdleSeconds": 60}

    def test_idle_connections_make_room(self):
        held = [self.connect() for _ in range(10)]
        self.assertEqual(self.statuses(held[0], [GET]), [204])
        for connection in held[2:5]:
            connection.sendall(GET[:10])  # these are not idle
        for _ in range(2):
            harness.wait_until(lambda: self.try_once() == 204, "there is room")
        self.assertEqual([c.recv(1) for c in (held[1], held[5])], [b"", b""])
        for connection in held[2:5]:
            connection.sendall(GET[10:])
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 204 "))
        held[2].sendall(METRICS)  # a connection of its own would need room too
        metrics = harness.read_answer(held[2].makefile("rb")).body
        reason = 'svc_connections_closed_total{reason="idle when the limit was reached"}'
        self.assertEqual(self.sample(metrics, reason), 2)

    def try_once(self):
        """On a connection that stays open when it is served."""
        connection = self.connect()
        try:
            connection.sendall(GET)
            status = int((connection.recv(65536) or b"- 0").split()[1])
        except ConnectionError:
            status = 0
        if status != 204:
            connection.close()
        return status


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


class SignInCase(ClientsCase):
    """One key is there; a guess is another one."""
    key = "a key of this test"
    good = "apikey " + key
    guess = "apikey wrong"

    def make_config(self):
        digest = hashlib.sha256(self.key.encode()).hexdigest()
        access = [{"Resources": ["*"], "Methods": ["*"]}]
        return dict(super().make_config(), RequireApiKey=True,
                    ApiKeys=[{"Name": "one", "KeySha256": digest, "AllowAccess": access}])

    def get(self, target, headers=None):
        return super().get(target, headers or {"Authorization": self.good})

    def ask(self, client, authorization):
        """As the client of a proxy, or as the proxy itself."""
        headers = {"X-Forwarded-For": client, "Authorization": authorization}
        return self.server.request("GET", "/Shop.Message",
                                   headers={name: value for name, value in headers.items() if value})


class SignInsThroughAProxy(SignInCase):
    limits = {"FailedSignInsPerMinute": 3}

    def test_an_address_that_guesses(self):
        guesses = [self.guess, "Basic d3Jvbmc6d3Jvbmc=", "nonsense", self.good, self.guess]
        answers = [self.ask("192.0.2.1", guess) for guess in guesses]
        self.assertEqual([a.status for a in answers], [401, 401, 401, 429, 429])
        self.assertEqual(answers[3].json()["ErrorCode"], "TooManyRequests")
        self.assertTrue(0 < int(answers[3].headers["Retry-After"]) <= 20, answers[3])
        self.assertNotIn("WWW-Authenticate", answers[3].headers)
        self.assertEqual(self.ask("192.0.2.2", self.good).status, 204, "others behind the proxy")
        self.assertEqual(self.ask(None, self.good).status, 204, "the proxy itself")
        self.assertEqual(self.ask("192.0.2.1", None).status, 401, "no key is no guess")
        self.assertEqual(self.hits("FailedSignInsPerMinute"), 2)
        self.assertEqual(self.metric("svc_client_addresses"), 1)
        harness.wait_until(lambda: any("192.0.2.1: too many wrong API keys" in line
                                       for line in self.server.log), "the log names it")
        self.assertEqual(self.get("/Svc.Admin.Error").status, 204, "refusals are not stored")

    def test_what_does_not_count(self):
        """No key, and what a proxy asks without saying for whom."""
        for _ in range(5):
            self.assertEqual(self.ask("192.0.2.1", None).status, 401)
            self.assertEqual(self.ask(None, self.guess).status, 401)
            self.assertEqual(self.ask("192.0.2.1", self.good).status, 204)
        self.assertEqual(self.metric("svc_client_addresses"), 0)


class DirectSignIns(SignInCase):
    limits = {"FailedSignInsPerMinute": 3}
    members = {"TrustedProxies": []}

    def test_the_peer_is_the_client(self):
        request = ("GET /Shop.Message HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: %s\r\n"
                   "Authorization: %s\r\n\r\n")
        guesses = [(request % (f"192.0.2.{i}", self.guess)).encode() for i in range(5)]
        good = (request % ("192.0.2.1", self.good)).encode()
        self.assertEqual(self.statuses(self.connect("127.0.0.2"), guesses), [401] * 3 + [429] * 2)
        self.assertEqual(self.statuses(self.connect("127.0.0.2"), [good]), [429])
        self.assertEqual(self.statuses(self.connect("127.0.0.3"), [good]), [204])


class SignInsAgain(SignInCase):
    limits = {"FailedSignInsPerMinute": 60}

    def test_after_a_while_there_is_another_try(self):
        tries = 0
        while (answer := self.ask("192.0.2.1", self.guess)).status == 401:
            tries += 1
            self.assertLess(tries, 1000)
        self.assertGreaterEqual(tries, 60)
        self.assertEqual(answer.headers["Retry-After"], "1")
        harness.wait_until(lambda: self.ask("192.0.2.1", self.good).status == 204, "it may try again")


class Configuration(unittest.TestCase):
    def test_bad_proxies_are_named(self):
        for value, why in ((["10.0.0.1/8"], r"\[0\]: .*goes on after its first 8 bits"),
                           (["::1", "proxy.example"], r"\[1\]: .*neither an IP address nor a range"),
                           ([1], r"\[0\]: must be of type string"),
                           ("10.0.0.1", ": must be of type array")):
            server = harness.Server(dict(harness.load_config(harness.SHOP), TrustedProxies=value))
            self.addCleanup(server.remove)
            with self.assertRaisesRegex(AssertionError, "TrustedProxies" + why):
                server.start()


if __name__ == "__main__":
    unittest.main()

"""Clients that are slow, silent or gone: each costs a bounded time and memory, and hears why."""
import json
import os
import resource
import socket
import subprocess
import sys
import time
import unittest

import harness

GET = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\n\r\n"
CROWD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/bench/slow_clients.py")
CLOSING = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
HEAD = b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class SlowCase(harness.ServerCase):
    keeps_connections = False
    metrics_read = 0
    closed_before = 0

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = self.limits
        return config

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port),
                                              timeout=harness.DEADLINE_S)
        self.addCleanup(connection.close)
        return connection

    def metric(self, name, **labels):
        """A sample of Svc.Metrics; 0 when there is none."""
        wanted = name
        if labels:
            wanted += "{%s}" % ",".join('%s="%s"' % label for label in labels.items())
        wanted += " "
        self.metrics_read += 1
        for line in self.get("/Svc.Metrics").body.decode().splitlines():
            if line.startswith(wanted):
                return float(line[len(wanted):])
        return 0

    def wait_closed(self, reason, count=1):
        harness.wait_until(lambda: self.closed(reason) == self.closed_before + count, f"{count} closed: {reason}")

    def closed(self, reason):
        return self.metric("svc_connections_closed_total", reason=reason)

    def read_all(self, connection):
        """All that comes until the server closes."""
        received = bytearray()
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received

    def drip(self, connection, first, data, seconds=0.05):
        """Sends what is first, and the data byte by byte until something comes back. Returns it, and how long that
        took."""
        began = time.monotonic()
        connection.sendall(first)
        connection.settimeout(seconds)
        for byte in data:
            try:
                connection.send(bytes([byte]))
                received = connection.recv(65536)
            except socket.timeout:
                continue
            took = time.monotonic() - began
            connection.settimeout(harness.DEADLINE_S)
            return received + bytes(self.read_all(connection)), took
        self.fail("all was sent, and nothing came back")


class Bodies(SlowCase):
    limits = {"BodyGraceSeconds": 1, "BodyBytesPerSecond": 1000, "BodySeconds": 4}

    def test_a_body_that_drips(self):
        answer, took = self.drip(self.connect(), HEAD % 10000, b" " * 1000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"too slowly", answer)
        self.assertIn(b"Connection: close", answer)
        self.assertGreater(took, 0.9)
        self.assertEqual(self.metric("svc_limit_hits_total", limit="BodyBytesPerSecond"), 1)
        self.wait_closed("request body came too slowly")

    def test_a_body_that_earned_its_time(self):
        """What came fast at first may come slowly for a while; no body takes longer than BodySeconds."""
        answer, took = self.drip(self.connect(), HEAD % 100000 + b" " * 50000, b" " * 1000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"took too long", answer)
        self.assertGreater(took, 3.9)
        self.assertEqual(self.metric("svc_limit_hits_total", limit="BodySeconds"), 1)


class BodyInParts(SlowCase):
    limits = {"BodyGraceSeconds": 1, "BodyBytesPerSecond": 1000}

    def test_a_body_in_two_parts(self):
        connection = self.connect()
        body = b'{"Text":"' + b"x" * 50000 + b'"}'
        connection.sendall(HEAD % len(body) + body[:40000])
        time.sleep(1.5)
        connection.sendall(body[40000:])
        self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 201 "))


class Heads(SlowCase):
    limits = {"HeaderSeconds": 1, "IdleSeconds": 60}

    def expect_408(self, connection):
        answer, _ = self.drip(connection, b"G", b"ET /Shop.Message HTTP/1.1\r\nHost: " + b"x" * 1000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"Connection: close", answer)
        self.assertEqual(self.metric("svc_limit_hits_total", limit="HeaderSeconds"), 1)
        self.wait_closed("request head took too long")

    def test_a_head_that_drips(self):
        self.expect_408(self.connect())

    def test_a_later_head_that_drips(self):
        """The limit holds from the head's first byte, though the connection may be idle for longer."""
        connection = self.connect()
        connection.sendall(GET)
        self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 204 "))
        self.expect_408(connection)


class Idle(SlowCase):
    limits = {"HeaderSeconds": 1, "IdleSeconds": 3}

    def test_silent_connections_are_closed(self):
        fresh, used = self.connect(), self.connect()
        used.sendall(GET)
        self.assertTrue(used.recv(65536).startswith(b"HTTP/1.1 204 "))
        self.assertEqual([self.read_all(c) for c in (fresh, used)], [b"", b""])
        self.wait_closed("idle", 2)


class HalfClose(SlowCase):
    limits = {}

    def test_what_was_asked_for_is_still_answered(self):
        body = b'{"Text":"' + b"x" * 100000 + b'"}'
        answer = self.server.raw((HEAD % len(body) + body) * 3 + GET * 2, half_close=True)
        self.assertEqual(answer.count(b"HTTP/1.1 201 "), 3)
        self.assertEqual(answer.count(b"HTTP/1.1 200 "), 2)
        self.assertGreater(len(answer), 6 * 100000, "each list has three entities")

    def test_half_a_request_is_not_answered(self):
        self.assertEqual(self.server.raw(GET[:20], half_close=True), b"")
        self.assertEqual(self.server.raw(HEAD % 100 + b"{", half_close=True), b"")


class LargeAnswer(SlowCase):
    """A list of 16 MB, more than the kernel holds for a client with a small buffer."""
    size = 16000000

    def populate(self):
        for _ in range(16):
            body = {"Text": "x" * (self.size // 16)}
            self.assertEqual(self.post("/Shop.Message", body).status, 201)

    def connect(self):
        connection = socket.socket()
        self.addCleanup(connection.close)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(harness.DEADLINE_S)
        connection.connect(("127.0.0.1", self.server.port))
        return connection

    def lists(self):
        """Lists evaluated: GETs answered with 200, without those of Svc.Metrics."""
        read_before = self.metrics_read
        return self.metric("svc_requests_total", method="GET", status="200") - read_before


class NotReading(LargeAnswer):
    limits = {"IdleSeconds": 3, "ConnectionUnreadBytes": 65536, "ShutdownSeconds": 1}
    shares_server = True

    def setUp(self):
        super().setUp()
        self.closed_before = self.closed("client does not read its answers")

    def test_one_that_keeps_its_connection(self):
        self.connect().sendall(GET)
        self.wait_closed("client does not read its answers")

    def test_one_whose_connection_ends_with_the_answer(self):
        self.connect().sendall(CLOSING)
        self.wait_closed("client does not read its answers")

    def test_one_that_sends_no_more(self):
        connection = self.connect()
        connection.sendall(GET)
        connection.shutdown(socket.SHUT_WR)
        self.wait_closed("client does not read its answers")

    def test_one_that_is_refused_besides(self):
        self.connect().sendall(GET + b"nonsense\r\n\r\n")
        self.wait_closed("client does not read its answers")

    @harness.apart
    def test_no_more_is_held_for_it(self):
        """Of many requests in one piece, no more are evaluated than there is room for answers."""
        before = self.metric("svc_heap_bytes")
        connections = [self.connect() for _ in range(3)]
        for connection in connections:
            connection.sendall(GET * 50)
        harness.wait_until(lambda: self.lists() >= 3, "the first of each is evaluated")
        self.assertEqual(self.lists(), 3)
        self.assertLess(self.metric("svc_heap_bytes") - before, 5 * self.size)
        self.wait_closed("client does not read its answers", 3)
        self.assertLess(self.metric("svc_heap_bytes") - before, self.size, "it is freed")

    @harness.apart
    def test_a_server_that_stops_does_not_wait_for_it(self):
        self.connect().sendall(CLOSING)
        harness.wait_until(lambda: self.metric("svc_connections_open") == 2, "it is connected")
        self.assertEqual(self.server.stop(), 0)


class NotReadingTogether(LargeAnswer):
    """Room for one such answer is all that there is for clients that do not read."""
    limits = {"UnreadBytes": 20000000}

    def test_those_that_wait_longest_go_first(self):
        connections = [self.connect() for _ in range(5)]
        for n, connection in enumerate(connections):
            connection.sendall(GET)
            harness.wait_until(lambda: self.lists() == n + 1, "it is evaluated")
            self.assertTrue(0 < self.metric("svc_unread_bytes") <= 20000000)
        hits = self.metric("svc_limit_hits_total", limit="UnreadBytes")
        self.assertGreater(hits, 0)
        self.wait_closed("client does not read its answers", hits)
        self.assertLess(len(self.read_all(connections[0])), self.size, "the first is cut off")
        self.assertGreater(len(self.read_answer(connections[-1])), self.size, "the last is not")
        connections[-1].sendall(CLOSING)
        self.assertGreater(len(self.read_all(connections[-1])), self.size)

    def read_all(self, connection):
        self.hurry(connection)
        return super().read_all(connection)

    @staticmethod
    def hurry(connection):
        """From now on it reads in large pieces."""
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)

    def read_answer(self, connection):
        self.hurry(connection)
        received = bytearray()
        while not received.endswith(b"]"):
            part = connection.recv(65536)
            self.assertNotEqual(part, b"")
            received += part
        return received


class Incoming(SlowCase):
    """Bodies that have not come whole may take a megabyte in all."""
    limits = {"IncomingBytes": 1000000}

    def seen(self):
        return self.metric("svc_incoming_bytes"), self.metric("svc_limit_hits_total", limit="IncomingBytes")

    def begin(self, sent=200000):
        before = self.seen()
        connection = self.connect()
        connection.sendall(HEAD % 400000 + b'{"Text":"' + b"x" * sent)
        harness.wait_until(lambda: self.seen() != before, "it has begun")
        return connection

    def test_who_holds_most_is_refused(self):
        connections = [self.begin() for _ in range(2)]
        large = self.begin(390000)
        answer = large.recv(65536)
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
        self.assertIn(b"\r\nRetry-After: 1\r\n", answer)
        self.assertIn(b"\r\nConnection: close\r\n", answer)
        self.assertIn(b"IncomingBytes", answer)
        self.assertEqual(large.recv(1), b"", "it is closed")
        self.assertTrue(0 < self.metric("svc_incoming_bytes") <= 1000000)
        connections[0].sendall(b"x" * (400000 - 200000 - 11) + b'"}')
        self.assertTrue(connections[0].recv(65536).startswith(b"HTTP/1.1 201 "), "it came first")
        hits = self.metric("svc_limit_hits_total", limit="IncomingBytes")
        self.assertGreaterEqual(hits, 1)
        for connection in connections:
            connection.close()
        self.wait_closed("request unfinished when the limit was reached", hits)
        harness.wait_until(lambda: self.metric("svc_incoming_bytes") == 0, "nothing is left")

    def test_one_alone(self):
        """A body that is too much by itself is refused, and the next one is welcome."""
        body = b'{"Text":"' + b"x" * 1000000 + b'"}'
        connection = self.connect()
        connection.sendall(HEAD % len(body) + body[:-1])
        self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 503 "))
        self.assertEqual(self.post("/Shop.Message", {"Text": "x" * 1000}).status, 201)

    def test_whole_requests_are_not_meant(self):
        body = b'{"Text":"' + b"x" * 100000 + b'"}'
        for _ in range(3):
            answer = self.server.raw((HEAD % len(body) + body) * 10, half_close=True)
            self.assertEqual(answer.count(b"HTTP/1.1 201 "), 10)
        self.assertEqual(self.metric("svc_incoming_bytes"), 0)


class Crowd(SlowCase):
    """Clients of every slow kind at once, as tools/bench measures them."""
    # None of those that drip or do not read is to be closed before the end.
    limits = {"HeaderSeconds": 120, "BodySeconds": 120, "BodyBytesPerSecond": 0}
    count = 400

    def crowd(self):
        crowd = subprocess.Popen([sys.executable, CROWD, str(self.server.port), "/Shop.Message",
                                  "--clients", str(self.count)],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: crowd.poll() is None and (crowd.kill(), crowd.communicate()))
        self.assertEqual(crowd.stdout.readline(), "ready\n")
        return crowd

    def test_who_is_beside_them_is_served(self):
        for _ in range(10):
            self.assertEqual(self.post("/Shop.Message", {"Text": "x" * 10000}).status, 201)
        heap = self.metric("svc_heap_bytes")
        crowd = self.crowd()
        good = self.connect()
        for _ in range(200):
            good.sendall(GET)
            self.assertEqual(len(self.read_answer(good)), 10)
        self.assertGreaterEqual(self.metric("svc_connections_open"), self.count * 3 / 4)
        # The kernel has the answers; what a connection of each kind holds is a few kB.
        self.assertLess(self.metric("svc_heap_bytes") - heap, self.count * 20000)
        counts = json.loads(crowd.communicate("\n", timeout=harness.DEADLINE_S)[0])
        self.assertGreater(counts["bytes dripped"], 0)
        self.assertNotIn("refused", counts)
        harness.wait_until(lambda: self.metric("svc_connections_open") == 2, "they are gone")

    def read_answer(self, connection):
        answer = b""
        while not answer.endswith(b"]"):
            part = connection.recv(65536)
            self.assertNotEqual(part, b"")
            answer += part
        return json.loads(answer.partition(b"\r\n\r\n")[2])


class Descriptors(SlowCase):
    limits = {"IdleSeconds": 60}

    def make_config(self):
        return dict(super().make_config(), SegmentBytes=65536)

    def ask(self, connection, request=GET):
        connection.sendall(request)
        return int(connection.recv(65536).split()[1])


class NoDescriptors(Descriptors):
    def test_without_descriptors_it_waits_and_serves_again(self):
        first = self.connect()
        self.assertEqual(self.ask(first), 204)
        _, hard = resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.server.process.pid, resource.RLIMIT_NOFILE, (40, hard))
        crowd = [self.connect() for _ in range(50)]
        self.server.wait_for_line("Too many open files")
        before = self.cpu_s()
        time.sleep(1)
        self.assertLess(self.cpu_s() - before, 0.3, "it does not spin")
        self.assertEqual(self.ask(first), 204, "who is there is served")
        for connection in crowd[:40]:
            connection.close()
        self.assertEqual([self.ask(c) for c in crowd[40:]], [204] * 10, "who waited is served")
        for connection in crowd[40:]:
            connection.close()

    def cpu_s(self):
        with open(f"/proc/{self.server.process.pid}/stat", encoding="ascii") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class FewDescriptors(Descriptors):
    wrapper = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh"]

    def test_clients_leave_some_for_the_journal(self):
        """However many come: journal segments are opened, and webhooks are called."""
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        first = self.connect()
        self.assertEqual(self.ask(first), 204)
        self.server.wait_for_line("files that the process may have open: there will be ")
        crowd = [self.connect() for _ in range(200)]
        self.server.wait_for_line("refused, the limit Connections is reached")
        body = b'{"Text":"' + b"x" * 9000 + b'"}'
        self.assertEqual([self.ask(first, HEAD % len(body) + body) for _ in range(40)], [201] * 40)
        event = b'{"Resource":"Shop.OrderPlaced","Payload":{"Total":1}}'
        head = b"POST /Svc.Event HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(event)
        self.assertEqual(self.ask(first, head + event), 201)
        receiver.take()
        self.assertEqual([line for line in self.server.log if "open files" in line], [])
        for connection in crowd:
            connection.close()
        harness.wait_until(self.can_ask, "others are served again")

    def can_ask(self):
        try:
            return self.get("/Shop.Message").status == 200
        except OSError:
            return False


if __name__ == "__main__":
    unittest.main()

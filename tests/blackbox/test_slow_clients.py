"""Clients that are slow, silent or gone: each costs a bounded time and memory, and hears why."""
import socket
import time
import unittest

import harness

HEAD = b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"


class SlowCase(harness.ServerCase):
    compares_digest = False

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
        wanted = name + "".join("{%s=\"%s\"}" % label for label in labels.items()) + " "
        for line in self.get("/Svc.Metrics").body.decode().splitlines():
            if line.startswith(wanted):
                return float(line[len(wanted):])
        return 0

    def wait_closed(self, reason):
        harness.wait_until(lambda: self.metric("svc_connections_closed_total", reason=reason) == 1,
                           f"a connection is closed: {reason}")

    def read_all(self, connection):
        """All that comes until the server closes."""
        received = b""
        try:
            while part := connection.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        return received

    def drip(self, connection, data, seconds=0.05):
        """Sends byte by byte until something comes back. Returns it, and how long that took."""
        began = time.monotonic()
        connection.settimeout(seconds)
        for byte in data:
            try:
                connection.send(bytes([byte]))
                received = connection.recv(65536)
            except socket.timeout:
                continue
            took = time.monotonic() - began
            connection.settimeout(harness.DEADLINE_S)
            return received + self.read_all(connection), took
        self.fail("all was sent, and nothing came back")


class Bodies(SlowCase):
    limits = {"BodyGraceSeconds": 1, "BodyBytesPerSecond": 1000, "BodySeconds": 4}

    def test_a_body_that_drips(self):
        connection = self.connect()
        connection.sendall(HEAD % 10000)
        answer, took = self.drip(connection, b" " * 1000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"too slowly", answer)
        self.assertIn(b"Connection: close", answer)
        self.assertGreater(took, 0.9)
        self.assertEqual(self.metric("svc_limit_hits_total", limit="BodyBytesPerSecond"), 1)
        self.wait_closed("request body came too slowly")

    def test_a_body_that_earned_its_time(self):
        """What came fast at first may come slowly for a while; no body takes longer than BodySeconds."""
        connection = self.connect()
        connection.sendall(HEAD % 100000 + b" " * 50000)
        answer, took = self.drip(connection, b" " * 1000)
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"took too long", answer)
        self.assertGreater(took, 3.9)
        self.assertEqual(self.metric("svc_limit_hits_total", limit="BodySeconds"), 1)

    def test_a_body_in_two_parts(self):
        connection = self.connect()
        body = b'{"Text":"' + b"x" * 50000 + b'"}'
        connection.sendall(HEAD % len(body) + body[:40000])
        time.sleep(1.5)
        connection.sendall(body[40000:])
        self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 201 "))


if __name__ == "__main__":
    unittest.main()

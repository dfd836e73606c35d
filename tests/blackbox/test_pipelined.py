"""Requests that come together on one connection."""
import email.utils
import socket
import time
import unittest

import harness


class Pipelined(harness.ServerCase):
    def test_a_change_that_a_later_turn_gets_to_is_committed(self):
        """A connection has so many requests evaluated in one turn of the loop. The change is left for
        after the turn's end, and nothing else happens then."""
        look = b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\n\r\n"
        body = b'{"a":1}'
        change = (b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                  b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)) + body
        time.sleep(0.3)  # so that the server has nothing to do that would help
        answers = self.server.raw(64 * look + change, seconds=harness.DEADLINE_S)
        self.assertEqual(answers.count(b"HTTP/1.1 200 "), 64)
        self.assertEqual(answers.count(b"HTTP/1.1 201 "), 1)

    def test_the_clock_goes_on_behind_what_a_later_turn_gets_to(self):
        """What is left for after a turn's end is answered right before the loop sleeps."""
        look = b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\n\r\n"
        address = ("127.0.0.1", self.server.port)
        with socket.create_connection(address, harness.DEADLINE_S) as many, \
                socket.create_connection(address, harness.DEADLINE_S) as other:
            time.sleep(0.3)  # likewise
            many.sendall(65 * look)
            with many.makefile("rb") as stream:
                for _ in range(65):
                    next(line for line in stream if line.startswith(b"Date: "))
            time.sleep(3)
            began = time.time()
            other.sendall(look)
            with other.makefile("rb") as stream:
                date = next(line for line in stream if line.startswith(b"Date: "))[6:].decode()
        self.assertGreaterEqual(email.utils.parsedate_to_datetime(date.strip()).timestamp(), began - 1.1)


if __name__ == "__main__":
    unittest.main()

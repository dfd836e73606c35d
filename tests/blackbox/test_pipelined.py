"""Requests that come together on one connection."""
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


if __name__ == "__main__":
    unittest.main()

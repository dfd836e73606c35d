"""The wall clock jumps by a day (libfaketime; tools/test installs it): retries, holds and time limits
neither end at once nor freeze."""
import email.utils
import glob
import os
import socket
import time
import unittest

import harness

DAY_S = 86400
WAIT_S = 1.5
LIBRARY = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
REFUSED = 500
HELD = (503, {"Retry-After": "2"}, b"")


class Jumps(harness.ServerCase):
    def setUp(self):
        self.assertTrue(LIBRARY, "libfaketime is missing")
        self.server = harness.Server(dict(harness.load_config(harness.SHOP), Limits={"HeaderSeconds": 2}))
        self.addCleanup(self.server.remove)
        self.clock = os.path.join(self.server.directory, "clock")
        self.server.env.update(LD_PRELOAD=LIBRARY[0], FAKETIME_NO_CACHE="1", FAKETIME_TIMESTAMP_FILE=self.clock,
                               FAKETIME_DONT_FAKE_MONOTONIC="1")
        self.server.env["ASAN_OPTIONS"] = ("verify_asan_link_order=0:"
                                           + self.server.env.get("ASAN_OPTIONS", ""))
        self.set_clock(0)
        self.server.start()

    def set_clock(self, seconds):
        """So far from the right time, for the server."""
        with open(self.clock + ".new", "w", encoding="ascii") as file:
            file.write(f"{seconds:+d}\n")
        os.rename(self.clock + ".new", self.clock)

    def jump(self, seconds):
        self.set_clock(seconds)
        harness.wait_until(lambda: abs(self.ahead_s() - seconds) < DAY_S / 2, "it has jumped")

    def ahead_s(self):
        shown = email.utils.parsedate_to_datetime(self.get("/Svc.Health").headers["Date"])
        return shown.timestamp() - time.time()

    def restart_at(self, seconds):
        self.assertEqual(self.server.stop(), 0)
        self.set_clock(seconds)
        self.server.log = []
        self.server.start()

    def fail_once(self, answer, **settings):
        """An event whose first attempt is answered so, and which waits for the second."""
        answers = iter([answer])
        receiver = self.receiver(lambda request: next(answers, 200))
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                               Delivery=dict(settings, RetrySchedule=[WAIT_S] * 3))
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})
        first = receiver.take()
        logged = f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}"
        harness.wait_until(lambda: self.get(logged).status == 200, "its answer is known")
        return receiver, first, webhook

    def expect_second(self, receiver, first):
        self.assertGreater(receiver.take().time - first.time, WAIT_S)
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Waiting").status == 204, "it is made")

    def test_a_retry(self):
        for seconds in (DAY_S, -DAY_S):
            with self.subTest(seconds):
                receiver, first, webhook = self.fail_once(REFUSED)
                self.jump(seconds)
                self.expect_second(receiver, first)
                self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")

    def test_a_hold(self):
        """Not even when the webhook is changed, by which its settings are read anew."""
        for seconds in (DAY_S, -DAY_S):
            with self.subTest(seconds):
                receiver, first, webhook = self.fail_once(HELD)
                self.jump(seconds)
                target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
                self.assertEqual(self.server.request("PATCH", target, {"Label": "x"}).status, 200)
                self.expect_second(receiver, first)
                self.server.request("DELETE", target)

    def test_a_hold_is_shown(self):
        _, _, webhook = self.fail_once((503, {"Retry-After": "600"}, b""))
        for seconds in (DAY_S, -DAY_S):
            self.jump(seconds)
            shown = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}/add=Status").json()[0]["Status"]
            self.assertEqual((shown["State"], shown["HeldBackUntil"] is None), ("HeldBack", False), shown)

    def test_a_head_half_sent(self):
        for seconds in (DAY_S, -DAY_S):
            with self.subTest(seconds):
                began = time.monotonic()
                with socket.create_connection(("127.0.0.1", self.server.port), harness.DEADLINE_S) as connection:
                    connection.sendall(b"GET /Shop.Message HTTP/1.1\r\nHo")
                    self.jump(seconds)
                    self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 408 "))
                self.assertGreater(time.monotonic() - began, 1.9)

    def test_set_back_while_the_server_is_down(self):
        for answer, is_ordered in ((REFUSED, False), (REFUSED, True), (HELD, False)):
            with self.subTest((answer, is_ordered)):
                receiver, first, webhook = self.fail_once(answer, Ordered=is_ordered)
                self.restart_at(-DAY_S)
                self.assertTrue([line for line in self.server.log if "behind the journal's last event" in line])
                self.expect_second(receiver, first)
                self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
                self.restart_at(0)

    def test_set_ahead_while_the_server_is_down(self):
        receiver, _, _ = self.fail_once(HELD)
        self.restart_at(DAY_S)
        receiver.take()


if __name__ == "__main__":
    unittest.main()

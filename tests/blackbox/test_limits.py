"""Limits: what is past them is refused with its own answer, and the server goes on."""
import socket
import threading
import unittest

import harness


class Limits(harness.ServerCase):
    keeps_connections = False

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"BodyBytes": 1000, "UriBytes": 200, "HeaderBytes": 1000, "JsonDepth": 5,
                            "JsonNodes": 50, "Conditions": 3, "PendingDeliveries": 2, "Connections": 20}
        return config

    def test_requests_past_a_limit(self):
        cases = [
            ("POST", "/Shop.Message", "[" + " " * 1000 + "]", {}, 413),
            ("GET", "/Shop.Message/a=" + "x" * 200, None, {}, 414),
            ("GET", "/Shop.Message", None, {"X-Long": "x" * 1000}, 431),
            ("POST", "/Shop.Message", '{"a":[[[[[1]]]]]}', {}, 400),
            ("POST", "/Shop.Message", '{"a":[' + ",".join("1" * 60) + "]}", {}, 400),
            ("GET", "/Shop.Message/a=1&b=2&c=3&d=4", None, {}, 400),
        ]
        for method, target, body, headers, status in cases:
            answer = self.server.request(method, target, body, headers)
            self.assertEqual(answer.status, status, (method, target[:40], answer))
            self.assertIn("application/problem+json", answer.headers["Content-Type"])
        self.assertEqual(self.get("/Shop.Message").status, 204, "nothing was stored")

    def test_pending_deliveries(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced")
        event = {"Resource": "Shop.OrderPlaced", "Payload": {}}
        statuses = [self.post("/Svc.Event", event).status for _ in range(4)]
        self.assertEqual(statuses, [201] * 4)
        found = [(delivery["State"] == "Dead", delivery["Attempts"] == 0 and delivery["LastError"] or "")
                 for delivery in self.get("/Svc.Admin.Delivery").json()]
        self.assertEqual([is_dead for is_dead, _ in found], [False, True, True, True])
        self.assertIn("half of the limit PendingDeliveries, 2", found[-1][1])
        answer = self.server.request("PATCH", "/Svc.Admin.Delivery/State=Dead/limit=1",
                                     {"State": "Pending"})
        self.assertEqual(answer.status, 503, answer)
        self.assertEqual((answer.headers["Retry-After"], answer.json()["ErrorCode"]), ("5", "Overloaded"))

    def test_connections(self):
        held = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(20)]
        for connection in held:
            connection.sendall(b"GET")  # none is idle
        try:
            answer = self.server.raw(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertTrue(answer.startswith(b"HTTP/1.1 503 "), answer)
            self.assertIn(b"Retry-After: 1", answer)
        finally:
            for connection in held:
                connection.close()
        harness.wait_until(lambda: self.get("/").status == 200, "the server goes on")


class Depth(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"JsonDepth": 900})

    def test_what_is_as_deep_as_can_be(self):
        """Whatever the service puts around it, it can read it again in every format."""
        deepest = '{"A":' + "[" * 899 + "]" * 899 + "}"
        receiver = self.receiver()
        for media_type in ("application/json", "application/x-ndjson"):
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         Headers={"Content-Type": media_type})
        self.assertEqual(self.post("/Shop.Message", deepest).status, 201)
        self.assertEqual(self.server.request("PATCH", "/Shop.Message", deepest).status, 200)
        self.assertEqual(self.post("/Svc.Event/Resource=Shop.OrderPlaced", deepest).json()[0]["Webhooks"], 2)
        for accept in ("application/json;indent=8", "text/csv", "application/x-ndjson"):
            for target in ("/Shop.Message", "/Svc.Event", "/Shop.Message/_/select=A&search=x&distinct=true"):
                self.assertIn(self.get(target, {"Accept": accept}).status, (200, 204), (accept, target))
        for _ in range(2):
            receiver.take()
        self.assertEqual(self.post("/Shop.Message", f"[{deepest}]").status, 400)

    def test_deeper_is_no_limit(self):
        server = harness.Server(dict(self.server.config, Limits={"JsonDepth": 901}))
        self.addCleanup(server.remove)
        with self.assertRaisesRegex(AssertionError, "JsonDepth"):
            server.start()


class Memory(harness.ServerCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"MemoryBytes": 4000000}
        return config

    def fill(self):
        """Stores until not even little is taken. Returns how much was stored, and the refusal."""
        stored = 0
        for text in ("x" * 100000, "x" * 2000, ""):
            while (answer := self.post("/Shop.Message", {"Text": text})).status == 201:
                stored += 1
                self.assertLess(stored, 1000)
        return stored, answer

    def test_work_is_refused_until_there_is_room(self):
        stored, answer = self.fill()
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "5"))
        for method, target, body in (("POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}}),
                                     ("PATCH", "/Shop.Message/_/unsafe=true", {"Text": "y"}),
                                     ("PUT", "/Shop.Message/Text=z", {"Text": "z"})):
            self.assertEqual(self.server.request(method, target, body).status, 503, method)
        self.assertEqual(self.get("/Svc.Health").status, 503)
        self.assertEqual(self.get("/Shop.Message/_/select=Id").status, 200)
        self.assertEqual(self.server.request("DELETE", "/Shop.Message/_/unsafe=true").json(),
                         [{"Count": stored}])
        harness.wait_until(lambda: self.post("/Shop.Message", {"a": 1}).status == 201, "there is room")
        self.assertEqual(self.get("/Svc.Health").status, 200)

    def test_deliveries_go_on(self):
        """What was accepted is delivered, its retries and log included, though nothing is taken in."""
        may_succeed = threading.Event()
        receiver = self.receiver(lambda request: 200 if may_succeed.is_set() else 500)
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     Delivery={"RetrySchedule": [0.5] + [2] * 31})
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})
        receiver.take()
        self.fill()
        may_succeed.set()
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Delivered").status == 200,
                           "it is delivered")
        logged = self.get("/Svc.Admin.WebhookLog/IsSuccess=true").json()
        self.assertEqual([entry["StatusCode"] for entry in logged], [200])
        self.assertEqual(self.post("/Shop.Message", {"Text": "x" * 100000}).status, 503)


if __name__ == "__main__":
    unittest.main()

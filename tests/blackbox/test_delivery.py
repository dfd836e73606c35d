"""Deliveries: retries, holds, pauses, order, limits, signatures, replay."""
import base64
import hashlib
import hmac
import threading
import time
import unittest

import harness
from tls import OverTls


class Case(harness.ServerCase):
    limits = {"MaxInFlight": 32, "PromptMs": 60000}  # what is prompt is not the machine's to say

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Delivery=self.limits)

    def subscribe(self, receiver, **members):
        return self.webhook(**dict({"Destination": receiver.url(),
                                    "EventSelector": "/Shop.OrderPlaced"}, **members))

    def raise_event(self, number=0):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number}})

    def deliveries(self, conditions="_"):
        answer = self.get(f"/Svc.Admin.Delivery/{conditions}")
        return answer.json() if answer.status == 200 else []

    def wait_for_state(self, state, count=1):
        return harness.wait_until(
            lambda: len(found := self.deliveries(f"State={state}")) == count and found,
            f"{count} deliveries are {state}")


class Answers(Case):
    """What a receiver answers, or when."""

    def test_failures_are_retried_with_the_same_id(self):
        answers = iter([500, 404, 302, 200])
        receiver = self.receiver(lambda request: next(answers))
        self.subscribe(receiver, Delivery={"RetrySchedule": [0.05] * 5})
        event = self.raise_event()
        requests = [receiver.take() for _ in range(4)]
        self.assertEqual({request.headers["webhook-id"] for request in requests}, {event["Id"]})
        self.assertEqual([request.headers["Svc-attempt"] for request in requests], list("1234"))
        self.assertEqual(len({request.body for request in requests}), 1)
        delivery, = self.wait_for_state("Delivered")
        self.assertEqual((delivery["Attempts"], delivery["LastStatus"]), (4, 200))
        log = self.get("/Svc.Admin.WebhookLog").json()
        self.assertEqual([entry["StatusCode"] for entry in log], [500, 404, 302, 200])
        self.assertEqual([entry["Attempt"] for entry in log], [1, 2, 3, 4])

    def test_gone_pauses_the_webhook(self):
        receiver = self.receiver(lambda request: 410)
        webhook = self.subscribe(receiver)
        self.raise_event()
        self.wait_for_state("Dead")
        seen, = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()
        self.assertTrue(seen["IsPaused"])
        self.assertIn("410", seen["ErrorMessage"])
        self.assertEqual(self.raise_event()["Webhooks"], 0)
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": False})
        self.assertIsNone(answer.json()[0]["ErrorMessage"])

    def test_retry_after_holds_the_whole_webhook(self):
        answers = iter([(503, {"Retry-After": "1"}, b"")])
        receiver = self.receiver(lambda request: next(answers, 200))
        self.subscribe(receiver, Delivery={"RetrySchedule": [0.01] * 5})
        self.raise_event(1)
        held = receiver.take().time
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog/StatusCode=503").status == 200, "its answer is known")
        self.raise_event(2)
        self.assertGreaterEqual(receiver.take().time - held, 0.95)
        self.assertGreaterEqual(receiver.take().time - held, 0.95)
        self.wait_for_state("Delivered", 2)

    def test_another_host_is_not_held_back(self):
        """Not the delivery either that was answered so: it has the schedule's time."""
        busy, other = self.receiver(lambda r: (429, {"Retry-After": "3600"}, b"")), self.receiver(address="127.0.0.2")
        webhook = self.subscribe(busy, Delivery={"RetrySchedule": [0.1, 0.1], "Ordered": True})
        events = [self.raise_event(), self.raise_event()]
        busy.take()
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        status = harness.wait_until(
            lambda: (s := self.get(target + "/add=Status").json()[0]["Status"])["State"] == "HeldBack" and s, "it is held")
        first = self.deliveries(f"EventId={events[0]['Id']}")[0]
        self.assertEqual((first["State"], first["NextAttemptTime"]), ("Waiting", status["HeldBackUntil"]))
        self.assertEqual(self.server.request("PATCH", target, {"Destination": other.url()}).status, 200)
        self.assertEqual([other.take().headers["webhook-id"] for _ in events], [event["Id"] for event in events])
        self.wait_for_state("Delivered", 2)

    def test_one_bad_receiver_does_not_delay_another(self):
        slow = self.receiver(lambda request: time.sleep(600))
        fast = self.receiver()
        hanging = self.subscribe(slow, Delivery={"TimeoutSeconds": 600})
        self.subscribe(fast)
        for number in range(200):
            self.raise_event(number)
        for _ in range(200):
            fast.take()
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={hanging['Id']}")

    def test_hanging_receivers_leave_room_for_others(self):
        """Of the attempts that may be under way in all, those that hang get a few each."""
        hanging = self.receiver(lambda request: time.sleep(600))
        for _ in range(6):
            self.subscribe(hanging, Delivery={"MaxInFlight": 16, "TimeoutSeconds": 600})
        healthy = self.receiver()
        self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(20)])
        harness.wait_until(lambda: len(self.deliveries("State=InFlight")) == 24, "they hang")
        for number in range(20):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        harness.wait_until(lambda: len(self.deliveries("State=InFlight")) == 24, "they still hang")
        self.server.request("DELETE", "/Svc.Admin.Webhook/_/unsafe=true")


class AnswersOverTls(OverTls, Answers):
    pass


class Deliveries(Case):
    def test_the_schedule_ends_and_patch_sends_again(self):
        works = {"now": False}
        receiver = self.receiver(lambda request: 200 if works["now"] else 500)
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": [0.02, 0.02]})
        for number in range(3):
            self.raise_event(number)
        dead = self.wait_for_state("Dead", 3)
        self.assertEqual({delivery["Attempts"] for delivery in dead}, {3})
        self.assertIn("500", dead[0]["LastError"])
        works["now"] = True
        target = f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}&State=Dead"
        refused = self.server.request("PATCH", target, {"State": "Pending"})
        self.assertEqual(refused.status, 400, "several need unsafe=true")
        answer = self.server.request("PATCH", target + "/unsafe=true", {"State": "Pending"})
        self.assertEqual((answer.status, len(answer.json())), (200, 3), answer)
        self.wait_for_state("Delivered", 3)

    def test_pausing_keeps_what_is_queued(self):
        receiver = self.receiver(lambda request: 500)
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": [0.5] * 32})
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        self.raise_event()
        receiver.take()
        self.server.request("PATCH", target, {"IsPaused": True})
        self.settle()
        receiver.forget()  # what was attempted before
        self.assertEqual(self.raise_event()["Webhooks"], 0)
        self.assertTrue(receiver.nothing(1.0), "a paused webhook is silent")
        receiver.script = None
        self.server.request("PATCH", target, {"IsPaused": False})
        receiver.take()
        self.wait_for_state("Delivered")

    def test_an_ordered_webhook_keeps_the_order(self):
        seen = []

        def script(request):
            number = request.json()[0]["No"]
            seen.append(number)
            return 500 if seen.count(number) < 2 and number % 3 == 0 else 200
        receiver = self.receiver(script)
        self.subscribe(receiver, Delivery={"Ordered": True, "RetrySchedule": [0.02] * 5})
        for number in range(10):
            self.raise_event(number)
        self.wait_for_state("Delivered", 10)
        self.assertEqual(seen, [0, 0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9, 9])

    def test_a_rate_is_kept(self):
        receiver = self.receiver()
        self.subscribe(receiver, Delivery={"RatePerSecond": 10})
        began = time.monotonic()
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}} for number in range(15)])
        self.wait_for_state("Delivered", 15)
        self.assertGreaterEqual(max(receiver.take().time for _ in range(15)) - began, 0.4)

    def test_signatures(self):
        """Standard Webhooks, verified by hand: each secret signs id, timestamp and body."""
        secrets = [base64.b64encode(bytes([n] * 32)).decode() for n in (1, 2)]
        receiver = self.receiver()
        self.subscribe(receiver, Signing={"Secrets": ["whsec_" + secret for secret in secrets]})
        self.raise_event()
        request = receiver.take()
        stamp = request.headers["webhook-timestamp"]
        self.assertLess(abs(int(stamp) - time.time()), 60)
        signed = f"{request.headers['webhook-id']}.{stamp}.".encode() + request.body
        expected = [
            "v1," + base64.b64encode(hmac.new(base64.b64decode(secret), signed, hashlib.sha256).digest())
            .decode() for secret in secrets]
        self.assertEqual(request.headers["webhook-signature"].split(), expected)

    def test_the_content_type_picks_the_format(self):
        """Any format that the server writes, which are more than it reads."""
        bodies = {"application/json": b'[{"No":1},{"No":2,"To":"a,b"}]',
                  "application/x-ndjson": b'{"No":1}\n{"No":2,"To":"a,b"}\n',
                  "text/csv; charset=UTF-8": b'No,To\r\n1,\r\n2,"a,b"\r\n'}
        receiver = self.receiver()
        for media_type in bodies:
            self.subscribe(receiver, Headers={"content-type": media_type})
        self.created("/Svc.Event/Resource=Shop.OrderPlaced", bodies["application/json"])
        requests = [receiver.take() for _ in bodies]
        self.assertEqual({request.headers["Content-Type"]: request.body for request in requests}, bodies)
        for media_type in ("application/xml", "text/csv; charset=latin1", "text/*"):
            refused = self.post("/Svc.Admin.Webhook", {
                "Destination": receiver.url(), "EventSelector": "/Shop.OrderPlaced",
                "Headers": {"Content-Type": media_type}})
            self.assertEqual((refused.status, refused.json()["ErrorCode"]), (400, "InvalidResourceEntity"))
            self.assertRegex(refused.json()["detail"], "^Headers: .*cannot be written.*text/csv")

    def test_a_deleted_webhook_takes_its_deliveries_along(self):
        receiver = self.receiver(lambda request: 500)
        webhook = self.subscribe(receiver)
        for number in range(5):
            self.raise_event(number)
        self.wait_for_state("Waiting", 5)
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        harness.wait_until(lambda: not self.deliveries(), "they are gone")

    def test_a_backlog_is_not_a_flood(self):
        """A receiver that comes back meets its deliveries a few at a time, and more and more of them."""
        works = {"now": False}
        lock, under_way, seen = threading.Lock(), [0], []

        def answer(_):
            if not works["now"]:
                return 503
            with lock:
                under_way[0] += 1
                seen.append(under_way[0])
            time.sleep(0.3)  # long beside what sending one takes on a slow machine
            with lock:
                under_way[0] -= 1
            return 200
        receiver = self.receiver(answer)
        self.subscribe(receiver, Delivery={"RetrySchedule": [2] * 30, "MaxInFlight": 8})
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(60)])
        harness.wait_until(lambda: not self.deliveries("Attempts=0"), "each has failed")
        works["now"] = True
        self.wait_for_state("Delivered", 60)
        self.assertEqual(seen[0], 1)
        self.assertLessEqual(max(seen[:3]), 2)
        self.assertEqual(max(seen), 8)

    def test_an_abort_is_told(self):
        self.webhook(Destination="/Svc.Event/Resource=Shop.OrderPlaced", EventSelector="/Shop.OrderPlaced")
        self.raise_event()
        aborted = harness.wait_until(lambda: self.deliveries("State=Aborted"), "the loop is broken")
        self.assertIn("chain", aborted[0]["LastError"])
        self.wait_for_state("Delivered", 15)
        self.assertEqual(len(self.get("/Svc.Event").json()), 16)


class OneHost(Case):
    """Many webhooks of one receiver, which hangs until it works. What is at another address is another host."""

    limits = {"MaxInFlight": 32, "MaxConnectionsPerHost": 2}
    webhooks, events, places = 16, 20, 2

    def setUp(self):
        super().setUp()
        self.works = threading.Event()
        self.addCleanup(self.works.set)
        hanging = self.receiver(lambda request: self.works.wait(600) and 200)
        self.all = [self.subscribe(hanging, Delivery={"TimeoutSeconds": 600}) for _ in range(self.webhooks)]
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                 for number in range(self.events)])
        harness.wait_until(lambda: len(self.in_flight()) == self.places, "its places are taken")

    def in_flight(self):
        return [delivery["WebhookId"] for delivery in self.deliveries("State=InFlight")]

    def target_of(self, webhook):
        return f"/Svc.Admin.Webhook/Id={webhook['Id']}"

    def test_it_holds_no_slots_of_others(self):
        healthy = self.receiver(address="127.0.0.2")
        self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        for number in range(50):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        self.assertLessEqual(len(self.in_flight()), self.places + 1)
        self.works.set()
        self.wait_for_state("Delivered", self.webhooks * self.events + 50)

    def test_all_have_their_turn_when_it_works(self):
        self.works.set()
        self.wait_for_state("Delivered", self.webhooks * self.events)

    def test_those_that_wait_may_change(self):
        """Paused, led elsewhere, deleted: what waits for a place gives it up, and nobody's is lost."""
        busy = set(self.in_flight())
        moved, paused, deleted, told, *_ = [w for w in self.all if w["Id"] not in busy]
        status, = self.get(self.target_of(told) + "/add=Status").json()
        self.assertEqual(status["Status"]["State"], "Throttled")
        self.assertIn("host", status["Status"]["Reason"])
        healthy = self.receiver(address="127.0.0.2")
        self.server.request("PATCH", self.target_of(moved), {"Destination": healthy.url()})
        for _ in range(self.events):
            healthy.take()
        self.server.request("PATCH", self.target_of(paused), {"IsPaused": True})
        self.server.request("DELETE", self.target_of(deleted))
        self.works.set()
        self.wait_for_state("Delivered", (self.webhooks - 2) * self.events)
        self.server.request("PATCH", self.target_of(paused), {"IsPaused": False})
        self.wait_for_state("Delivered", (self.webhooks - 1) * self.events)


class OneHostOverTls(OverTls, OneHost):
    pass


class HangingHosts(Case):
    """More of them than there are slots, each a host of its own."""
    limits = dict(Case.limits, MaxInFlight=8)

    def raise_total(self, total):
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": total}})

    def test_who_answers_promptly_is_not_held_up(self):
        release = threading.Event()
        self.addCleanup(release.set)
        prompt = self.receiver()
        self.subscribe(prompt, EventSelector="/Shop.OrderPlaced/Total=1")
        self.raise_total(1)
        self.wait_for_state("Delivered")
        for _ in range(12):
            hanging = self.receiver(lambda request: release.wait(600) and None)
            self.subscribe(hanging, EventSelector="/Shop.OrderPlaced/Total=2", Delivery={"TimeoutSeconds": 600})
        self.raise_total(2)
        self.wait_for_state("InFlight", 7)
        self.raise_total(1)
        self.wait_for_state("Delivered", 2)
        self.assertEqual(len(self.deliveries("State=InFlight")), 7, "they go on hanging")
        webhooks = self.get("/Svc.Admin.Webhook/_/add=Status").json()
        reasons = [webhook["Status"]["Reason"] or "" for webhook in webhooks]
        self.assertEqual(len([reason for reason in reasons if "not known to answer" in reason]), 5, reasons)
        release.set()
        self.wait_for_state("Delivered", 14)


class HangingHostsOverTls(OverTls, HangingHosts):
    pass


if __name__ == "__main__":
    unittest.main()

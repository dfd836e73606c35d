"""What webhooks promise at the edges: who gets a free slot, rates, order, chains, local receivers,
masks, and that a refused change has not happened."""
import datetime
import hashlib
import time
import unittest

import harness
import test_delivery

MASK = "*******"
SECRETS = ["whsec_" + "a" * 32, "whsec_" + "b" * 32]


def at(entry):
    """When an attempt began, in seconds."""
    return datetime.datetime.fromisoformat(entry["Time"][:26]).timestamp()


class Case(test_delivery.Case):
    def changed(self, webhook, **members):
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", members)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()[0]

    def status(self, webhook):
        return self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}/add=Status").json()[0]["Status"]

    def log(self, webhook):
        answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
        return answer.json() if answer.status == 200 else []

    def raise_several(self, count, **members):
        events = [{"Resource": "Shop.OrderPlaced", "Payload": dict(members, No=number)}
                  for number in range(count)]
        self.assertEqual(self.post("/Svc.Event", events).status, 201)


class Slots(Case):
    """Of those that all webhooks share; every one is taken by attempts that hang."""

    limits = {"MaxInFlight": 2}

    def setUp(self):
        super().setUp()
        self.hanging = self.subscribe(self.receiver(lambda request: time.sleep(600)), Delivery={"TimeoutSeconds": 600})
        self.raise_several(2)
        self.wait_for_state("InFlight", 2)
        self.healthy = self.receiver()
        self.subscribe(self.healthy, EventSelector="/Shop.OrderPlaced/Urgent=true")
        self.raise_several(1, Urgent=True)

    def test_a_deleted_webhook_gives_its_slots_back(self):
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={self.hanging['Id']}")
        self.healthy.take()
        self.wait_for_state("Delivered")

    def test_so_do_deleted_deliveries(self):
        mine = f"WebhookId={self.hanging['Id']}"
        self.server.request("DELETE", f"/Svc.Admin.Delivery/{mine}&State=Pending")
        self.server.request("DELETE", f"/Svc.Admin.Delivery/{mine}&State=InFlight/unsafe=true")
        self.healthy.take()
        self.wait_for_state("Delivered")


class Rate(Case):
    def test_no_second_has_more_than_the_rate_says(self):
        webhook = self.subscribe(self.receiver(), Delivery={"RatePerSecond": 10})
        self.raise_several(15)
        self.wait_for_state("Delivered", 15)
        starts = sorted(at(entry) for entry in self.log(webhook))
        for first, next_but_nine in zip(starts, starts[10:]):
            self.assertGreater(next_but_nine - first, 0.9)

    def test_a_restart_does_not_exceed_it(self):
        receiver = self.receiver()
        self.subscribe(receiver, Delivery={"RatePerSecond": 1})
        began = time.monotonic()
        self.raise_several(2)
        receiver.take()
        self.server.kill()
        self.server.start()
        self.assertGreater(receiver.take().time - began, 1)
        self.wait_for_state("Delivered", 2)

    def test_one_that_is_new_after_a_restart(self):
        self.server.kill()
        self.server.start()
        receiver = self.receiver()
        self.subscribe(receiver, Delivery={"RatePerSecond": 1e-300})
        self.raise_several(1)
        receiver.take()

    def test_a_rate_of_next_to_nothing(self):
        receiver = self.receiver()
        webhook = self.subscribe(receiver, Delivery={"RatePerSecond": 1e-300})
        self.raise_several(3)
        receiver.take()
        self.assertTrue(receiver.nothing())
        self.assertEqual(self.status(webhook)["State"], "Throttled")
        self.changed(webhook, IsPaused=True)


class Order(Case):
    def test_only_the_first_blocks_the_others(self):
        """Two deliveries wait for hours when the webhook becomes an ordered one; the first of them
        holds back what comes after it, the second does not hold back the first."""
        receiver = self.receiver(lambda request: 500)
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": [10000]})
        self.raise_several(2)
        self.wait_for_state("Waiting", 2)
        receiver.script = None
        self.changed(webhook, Delivery={"Ordered": True})
        self.raise_several(1)
        self.resend(0)
        self.wait_for_state("Delivered")
        status = self.status(webhook)
        self.assertEqual((status["Waiting"], status["Pending"]), (1, 1))
        self.resend(1)
        self.wait_for_state("Delivered", 3)
        self.assertEqual([receiver.take().json()[0]["No"] for _ in range(5)][2:], [0, 1, 0])

    def test_those_that_wait_keep_their_times(self):
        """Also when the webhook is an ordered one for a while."""
        receiver = self.receiver(lambda request: 500 if request.headers["Svc-attempt"] == "1" else 200)
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": [1]})
        self.raise_several(3)
        harness.wait_until(lambda: len(self.log(webhook)) >= 3, "each has failed")
        self.changed(webhook, Delivery={"Ordered": True})
        self.changed(webhook, Delivery={"Ordered": False})
        self.wait_for_state("Delivered", 3)
        failed = {entry["DeliveryId"]: at(entry) for entry in self.log(webhook) if entry["Attempt"] == 1}
        again = {entry["DeliveryId"]: at(entry) for entry in self.log(webhook) if entry["Attempt"] == 2}
        self.assertEqual((len(failed), failed.keys()), (3, again.keys()))
        for delivery, moment in again.items():
            self.assertGreater(moment - failed[delivery], 0.99)

    def test_what_is_sent_again_need_not_wait_for_a_later_one(self):
        receiver = self.receiver()
        webhook = self.subscribe(receiver, Delivery={"Ordered": True, "RetrySchedule": [10000]})
        self.raise_several(1)
        self.wait_for_state("Delivered")
        receiver.script = lambda request: 500
        self.raise_several(1)
        self.wait_for_state("Waiting")
        receiver.script = None
        self.resend(0)
        self.wait_for_state("Delivered")
        self.assertEqual(self.status(webhook)["Waiting"], 1)

    def resend(self, number):
        delivery = self.deliveries("_/order_asc=ObjectNo")[number]
        answer = self.server.request("PATCH", f"/Svc.Admin.Delivery/Id={delivery['Id']}",
                                     {"State": "Pending"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json()[0]["State"], "Pending")
        self.assertEqual(answer.json()[0]["Attempts"], 0)


class NewChances(Case):
    def test_one_that_is_resumed(self):
        """It is not paused again by its first failure."""
        receiver = self.receiver(lambda request: 500)
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": [0.3] * 32,
                                                     "DisableAfterDays": 0.5 / 86400})
        self.raise_several(1)
        harness.wait_until(lambda: self.status(webhook)["State"] == "Paused", "it is paused")
        before = len(self.log(webhook))
        resumed = self.changed(webhook, IsPaused=False, Delivery={"DisableAfterDays": 1})
        self.assertIsNone(resumed["ErrorMessage"])
        harness.wait_until(lambda: len(self.log(webhook)) > before, "it fails again")
        since = self.status(webhook)["FailingSince"]
        self.assertGreater(since, self.log(webhook)[before - 1]["Time"])
        self.changed(webhook, IsPaused=True)

    def test_one_that_is_led_elsewhere(self):
        """What the receiver before it asked for was for that one."""
        away, here = self.receiver(lambda request: (503, {"Retry-After": "9000"}, b"")), self.receiver()
        webhook = self.subscribe(away)
        self.raise_several(1)
        self.wait_for_state("Waiting")
        self.assertEqual(self.status(webhook)["State"], "HeldBack")
        self.changed(webhook, Destination=away.url("/other"))
        self.assertEqual(self.status(webhook)["State"], "HeldBack")
        self.changed(webhook, Destination=here.url())
        self.raise_several(1)
        here.take()
        self.wait_for_state("Delivered")


class Chains(Case):
    """Of more than 16 events that cause one another."""

    def check(self, destination, last):
        webhook = self.subscribe(self.receiver(), Destination=destination,
                                 Delivery={"RetrySchedule": []})
        self.raise_several(1)
        self.wait_for_state(last)
        self.wait_for_state("Delivered", 15)
        self.assertEqual(len(self.get("/Svc.Event").json()), 16)
        error, = self.get("/Svc.Admin.Error").json()
        self.assertEqual(error["ErrorCode"], "InfiniteLoopDetected")
        self.assertIn("17th", error["Message"])
        self.assertEqual(self.log(webhook)[-1]["StatusCode"], 508)

    def test_in_process(self):
        self.check("/Svc.Event/Resource=Shop.OrderPlaced", "Aborted")

    def test_by_way_of_http(self):
        self.check(f"http://127.0.0.1:{self.server.port}/Svc.Event/Resource=Shop.OrderPlaced", "Dead")

    def test_what_the_header_says(self):
        event = {"Resource": "Shop.OrderPlaced", "Payload": {}}
        for depth, status in (("0", 201), ("15", 201), ("16", 508), ("999", 508), ("-1", 201),
                              ("", 201), ("x", 201)):
            answer = self.post("/Svc.Event", event, {"Svc-depth": depth})
            self.assertEqual(answer.status, status, depth)


class Requests(Case):
    def test_null_is_the_default(self):
        receiver = self.receiver()
        webhook = self.subscribe(receiver, Method=None, Headers=None, IsPaused=None, Delivery={
            "TimeoutSeconds": None, "RetrySchedule": None, "MaxInFlight": None,
            "RatePerSecond": None, "Ordered": None, "DisableAfterDays": None})
        self.assertEqual((webhook["Method"], webhook["Headers"], webhook["IsPaused"]),
                         ("POST", {}, False))
        self.assertEqual(webhook["Delivery"], self.subscribe(receiver, Delivery={})["Delivery"])
        custom = {"URI": "/Svc.Echo/a=1", "Method": None, "Headers": None, "BreakOnError": None}
        custom = self.changed(webhook, CustomPayloadRequest=custom)["CustomPayloadRequest"]
        self.assertEqual((custom["Method"], custom["Headers"], custom["BreakOnError"]),
                         ("GET", {}, False))
        self.assertEqual(self.changed(webhook, Method="GET")["Method"], "GET")
        self.assertEqual(self.changed(webhook, Method=None, Delivery=None)["Method"], "POST")
        self.raise_several(1)
        self.assertEqual(receiver.take().method, "POST")
        self.wait_for_state("Delivered", 2)

    def test_an_answer_without_content_is_sent_as_nothing(self):
        thing = self.created("/Shop.Person", {"Name": "Ada"})
        tag = self.get(f"/Shop.Person/Id={thing['Id']}").headers["ETag"]
        for conditions, fields in (("Name=nobody", {}), ("Name=Ada", {"If-None-Match": tag})):
            receiver = self.receiver()
            custom = {"URI": f"/Shop.Person/{conditions}", "Headers": fields}
            webhook = self.subscribe(receiver, CustomPayloadRequest=custom)
            self.raise_several(1)
            request = receiver.take()
            self.assertEqual((request.body, request.headers["Content-Type"]), (b"", None))
            self.changed(webhook, CustomPayloadRequest=dict(custom, BreakOnNoContent=True))
            self.raise_several(1)
            aborted = self.wait_for_state("Aborted")[0]
            self.assertIn("no content", aborted["LastError"])
            self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")

    def test_head_has_no_body(self):
        receiver = self.receiver()
        webhook = self.subscribe(receiver, Method="HEAD", Signing={"Secrets": SECRETS[:1]})
        self.raise_several(1)
        request = receiver.take()
        self.assertIsNone(request.headers["Content-Type"])
        self.assertTrue(self.is_signed(request, b""))
        self.wait_for_state("Delivered")
        self.assertEqual(self.log(webhook)[0]["BodyByteCount"], 0)

    @staticmethod
    def is_signed(request, body):
        key = test_delivery.base64.b64decode(SECRETS[0][len("whsec_"):])
        text = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode()
        digest = test_delivery.hmac.new(key, text + body, test_delivery.hashlib.sha256).digest()
        expected = "v1," + test_delivery.base64.b64encode(digest).decode()
        return request.headers["webhook-signature"] == expected

    def test_local_receivers_take_an_array_of_one(self):
        self.created("/Shop.Message", {"No": 0})
        for method in ("PATCH", "PUT"):
            self.webhook(EventSelector="/Shop.OrderPlaced", Method=method,
                         Destination="/Shop.Message/No=0")
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 0, "Text": "a"}})
        self.wait_for_state("Delivered", 2)
        message, = self.get("/Shop.Message").json()
        self.assertEqual(message["Text"], "a")
        answer = self.server.request("PATCH", "/Shop.Message/No=0", [{"Text": "b"}])
        self.assertEqual(answer.status, 400, answer)

    def test_a_mask_stands_for_something(self):
        receiver = self.receiver()
        webhook = self.subscribe(receiver, Headers={"Authorization": "a"}, Signing={"Secrets": SECRETS})
        kept = self.changed(webhook, Headers={"authorization": MASK}, Signing={"Secrets": [MASK]})
        self.assertEqual((kept["Headers"], kept["Signing"]["Secrets"]),
                         ({"Authorization": MASK}, [MASK]))
        self.raise_several(1)
        request = receiver.take()
        self.assertEqual(request.headers["Authorization"], "a")
        self.assertTrue(self.is_signed(request, request.body))
        self.wait_for_state("Delivered")
        for members in ({"Headers": {"Cookie": MASK}}, {"Signing": {"Secrets": [MASK] * 2}}):
            target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
            answer = self.server.request("PATCH", target, members)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidResourceEntity"))
            self.assertIn("stored to keep", answer.headers["Svc-info"])


class TooLargeAnswers(harness.ServerCase):
    """A change that cannot be answered does not happen."""

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"AnswerBytes": 65536})

    def count(self, target):
        return self.server.request("REPORT", target).json()[0]["Count"]

    def test_entities(self):
        messages = [{"Text": "x" * 100} for _ in range(500)]
        self.assertEqual(self.post("/Shop.Message", messages).status, 413)
        self.assertEqual(self.count("/Shop.Message"), 0)
        minimal = {"Prefer": "return=minimal"}
        self.assertEqual(self.post("/Shop.Message", messages, minimal).status, 201)
        everyone = "/Shop.Message/_/unsafe=true"
        answer = self.server.request("PATCH", everyone, {"Seen": True})
        self.assertEqual(answer.status, 413)
        self.assertIn("return=minimal", answer.headers["Svc-info"])
        self.assertEqual(self.count("/Shop.Message/Seen=true"), 0)
        self.assertEqual(self.server.request("PATCH", everyone, {"Seen": True}, minimal).status, 200)
        self.assertEqual(self.count("/Shop.Message/Seen=true"), 500)

    def test_bodies_as_csv(self):
        """Each entity has a member of its own, so that there are as many columns as rows."""
        receiver = self.receiver()
        for media_type in ("text/csv", "application/x-ndjson"):
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         Headers={"Content-Type": media_type})
        payload = [{f"Name{number}": number} for number in range(400)]
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": payload})
        self.assertEqual(len(receiver.take().body.splitlines()), 400)
        target = "/Svc.Admin.Delivery/State=Aborted"
        aborted, = harness.wait_until(lambda: (answer := self.get(target)).status == 200 and answer,
                                      "one is aborted").json()
        self.assertIn("text/csv", aborted["LastError"])
        self.assertIn("AnswerBytes", aborted["LastError"])

    def test_deliveries(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced",
                     Delivery={"RetrySchedule": [10000]})
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {}}] * 400)
        waiting = "/Svc.Admin.Delivery/Attempts=1"
        harness.wait_until(lambda: self.count(waiting) == 400, "all have failed once")
        self.server.request("PATCH", "/Svc.Admin.Webhook/_/unsafe=true", {"IsPaused": True})
        again = f"{waiting}/unsafe=true"
        self.assertEqual(self.server.request("PATCH", again, {"State": "Pending"}).status, 413)
        self.assertEqual(self.count(waiting), 400)
        answer = self.server.request("PATCH", again, {"State": "Pending"}, {"Prefer": "return=minimal"})
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.count(waiting), 0)


class Cut(Case):
    """What is kept of long errors and answers ends where a character does."""

    def entries(self, webhook):
        delivery, = self.wait_for_state("Dead")
        self.server.request("DELETE", f"/Svc.Admin.Delivery/Id={delivery['Id']}")
        return delivery, self.log(webhook)[-1]

    def test_errors(self):
        webhook = self.webhook(Destination="/Shop.Person", EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": []})
        for before in ("", "a", "ab"):
            name = before + "é" * 300
            self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {name: 1}})
            delivery, entry = self.entries(webhook)
            self.assertIn(name, entry["Error"])
            kept = delivery["LastError"]
            self.assertTrue(entry["Error"].startswith(kept), kept)
            self.assertIn(len(kept.encode()), (499, 500))

    def test_answers(self):
        receiver = self.receiver(lambda request: (500, {}, text.encode()))
        webhook = self.subscribe(receiver, Delivery={"RetrySchedule": []})
        for before in ("", "a", "ab"):
            text = before + "€" * 4000
            self.raise_event()
            kept = self.entries(webhook)[1]["ResponseBody"]
            self.assertTrue(text.startswith(kept), kept[-4:])
            self.assertIn(len(kept.encode()), (4094, 4095, 4096))


class LeadsNowhere(Case):
    """What a webhook refers to goes, or is forbidden: a PATCH is refused for what it changes only."""

    def patch(self, webhook, **members):
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", members)
        message = answer.json()["detail"] if answer.status != 200 else ""
        return answer.status, message

    def restart(self, **changes):
        self.server.stop()
        self.server.config = dict(self.make_config(), **changes)
        self.server.start()

    def test_an_address_that_became_forbidden(self):
        url = self.receiver().url()
        webhook = self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced")
        self.restart(Delivery={"Egress": {"Deny": ["127.0.0.1"]}})
        for members in ({"Label": "a"}, {"IsPaused": True}, {"IsPaused": False}, {"Method": "PUT"},
                        {"Headers": {"X-A": "b"}}, {"Destination": url}):
            self.assertEqual(self.patch(webhook, **members), (200, ""), members)
        for destination in (url + "/other", "http://127.0.0.1/"):
            self.assertIn("not allowed", self.patch(webhook, Destination=destination)[1])
        answer = self.server.request("PUT", f"/Svc.Admin.Webhook/Id={webhook['Id']}",
                                     {"Destination": url, "EventSelector": "/Shop.OrderPlaced"})
        self.assertEqual(answer.status, 400)
        self.assertIn("not allowed", answer.json()["detail"])

    def test_resources_that_are_declared_no_more(self):
        for name, kind in (("Own.Event", "EventResource"), ("Own.Thing", "EntityResource")):
            self.created("/Svc.Admin.Resource", {"Name": name, "Kind": kind})
        order, thing = "/Shop.OrderPlaced", "/Own.Thing"
        webhooks = [self.webhook(Destination=destination, EventSelector=selector,
                                 CustomPayloadRequest={"URI": custom})
                    for destination, selector, custom in (
                        ("http://h/", "/Own.Event", "/Shop.Terms"), (thing, order, "/Shop.Terms"),
                        ("http://h/", order, thing))]
        for name in ("Own.Event", "Own.Thing"):
            self.server.request("DELETE", f"/Svc.Admin.Resource/Name={name}")
        for webhook in webhooks:
            for members in ({"Label": "a"}, {"IsPaused": True}, {"Tags": ["b"]}):
                self.assertEqual(self.patch(webhook, **members), (200, ""), members)
            status, message = self.patch(webhook, IsPaused=False)
            self.assertEqual(status, 400)
            self.assertIn("Own.", message)
        event, local, custom = webhooks
        self.assertIn("Own.Thing", self.patch(local, Method="PUT")[1])
        self.assertIn("Own.Thing", self.patch(local, Headers={"Authorization": "apikey a"})[1])
        self.assertEqual(self.patch(event, EventSelector=order, IsPaused=False), (200, ""))
        self.assertEqual(self.patch(local, Destination="http://h/", IsPaused=False), (200, ""))
        self.assertEqual(self.patch(custom, CustomPayloadRequest=None, IsPaused=False), (200, ""))

    def test_a_key_that_was_taken_back(self):
        def keys(*names):
            return {"RequireApiKey": True, "ApiKeys": [
                {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(),
                 "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]} for name in names]}
        self.restart(**keys("root", "hook"))
        root, hook = ({"Authorization": f"apikey {name}"} for name in ("root", "hook"))
        webhook = self.created("/Svc.Admin.Webhook", {
            "Destination": "/Shop.Person", "EventSelector": "/Shop.OrderPlaced", "Headers": hook,
            "CustomPayloadRequest": {"URI": "/Shop.Person", "Headers": hook}}, root)
        self.restart(**keys("root"))
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        for paused, status in ((True, 200), (False, 400)):
            answer = self.server.request("PATCH", target, {"IsPaused": paused}, root)
            self.assertEqual(answer.status, status, answer)


class Deleted(Case):
    def test_its_deliveries_are_gone_at_once(self):
        webhook = self.subscribe(self.receiver(lambda request: 500),
                                 Delivery={"RetrySchedule": [10000]})
        self.raise_several(4000)
        delivery = self.deliveries("_/limit=1")[0]
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        for conditions in (f"WebhookId={webhook['Id']}", f"Id={delivery['Id']}", "_"):
            self.assertEqual(self.deliveries(conditions), [])


class Listings(Case):
    """Counts and lists that are found without a look at every delivery, and those that are not."""

    def setUp(self):
        super().setUp()
        answers = {"/good": 200, "/bad": 500, "/gone": 410}
        receiver = self.receiver(lambda request: answers[request.path])
        for path, schedule in (("/good", []), ("/bad", [10000]), ("/bad", []), ("/gone", [])):
            self.subscribe(receiver, Destination=receiver.url(path),
                           Delivery={"RetrySchedule": schedule, "MaxInFlight": 1})
        self.raise_several(3)
        self.wait_for_state("Delivered", 3)
        self.wait_for_state("Waiting", 3)
        self.wait_for_state("Dead", 4)
        self.wait_for_state("Pending", 2)

    def count(self, conditions):
        answer = self.server.request("REPORT", f"/Svc.Admin.Delivery/{conditions}")
        return answer.json()[0]["Count"]

    def test_by_state(self):
        for conditions, expected in (
                ("_", 12), ("State=Dead", 4), ("state='dead'", 4), ("State!=Dead", 8),
                ("State!=Dead&State!=Pending", 6), ("State=Dead&State=Pending", 0),
                ("State>Dead", 8), ("State=null", 0), ("State!=null", 12), ("State.Length=4", 4),
                ("State=Dead&LastStatus=410", 1), ("State=Dead/limit=3", 3), ("State=Dead/offset=1", 3),
                ("State=Dead/search=410,LastError", 1), ("_/select=State&distinct=true", 4)):
            self.assertEqual(self.count(conditions), expected, conditions)
            self.assertEqual(len(self.deliveries(conditions)), expected, conditions)

    def test_of_an_event(self):
        for event in self.get("/Svc.Event/Resource=Shop.OrderPlaced").json():  # no notices
            mine = self.deliveries(f"EventId={event['Id']}")
            self.assertEqual(len(mine), 4)
            self.assertEqual({delivery["EventId"] for delivery in mine}, {event["Id"]})
            self.assertEqual(len(self.deliveries(f"EventId={event['Id']}&State=Waiting")), 1)
            self.server.request("DELETE", f"/Svc.Admin.Delivery/Id={mine[0]['Id']}")
            self.assertEqual(self.count(f"EventId={event['Id']}"), 3)
            self.server.request("DELETE", f"/Svc.Event/Id={event['Id']}")
            self.assertEqual(self.count(f"EventId={event['Id']}"), 3)
        self.assertEqual(self.deliveries("EventId=nonsense"), [])


class Room(Case):
    """The half of PendingDeliveries that one account may have bounds what one request brings, too."""

    def make_config(self):
        return dict(super().make_config(), Limits={"PendingDeliveries": 10})

    def count(self, conditions="_"):
        return self.server.request("REPORT", f"/Svc.Admin.Delivery/{conditions}").json()[0]["Count"]

    def test_many_events_in_one_request(self):
        receiver = self.receiver(lambda request: 500)
        for event in ("OrderPlaced", "PersonCreated"):
            self.webhook(Destination=receiver.url(), EventSelector=f"/{event}",
                         Delivery={"RetrySchedule": [10000]})
        order = {"Resource": "Shop.OrderPlaced", "Payload": {}}
        for target, entity, dead in (("/Svc.Event", order, 2), ("/Shop.Person", {"Name": "A"}, 9)):
            self.assertEqual(self.post(target, [entity] * 7).status, 201)
            self.assertEqual(self.count("State=Dead"), dead)
            self.assertEqual(self.count("State!=Dead"), 5)

    def test_those_that_are_sent_again(self):
        receiver = self.receiver(lambda request: 500)
        self.subscribe(receiver, Delivery={"RetrySchedule": []})
        for _ in range(2):
            self.raise_several(6)
            harness.wait_until(lambda: self.count("State!=Dead") == 0, "all are dead")
        self.server.request("PATCH", "/Svc.Admin.Webhook", {"IsPaused": True})
        again = {"State": "Pending"}
        answer = self.server.request("PATCH", "/Svc.Admin.Delivery/_/unsafe=true", again)
        self.assertEqual(answer.status, 503, answer)
        self.assertEqual(self.count("State=Dead"), 12)
        for limit in (5, 5):
            target = f"/Svc.Admin.Delivery/_/unsafe=true&limit={limit}"
            self.assertEqual(self.server.request("PATCH", target, again).status, 200)
            self.assertEqual(self.count("State=Pending"), 5)


class OwnEnds(Case):
    """Local requests that delete or change what they are a part of."""

    def run_request(self, method, target, **delivery):
        self.subscribe(self.receiver(), Method=method, Destination=target,
                       Delivery=dict(delivery, RetrySchedule=[]))
        for _ in range(2):
            self.raise_several(3)
        harness.wait_until(lambda: all(found["State"] == "Delivered" for found in self.deliveries()),
                           "nothing is left to do")

    def test_the_delivery(self):
        self.run_request("DELETE", "/Svc.Admin.Delivery/_/unsafe=true")
        self.assertEqual(self.deliveries(), [])
        self.assertEqual(self.get("/Svc.Admin.WebhookLog").status, 204)

    def test_the_delivery_of_a_queue_that_stays(self):
        self.run_request("DELETE", "/Svc.Admin.Delivery/State=InFlight/unsafe=true", RatePerSecond=1000)
        self.assertEqual(self.deliveries(), [])

    def test_the_webhook(self):
        self.run_request("DELETE", "/Svc.Admin.Webhook")
        self.assertEqual(self.get("/Svc.Admin.Webhook").status, 204)
        self.assertEqual(self.deliveries(), [])

    def test_the_event(self):
        self.run_request("DELETE", "/Svc.Event/_/unsafe=true")
        self.assertEqual(len(self.deliveries("State=Delivered")), 6)

    def test_the_declaration(self):
        self.created("/Svc.Admin.Resource", {"Name": "Own.Event", "Kind": "EventResource"})
        self.webhook(EventSelector="/Own.Event", Method="DELETE",
                     Destination="/Svc.Admin.Resource/Name=Own.Event")
        self.created("/Svc.Event", {"Resource": "Own.Event", "Payload": {}})
        self.wait_for_state("Delivered")
        webhook, = self.get("/Svc.Admin.Webhook").json()
        self.assertTrue(webhook["IsPaused"])
        self.assertIn("Own.Event", webhook["ErrorMessage"])


if __name__ == "__main__":
    unittest.main()

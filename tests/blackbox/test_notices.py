"""Notices: what the server raises about webhooks by itself, to whom, and how much of it."""
import re
import signal
import unittest

import harness
from harness import key

PAUSED, RECOVERED, DEAD = "Svc.WebhookPaused", "Svc.WebhookRecovered", "Svc.DeliveryDead"
NEVER = {"RetrySchedule": []}


def as_key(name):
    return {"Authorization": f"apikey {name}-key"}


class Case(harness.ServerCase):
    def events(self, name):
        answer = self.get(f"/Svc.Event/Resource={name}")
        return [event["Payload"][0] for event in answer.json()] if answer.status == 200 else []

    def wait_for(self, name, count=1):
        return harness.wait_until(lambda: len(found := self.events(name)) >= count and found,
                                  f"{count} of {name}")

    def raise_event(self, number=0, resource="Shop.OrderPlaced"):
        return self.created("/Svc.Event", {"Resource": resource, "Payload": {"No": number}})

    def delivered(self, count):
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.Delivery/State=Delivered").json()
                           == [{"Count": count}], f"{count} are delivered")


class Told(Case):
    def test_a_dead_delivery_is_told_with_what_it_came_to(self):
        told = self.receiver()
        self.webhook(Destination=told.url(), EventSelector=f"/{DEAD}/Event=Shop.OrderPlaced&Attempts>1")
        failing = self.receiver(lambda request: 500)
        webhook = self.webhook(Destination=failing.url(), EventSelector="/Shop.OrderPlaced", Label="billing",
                               Delivery={"RetrySchedule": [0.01]})
        event = self.raise_event()
        request = told.take()
        delivery, = self.get("/Svc.Admin.Delivery/State=Dead").json()
        self.assertEqual(request.headers["Svc-event"], DEAD)
        self.assertEqual(request.json(), [{
            "WebhookId": webhook["Id"], "Label": "billing", "Owner": None, "Tenant": None,
            "Reason": "the retry schedule is used up", "DeliveryId": delivery["Id"], "EventId": event["Id"],
            "Event": "Shop.OrderPlaced", "Attempts": 2, "LastError": delivery["LastError"]}])
        self.assertIn("500", delivery["LastError"])
        self.assertEqual(self.events(PAUSED), [])

    def test_a_webhook_that_the_server_pauses(self):
        told = self.receiver()
        self.webhook(Destination=told.url(), EventSelectors=[f"/{PAUSED}", f"/{DEAD}"])
        gone = self.receiver(lambda request: 410)
        webhook = self.webhook(Destination=gone.url(), EventSelector="/Shop.OrderPlaced")
        self.raise_event()
        requests = {request.headers["Svc-event"]: request.json()[0] for request in (told.take(), told.take())}
        self.assertEqual(requests.keys(), {PAUSED, DEAD})
        self.assertEqual(requests[PAUSED], {
            "WebhookId": webhook["Id"], "Label": None, "Owner": None, "Tenant": None,
            "Reason": "paused: the receiver answered 410 Gone"})
        self.assertEqual(requests[DEAD]["Reason"], "the receiver answered 410 Gone")

    def test_what_somebody_pauses_is_not_told(self):
        webhook = self.webhook(Destination=self.receiver().url(), EventSelector="/Shop.OrderPlaced")
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": True})
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": False})
        self.raise_event()
        self.delivered(1)
        self.assertEqual(self.get("/Svc.Event/Resource!=Shop.OrderPlaced").status, 204)

    def test_what_refers_to_a_resource_that_is_gone(self):
        self.created("/Svc.Admin.Resource", {"Name": "Late.Event", "Kind": "EventResource"})
        webhook = self.webhook(Destination=self.receiver().url(), EventSelector="/Late.Event", Label="late")
        self.server.request("DELETE", "/Svc.Admin.Resource/Name=Late.Event")
        notice, = self.wait_for(PAUSED)
        self.assertEqual((notice["WebhookId"], notice["Label"]), (webhook["Id"], "late"))
        self.assertIn("Late.Event", notice["Reason"])

    def test_the_first_success_after_a_death_is_told_once_across_restarts(self):
        works = {"now": False}
        receiver = self.receiver(lambda request: 200 if works["now"] else 500)
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Delivery=NEVER)
        self.raise_event(1)
        self.wait_for(DEAD)
        self.server.kill()
        self.server.start()
        works["now"] = True
        self.raise_event(2)
        notice, = self.wait_for(RECOVERED)
        self.assertEqual(notice["WebhookId"], webhook["Id"])
        self.raise_event(3)
        self.delivered(2)
        self.assertEqual(len(self.events(RECOVERED)), 1)

    def test_the_first_success_after_a_pause_is_told(self):
        answers = iter([410])
        receiver = self.receiver(lambda request: next(answers, 200))
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        self.raise_event(1)
        self.wait_for(PAUSED)
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"IsPaused": False})
        self.assertEqual(self.events(RECOVERED), [])
        self.raise_event(2)
        self.wait_for(RECOVERED)

    def test_a_failure_that_is_made_up_for_is_not_told(self):
        answers = iter([500])
        receiver = self.receiver(lambda request: next(answers, 200))
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     Delivery={"RetrySchedule": [0.01]})
        self.raise_event()
        self.delivered(1)
        self.assertEqual(self.get("/Svc.Event/Resource!=Shop.OrderPlaced").status, 204)

    def test_streams_tell_too(self):
        self.webhook(Destination=self.receiver(lambda request: 500).url(), EventSelector="/Shop.OrderPlaced",
                     Delivery=NEVER)
        self.raise_event()
        notice, = self.wait_for(DEAD)
        explained = self.post("/Svc.Explain", {"EventSelector": f"/{DEAD}/Event=Shop.OrderPlaced",
                                               "Resource": DEAD, "Payload": notice})
        self.assertTrue(explained.json()[0]["Matches"], explained)


class NoneOfNone(Case):
    """What becomes of deliveries of notices."""

    def test_dead_notices_cause_none(self):
        nobody = self.receiver(lambda request: 500)
        self.webhook(Destination=nobody.url(), EventSelectors=["/Svc.*"], Delivery=NEVER)
        self.webhook(Destination=nobody.url(), EventSelector="/Shop.OrderPlaced", Delivery=NEVER)
        self.raise_event()
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.Delivery/State=Dead").json()
                           == [{"Count": 2}], "the delivery and its notice are dead")
        self.assertEqual(len(self.events(DEAD)), 1)

    def test_a_webhook_for_all_gets_none(self):
        everything = self.receiver()
        self.webhook(Destination=everything.url(), EventSelector="/*")
        self.webhook(Destination=self.receiver(lambda request: 500).url(), EventSelector="/Shop.OrderPlaced",
                     Delivery=NEVER)
        self.raise_event()
        self.wait_for(DEAD)
        self.delivered(1)
        self.assertEqual(everything.take().headers["Svc-event"], "Shop.OrderPlaced")
        everything.nothing()

    def test_a_paused_webhook_is_not_told_of_that(self):
        receiver = self.receiver(lambda request: 410)
        self.webhook(Destination=receiver.url(), EventSelectors=[f"/{PAUSED}", "/Shop.OrderPlaced"])
        self.raise_event()
        self.wait_for(PAUSED)
        self.assertEqual(self.get(f"/Svc.Admin.Delivery/Event={PAUSED}").status, 204)

    def test_nobody_else_raises_them(self):
        for target, body in [("/Svc.Event", {"Resource": PAUSED, "Payload": {}}),
                             (f"/Svc.Event/Resource={DEAD}", {})]:
            answer = self.post(target, body)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (403, "NotAuthorized"), answer)
        answer = self.post("/Svc.Admin.Resource", {"Name": "Late.Note", "Kind": "EntityResource",
                                                   "Events": {"Inserted": DEAD}})
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidResourceEntity"), answer)


class ByRightAndTenant(harness.KeyedCase):
    """Each event resource of theirs is a right; and a tenant is told of its own webhooks."""

    def make_config(self):
        return {"RequireApiKey": True, "Resources": [{"Name": "Shop.Paid", "Kind": "EventResource"}],
                "ApiKeys": [key("admin", (["*"], ["*"])), key("acme", (["*"], ["*"]), Tenant="acme"),
                            key("globex", (["*"], ["*"]), Tenant="globex"),
                            key("beta", (["Svc.Admin.Webhook", "Shop.*", PAUSED], ["*"]))]}

    def made(self, name, selector, receiver, **more):
        return self.created("/Svc.Admin.Webhook", {"Destination": receiver.url(), "EventSelector": selector, **more},
                            as_key(name))

    def test_who_is_told(self):
        gone = self.receiver(lambda request: 410)
        told = {name: self.receiver() for name in ("admin", "acme", "globex")}
        for name, receiver in told.items():
            self.made(name, f"/{DEAD}", receiver)
        beta = self.receiver()
        self.made("beta", f"/{PAUSED}", beta)
        refused = self.post("/Svc.Admin.Webhook", {"Destination": beta.url(), "EventSelector": f"/{DEAD}"},
                            as_key("beta"))
        self.assertEqual(refused.status, 403, refused)
        webhook = self.made("acme", "/Shop.Paid", gone)
        self.created("/Svc.Event", {"Resource": "Shop.Paid", "Payload": {}}, as_key("acme"))
        for name in ("admin", "acme"):
            notice, = told[name].take().json()
            self.assertEqual((notice["WebhookId"], notice["Tenant"], notice["Owner"]),
                             (webhook["Id"], "acme", "acme"), name)
        self.assertEqual(beta.take().json()[0]["WebhookId"], webhook["Id"])
        told["globex"].nothing()
        answer = self.get("/Svc.Event", as_key("globex"))
        self.assertEqual(answer.status, 204, answer)

    def test_an_owner_that_is_gone(self):
        told = self.receiver()
        self.made("admin", f"/{PAUSED}", told)
        webhook = self.made("beta", "/Shop.Paid", self.receiver())
        self.server.config["ApiKeys"].pop()
        self.server.write_config()
        self.server.process.send_signal(signal.SIGHUP)
        notice, = told.take().json()
        self.assertEqual((notice["WebhookId"], notice["Owner"]), (webhook["Id"], "beta"))
        self.assertIn("no API key 'beta'", notice["Reason"])


class Storm(Case):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"WebhookPendingDeliveries": 5},
                    Retention={"Events": 100000})

    def test_a_storm_of_dead_deliveries_is_told_of_in_part(self):
        """The one webhook has room for five; of what is dead at once no more than the first hundred are told."""
        hanging = self.receiver(lambda request: (503, {"Retry-After": "3600"}, b""))
        webhook = self.webhook(Destination=hanging.url(), EventSelector="/Shop.OrderPlaced")
        self.assertEqual(self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": i}}
                                                  for i in range(5)]).status, 201)
        for _ in range(4):
            self.assertEqual(self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": i}}
                                                      for i in range(500)]).status, 201)
        dead, = self.server.request("REPORT", "/Svc.Admin.Delivery/State=Dead").json()
        self.assertEqual(dead["Count"], 2000)
        notices = self.events(DEAD)
        self.assertGreaterEqual(len(notices), 100)
        self.assertLess(len(notices), 500)
        self.assertEqual({(notice["WebhookId"], notice["Attempts"]) for notice in notices}, {(webhook["Id"], 0)})
        self.assertIn("WebhookPendingDeliveries", notices[0]["LastError"])
        metrics = self.get("/Svc.Metrics").body.decode()
        self.assertIn(f"svc_notices_total {len(notices)}\n", metrics)
        left_out = int(re.search(r"^svc_notices_left_out_total (\d+)$", metrics, re.M).group(1))
        # What may be told grows by one a second, also between a change's working out and its record.
        self.assertIn(2000 - len(notices) - left_out, range(50))


if __name__ == "__main__":
    unittest.main()

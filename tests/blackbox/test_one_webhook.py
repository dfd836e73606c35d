"""Events for one webhook alone: how an administrator tests it without touching others."""
import unittest

import harness
from test_keys import key


class OneWebhook(harness.ServerCase):
    def setUp(self):
        super().setUp()
        self.others = self.receiver()
        self.mine = self.receiver()
        self.subscribe(self.others)
        self.webhook_id = self.subscribe(self.mine, "/Shop.OrderPlaced/Total>10")["Id"]

    def subscribe(self, receiver, selector="/Shop.OrderPlaced", **members):
        return self.webhook(Destination=receiver.url(), EventSelector=selector, **members)

    def raise_event(self, total, **members):
        return self.post("/Svc.Event", dict({"Resource": "Shop.OrderPlaced", "Payload": {"Total": total},
                                             "WebhookId": self.webhook_id}, **members))

    def test_it_alone_gets_the_event(self):
        event, = self.raise_event(20).json()
        self.assertEqual(event["Webhooks"], 1)
        self.assertEqual(self.mine.take().json(), [{"Total": 20}])
        self.assertTrue(self.others.nothing())
        delivery, = self.get("/Svc.Admin.Delivery").json()
        self.assertEqual((delivery["WebhookId"], delivery["EventId"]), (self.webhook_id, event["Id"]))
        self.assertNotIn("WebhookId", self.get("/Svc.Event").json()[0])

    def test_it_has_to_match(self):
        self.assertEqual(self.raise_event(5).json()[0]["Webhooks"], 0)
        self.assertTrue(self.mine.nothing() and self.others.nothing())

    def test_with_the_payload_as_body(self):
        target = f"/Svc.Event/Resource=Shop.OrderPlaced&WebhookId={self.webhook_id}"
        self.assertEqual(self.created(target, {"Total": 30})["Webhooks"], 1)
        self.assertEqual(self.mine.take().json(), [{"Total": 30}])
        binary = self.subscribe(self.mine, "/Shop.ReportReady")
        self.subscribe(self.others, "/Shop.ReportReady")
        target = f"/Svc.Event/Resource=Shop.ReportReady&WebhookId={binary['Id']}"
        self.assertEqual(self.post(target, b"%PDF").json()[0]["Webhooks"], 1)
        self.assertEqual(self.mine.take().body, b"%PDF")
        self.assertTrue(self.others.nothing())

    def test_among_others(self):
        body = [{"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}},
                {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 99}, "WebhookId": self.webhook_id},
                {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 2}, "WebhookId": None}]
        answer = self.post("/Svc.Event", body)
        self.assertEqual([event["Webhooks"] for event in answer.json()], [1, 1, 1])
        self.assertEqual(self.mine.take().json(), [{"Total": 99}])
        totals = {self.others.take().json()[0]["Total"] for _ in range(2)}
        self.assertEqual(totals, {1, 2})

    def test_what_cannot_be_sent(self):
        paused = self.subscribe(self.mine, IsPaused=True)
        other = self.subscribe(self.mine, "/Shop.ReportReady")
        cases = [("nonsense", 400, "no webhook 'nonsense'"),
                 ("00000000-0000-7000-8000-000000000000", 400, "no webhook"),
                 (paused["Id"], 409, "is paused"), (other["Id"], 400, "EventSelector"), (5, 400, "string")]
        for webhook_id, status, text in cases:
            answer = self.raise_event(20, WebhookId=webhook_id)
            self.assertEqual(answer.status, status, (webhook_id, answer))
            self.assertIn("WebhookId", answer.json()["detail"])
            self.assertIn(text, answer.json()["detail"])
        self.assertEqual(self.get("/Svc.Event").status, 204, "nothing was raised")

    def test_a_repetition_is_for_the_same_webhook(self):
        target = f"/Svc.Event/Resource=Shop.OrderPlaced&WebhookId={self.webhook_id}"
        headers = {"Idempotency-Key": "k1"}
        first = self.post(target, {"Total": 30}, headers)
        self.assertEqual(self.post(target, {"Total": 30}, headers).json(), first.json())
        answer = self.post("/Svc.Event/Resource=Shop.OrderPlaced", {"Total": 30}, headers)
        self.assertEqual(answer.status, 409, answer)
        self.assertEqual(len(self.get("/Svc.Event").json()), 1)


class Rights(harness.ServerCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [key("admin", "admin-key", (["Svc.*", "Svc.Admin.*", "Shop.*"], ["*"])),
                             key("shop", "shop-key", (["Svc.Event", "Shop.*"], ["*"]))]
        return config

    def test_the_key_must_see_webhooks(self):
        admin, shop = ({"Authorization": f"apikey {name}-key"} for name in ("admin", "shop"))
        webhook = self.created("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/",
                                                      "EventSelector": "/Shop.OrderPlaced"}, admin)
        event = {"Resource": "Shop.OrderPlaced", "Payload": {}, "WebhookId": webhook["Id"]}
        self.assertEqual(self.post("/Svc.Event", event, shop).status, 403)
        self.assertEqual(self.post("/Svc.Event", event, admin).status, 201)
        del event["WebhookId"]
        self.assertEqual(self.post("/Svc.Event", event, shop).status, 201)


if __name__ == "__main__":
    unittest.main()

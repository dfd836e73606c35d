"""No account takes the deliveries from the others: their slots, their number, or the events that they descend
from."""
import os
import tempfile
import threading
import time
import unittest

import harness
from test_keys import key

AGAIN = {"State": "Pending"}


class Case(harness.ServerCase):
    def count(self, conditions="_", headers=None):
        answer = self.server.request("REPORT", f"/Svc.Admin.Delivery/{conditions}", headers=headers)
        return answer.json()[0]["Count"]

    def raise_events(self, number, headers=None, **payload):
        answer = self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": payload}] * number, headers)
        self.assertEqual(answer.status, 201, answer)
        return answer.json()


class Loop(Case):
    """Webhooks that raise what they are told of: four times as many events in each generation."""

    def test_it_ends_and_others_go_on(self):
        for _ in range(4):
            self.webhook(Destination="/Svc.Event/Resource=Shop.OrderPlaced", EventSelector="/Shop.OrderPlaced")
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.PersonCreated")
        self.raise_events(1, No=1)
        for number in range(50):
            self.assertEqual(self.post("/Shop.Person", {"Name": f"P{number}"}).status, 201)
        for _ in range(50):
            receiver.take()
        harness.wait_until(lambda: self.count("State!=Delivered&State!=Aborted") == 0, "all have ended")
        raised = self.server.request("REPORT", "/Svc.Event/Resource=Shop.OrderPlaced").json()[0]["Count"]
        self.assertEqual(raised, 1 + 1000)
        self.assertEqual(self.count("State=Aborted"), 4 * (1 + 1000) - 1000)
        aborted, = self.get("/Svc.Admin.Delivery/State=Aborted/limit=1").json()
        self.assertEqual(aborted["LastStatus"], 508)
        self.assertIn("EventDescendants, 1000", aborted["LastError"])


class Room(Case):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"WebhookPendingDeliveries": 3})

    def test_what_a_webhook_has_no_room_for(self):
        self.is_open = False
        receiver = self.receiver(lambda request: 200 if self.is_open else 500)
        webhook_id = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                                  Delivery={"RetrySchedule": [3600]})["Id"]
        other = self.receiver()
        self.webhook(Destination=other.url(), EventSelector="/Shop.OrderPlaced")
        self.raise_events(5)
        for _ in range(3):
            other.take()
        self.assertEqual(self.count("State=Dead"), 4, "of one request: two of each")
        harness.wait_until(lambda: self.count("State=Waiting") == 3, "the others wait")
        dead = self.get("/Svc.Admin.Delivery/State=Dead").json()
        self.assertTrue(all("WebhookPendingDeliveries, 3" in delivery["LastError"] and delivery["Attempts"] == 0
                            for delivery in dead), dead)
        target = f"/Svc.Admin.Delivery/WebhookId={webhook_id}&State=Dead/limit=1"
        answer = self.server.request("PATCH", target, AGAIN)
        self.assertEqual((answer.status, answer.headers["Retry-After"]), (503, "5"))
        self.assertIn("WebhookPendingDeliveries", answer.json()["detail"])
        self.is_open = True
        self.assertEqual(self.server.request("PATCH", "/Svc.Admin.Delivery/State=Waiting/unsafe=true",
                                             AGAIN).status, 200)
        harness.wait_until(lambda: self.count("State=Delivered") == 6, "there is room")
        self.assertEqual(self.server.request("PATCH", target, AGAIN).status, 200)
        harness.wait_until(lambda: self.count("State=Delivered") == 7, "it is sent")


class Accounts(Case):
    """Each key is an account. Webhooks are on that of their owner."""
    names = ("admin", "greedy", "modest")

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [key(name, f"{name}-key", (["*"], ["*"])) for name in self.names]
        return config

    @staticmethod
    def headers(name):
        return {"Authorization": f"apikey {name}-key"}

    def count(self, conditions="_", headers=None):
        return super().count(conditions, headers or self.headers("admin"))

    def webhook_of(self, name, **members):
        webhook = self.created("/Svc.Admin.Webhook", members, self.headers(name))
        self.assertEqual(webhook["Owner"], name)

    def raise_for(self, name, number):
        self.raise_events(number, self.headers(name), For=name)


class Slots(Accounts):
    """Many names of one address, whose receiver takes as long as it may, beside one that is slow."""

    def make_config(self):
        config = super().make_config()
        descriptor, self.hosts = tempfile.mkstemp(text=True)
        self.addCleanup(os.unlink, self.hosts)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(f"127.0.0.2 n{number}.test\n" for number in range(24))
        config["Delivery"] = {"MaxInFlight": 16, "HostsFile": self.hosts}
        return config

    def settle(self):
        self.release.set()
        harness.wait_until(lambda: self.count("State=Delivered") == self.count(), "all are delivered")

    def greedy_beside_modest(self, modest_comes_first, held):
        self.release = threading.Event()
        hanging = self.receiver(lambda request: self.release.wait() and 200, "127.0.0.2")
        slow = self.receiver(lambda request: time.sleep(1.2))
        self.addCleanup(self.release.set)
        modest = {"Destination": slow.url(), "EventSelector": "/Shop.OrderPlaced/For=modest"}
        if modest_comes_first:
            self.webhook_of("modest", **modest)
        for number in range(24):
            self.webhook_of("greedy", Destination=f"http://n{number}.test:{hanging.port}/",
                            EventSelector="/Shop.OrderPlaced/For=greedy",
                            Delivery={"TimeoutSeconds": 3600})
        self.raise_for("greedy", 4)
        harness.wait_until(lambda: self.count("State=InFlight") == held, "it has taken what it could")
        if not modest_comes_first:
            self.webhook_of("modest", **modest)
        self.raise_for("modest", 10)
        for _ in range(10):
            slow.take()
        webhooks = self.get("/Svc.Admin.Webhook/_/add=Status", self.headers("admin")).json()
        reasons = {webhook["Status"]["Reason"] or "" for webhook in webhooks}
        self.assertTrue(any("its account has half" in reason for reason in reasons), reasons)

    def test_others_go_on(self):
        self.greedy_beside_modest(True, 6)  # half of three quarters

    def test_newcomers_have_a_part(self):
        self.greedy_beside_modest(False, 10)  # three quarters, but for an eighth


class Refused(Accounts):
    """Who raises events is refused past PendingDeliveries itself only."""
    names = ("admin", "greedy", "modest", "third")

    def make_config(self):
        return dict(super().make_config(), Limits={"PendingDeliveries": 10})

    def test_an_account_has_half(self):
        for name in ("greedy", "modest", "third"):
            self.webhook_of(name, Destination="http://127.0.0.1:1/", EventSelector=f"/Shop.OrderPlaced/For={name}",
                            Delivery={"RetrySchedule": [3600]})
        self.raise_for("greedy", 20)
        self.assertEqual((self.count("State!=Dead"), self.count("State=Dead")), (5, 15))
        self.raise_for("modest", 5)
        event = {"Resource": "Shop.OrderPlaced", "Payload": {"For": "third"}}
        answer = self.post("/Svc.Event", event, self.headers("third"))
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (503, "Overloaded"))
        self.raise_for("greedy", 1)
        self.assertEqual(self.count("State=Dead"), 16)


if __name__ == "__main__":
    unittest.main()

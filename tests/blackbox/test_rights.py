"""Owners and events by right: a key gets no event, in whatever way, of a resource that it may not GET."""
import hashlib
import json
import os
import random
import signal
import unittest

import harness
from harness import ADMIN, key

BETA = {"Authorization": "apikey beta-key"}
GAMMA = {"Authorization": "apikey gamma-key"}
WEBHOOKS = (["Svc.Event", "Svc.Admin.Webhook", "Svc.Admin.WebhookLog", "Svc.Admin.Delivery"], ["*"])
EVENTS = ["Shop.Placed", "Shop.Paid", "Hr.Hired"]
RESOURCES = [{"Name": name, "Kind": "EventResource"} for name in EVENTS]


class Case(harness.KeyedCase):
    def make_config(self):
        return {"RequireApiKey": True, "Resources": RESOURCES, "ApiKeys": self.keys(),
                "Limits": {"ScanEntities": 1}}

    def keys(self):
        return [key("admin", (["*"], ["*"])), key("beta", WEBHOOKS, (["Shop.*"], ["GET"])),
                key("gamma", WEBHOOKS, (["Hr.*"], ["GET"]), (["Shop.*"], ["POST"]))]

    def reload(self, keys):
        self.server.config["ApiKeys"] = keys
        self.server.write_config()
        seen = len(self.server.log)
        self.server.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: any("SIGHUP: keys" in line for line in self.server.log[seen:]),
                           "the configuration is read")

    def webhook(self, headers, selector, destination="http://127.0.0.1:1/", **more):
        return self.created("/Svc.Admin.Webhook",
                            {"Destination": destination, "EventSelector": selector, **more}, headers)

    def now(self, webhook):
        return self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}", ADMIN).json()[0]

    def patch(self, webhook, body, headers):
        return self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", body, headers)

    def raised(self, resource, payload=None):
        return self.created("/Svc.Event", {"Resource": resource, "Payload": payload or {}}, ADMIN)


class Owners(Case):
    def test_a_selector_needs_the_right(self):
        answer = self.post("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Hr.Hired"},
                           BETA)
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (403, "NotAuthorized"))
        self.assertIn("Hr.Hired", answer.json()["detail"])
        self.assertEqual(self.count("/Svc.Admin.Webhook", ADMIN), 0)
        answer = self.post("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.Paid"},
                           GAMMA)
        self.assertEqual(answer.status, 403, "POST is no GET")

    def test_who_changes_what_goes_where_is_the_owner(self):
        webhook = self.webhook(BETA, "/Shop.Paid")
        self.assertEqual(webhook["Owner"], "beta")
        self.assertEqual(self.created("/Svc.Admin.Webhook", {
            "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.Paid", "Owner": "admin"}, BETA)["Owner"],
            "beta", "it is read-only")
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:3/"}, GAMMA).status, 403)
        for body, owner in (({"Label": "x"}, "beta"), ({"IsPaused": True}, "beta"),
                            ({"Destination": "http://127.0.0.1:2/"}, "admin")):
            self.assertEqual(self.patch(webhook, body, ADMIN).json()[0]["Owner"], owner, body)
        for body in ({"Headers": {"X-A": "1"}}, {"EventSelector": "/Shop.Paid/n=1"},
                     {"CustomPayloadRequest": {"URI": "/Svc.Event", "Headers": BETA}}):
            self.assertEqual(self.patch(webhook, {"Destination": f"http://127.0.0.1:{len(str(body))}/"},
                                        ADMIN).json()[0]["Owner"], "admin")
            self.assertEqual(self.patch(webhook, body, BETA).json()[0]["Owner"], "beta", body)
            # Writing a secret is a change, equal or not.
            owner = "admin" if "Authorization" in str(body) else "beta"
            self.assertEqual(self.patch(webhook, body, ADMIN).json()[0]["Owner"], owner, "the same again")
        self.assertEqual(self.patch(webhook, {"Label": "theirs"}, GAMMA).status, 200)
        self.assertEqual([w["Id"] for w in self.get("/Svc.Admin.Webhook/Owner=admin&Label=theirs", ADMIN).json()],
                         [webhook["Id"]])

    def test_resuming_takes_nothing_over(self):
        """As long as there is an owner who may have the events."""
        webhook = self.webhook(BETA, "/Shop.Paid", IsPaused=True)
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, GAMMA).json()[0]["Owner"], "beta")

    def test_an_owner_that_is_gone(self):
        receiver = self.receiver()
        lost = self.webhook(BETA, "/Shop.Paid", receiver.url())
        kept = self.webhook(ADMIN, "/Shop.Paid", receiver.url())
        self.reload([k for k in self.keys() if k["Name"] != "beta"])
        harness.wait_until(lambda: self.now(lost)["IsPaused"], "it is paused")
        self.assertIn("no API key 'beta'", self.now(lost)["ErrorMessage"])
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 1)
        self.assertEqual(receiver.take().headers["Svc-webhook-id"], kept["Id"])
        self.assertFalse(self.now(kept)["IsPaused"])
        self.assertEqual(self.patch(lost, {"IsPaused": False}, GAMMA).status, 403, "it may not GET what is selected")
        resumed, = self.patch(lost, {"IsPaused": False}, ADMIN).json()
        self.assertEqual((resumed["Owner"], resumed["ErrorMessage"]), ("admin", None))
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 2)
        self.settle()

    def test_an_owner_that_may_no_longer_read(self):
        lost = self.webhook(BETA, "/Shop.Paid", self.receiver().url())
        kept = self.webhook(BETA, "/Shop.Placed", self.receiver().url())
        self.reload([self.keys()[0], key("beta", WEBHOOKS, (["Shop.Placed"], ["GET"]), (["Shop.Paid"], ["POST"]))])
        harness.wait_until(lambda: self.now(lost)["IsPaused"], "it is paused")
        self.assertIn("'beta' may not GET 'Shop.Paid'", self.now(lost)["ErrorMessage"])
        self.assertFalse(self.now(kept)["IsPaused"])
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 0)
        self.assertEqual(self.raised("Shop.Placed")["Webhooks"], 1)
        self.assertEqual(self.patch(lost, {"Label": "x"}, BETA).status, 200)
        self.assertEqual(self.patch(lost, {"IsPaused": False}, BETA).status, 403)
        self.settle()

    def test_keys_that_changed_while_it_was_down(self):
        lost = self.webhook(BETA, "/Shop.Paid")
        self.server.stop()
        self.server.config["ApiKeys"] = self.keys()[:1]
        self.server.start()
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 0)
        self.assertTrue(self.now(lost)["IsPaused"])
        self.assertIn("beta", self.now(lost)["ErrorMessage"])


class Log(Case):
    def test_bodies_without_their_delivery(self):
        """Then nobody knows the event's resource: they are for who may GET everything."""
        receiver = self.receiver(lambda request: (200, {}, b"secret"))
        self.webhook(ADMIN, "/Shop.Paid", receiver.url())
        self.raised("Shop.Paid")
        self.settle()
        for shown in ("secret", None):
            self.assertEqual(self.get("/Svc.Admin.WebhookLog", BETA).json()[0]["ResponseBody"], shown)
            self.assertEqual(self.get("/Svc.Admin.WebhookLog", ADMIN).json()[0]["ResponseBody"], "secret")
            self.assertIsNone(self.get("/Svc.Admin.WebhookLog", GAMMA).json()[0]["ResponseBody"])
            self.server.request("DELETE", "/Svc.Admin.Delivery/_/unsafe=true", headers=ADMIN)


class Keyless(harness.ServerCase):
    config = {"Resources": RESOURCES}

    def test_nobody_owns_it(self):
        webhook = self.created("/Svc.Admin.Webhook",
                               {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.Paid", "IsPaused": True})
        self.assertIsNone(webhook["Owner"])
        self.assertIsNone(webhook["Tenant"])


class Random(Case):
    """Keys with random rights; what each is told follows from them alone."""

    RUNS = int(os.environ.get("SVCD_RIGHTS_KEYS", "12"))

    def make_config(self):
        self.seed = int(os.environ.get("SVCD_SEED", random.randrange(1 << 32)))
        print(f"test_rights: seed {self.seed}", flush=True)
        self.rng = random.Random(self.seed)
        self.allowed = {f"k{i}": self.random_rights() for i in range(self.RUNS)}
        return super().make_config()

    def keys(self):
        rights = [key(name, WEBHOOKS, *allow) for name, allow in getattr(self, "allowed", {}).items()]
        return [key("admin", (["*"], ["*"])), *rights]

    def random_rights(self):
        patterns = ["Shop.*", "Hr.*", "Shop.Placed", "shop.paid", "Hr.Hired", "Svc.*", "*"]
        return [(self.rng.sample(patterns, self.rng.randrange(1, 3)),
                 self.rng.choice([["GET"], ["GET", "DELETE"], ["POST"], ["PATCH", "PUT"], ["*"]]))
                for _ in range(self.rng.randrange(3))]

    def may_get(self, name, resource):
        def covers(pattern):
            pattern, wanted = pattern.lower(), resource.lower()
            return pattern in ("*", wanted) or (pattern.endswith(".*") and wanted.rpartition(".")[0] == pattern[:-2])
        return any(any(covers(p) for p in patterns) and ({"GET", "*"} & set(methods))
                   for patterns, methods in self.allowed[name])

    def test_what_a_key_gets_follows_from_its_rights(self):
        receiver = self.receiver(lambda request: (200, {}, b"secret of " + request.headers["Svc-event"].encode()))
        for resource in EVENTS:
            self.webhook(ADMIN, f"/{resource}", receiver.url())
            self.raised(resource)
            self.raised(resource, {"n": 1})
        self.settle()
        for name in self.allowed:
            self.check_reading(name)
            self.check_subscribing(name)
        self.check_changed_rights()
        self.check_deleting()

    def told(self, name, why):
        return f"seed {self.seed}, {name} with {self.allowed[name]}: {why}"

    def check_reading(self, name):
        headers = {"Authorization": f"apikey {name}-key"}
        readable = [r for r in EVENTS if self.may_get(name, r)]
        for target, most in (("/Svc.Event", 2), ("/Svc.Event/Payload.0.n=1", 1), ("/Svc.Event/_/search=Resource", 2)):
            answer = self.get(target, headers)
            seen = [e["Resource"] for e in answer.json()] if answer.status == 200 else []
            self.assertEqual(sorted(seen), sorted(readable * most), self.told(name, target))
            self.assertEqual(self.count(target, headers), len(seen), self.told(name, target))
        for event in self.get("/Svc.Event", ADMIN).json():
            status = self.get(f"/Svc.Event/Id={event['Id']}", headers).status
            self.assertEqual(status, 200 if event["Resource"] in readable else 204, self.told(name, event))
        events = {e["Id"]: e["Resource"] for e in self.get("/Svc.Event", ADMIN).json()}
        for entry in self.get("/Svc.Admin.WebhookLog", headers).json():
            resource = events[entry["EventId"]]
            expected = f"secret of {resource}" if resource in readable else None
            self.assertEqual(entry["ResponseBody"], expected, self.told(name, entry))
        for resource in EVENTS:
            found = self.count(f"/Svc.Admin.WebhookLog/ResponseBody='secret%20of%20{resource}'", headers)
            self.assertEqual(found, 2 if resource in readable else 0, self.told(name, resource))

    def check_subscribing(self, name):
        headers = {"Authorization": f"apikey {name}-key"}
        for resource in EVENTS:
            answer = self.post("/Svc.Admin.Webhook", {
                "Destination": "http://127.0.0.1:1/", "EventSelector": f"/{resource}", "Label": name}, headers)
            self.assertEqual(answer.status, 201 if self.may_get(name, resource) else 403, self.told(name, resource))

    def check_changed_rights(self):
        """Each gets other rights, or is gone: the webhooks that are left are those of who may."""
        gone = set(self.rng.sample(list(self.allowed), 3))
        self.allowed = {name: [] if name in gone else self.random_rights() for name in self.allowed}
        before = self.get("/Svc.Admin.Webhook/Owner!=admin", ADMIN)
        self.reload([k for k in self.keys() if k["Name"] not in gone])
        for webhook in before.json() if before.status == 200 else []:
            owner = webhook["Owner"]
            reads = self.may_get(owner, webhook["EventSelector"][1:])
            now = harness.wait_until(lambda: self.now(webhook), "the webhook")
            self.assertEqual(now["IsPaused"], not reads, self.told(owner, now))
            self.assertEqual(now["ErrorMessage"] is None, reads, self.told(owner, now))
        self.allowed = {name: allow for name, allow in self.allowed.items() if name not in gone}

    def check_deleting(self):
        left = {e["Id"]: e["Resource"] for e in self.get("/Svc.Event", ADMIN).json()}
        for name in self.allowed:
            self.server.request("DELETE", "/Svc.Event/_/unsafe=true", headers={"Authorization": f"apikey {name}-key"})
            left = {i: r for i, r in left.items() if not self.may_get(name, r)}
            answer = self.get("/Svc.Event", ADMIN)
            seen = {e["Id"] for e in answer.json()} if answer.status == 200 else set()
            self.assertEqual(seen, set(left), self.told(name, "deleted"))


if __name__ == "__main__":
    unittest.main()

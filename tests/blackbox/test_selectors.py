"""Several selectors a webhook, and patterns of event resources: through restarts, and with the rights of
those whose webhooks they are."""
import unittest

import harness
import test_keys

EVENTS = [{"Name": name, "Kind": "EventResource"} for name in ("Zoo.Rumour", "Zoo.Born", "Hr.Hired")]


class SelectorsCase(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Resources=EVENTS)

    def matched(self, resource, payload, headers=None):
        answer = self.server.request("POST", "/Svc.Event", {"Resource": resource, "Payload": payload}, headers)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()[0]["Webhooks"]


class Open(SelectorsCase):
    def test_through_restarts(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelectors=["/Zoo.Rumour/a=1", "/Zoo.*/b=1", "/Hr.Hired"])
        for _ in range(3):
            self.assertEqual(self.matched("Zoo.Rumour", {"a": 1, "b": 1}), 1)
            self.assertEqual(receiver.take().headers["Svc-event"], "Zoo.Rumour")
            self.assertEqual(self.matched("Zoo.Born", {"b": 1}), 1)
            self.assertEqual(receiver.take().headers["Svc-event"], "Zoo.Born")
            self.assertEqual(self.matched("Hr.Hired", {}), 1)
            self.assertEqual(receiver.take().headers["Svc-event"], "Hr.Hired")
            self.assertEqual(self.matched("Zoo.Born", {"a": 1}), 0)
            self.server.kill()
            self.server.start()
        receiver.nothing()

    def test_what_is_declared_later(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/New.*")
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/*")
        self.created("/Svc.Admin.Resource", {"Name": "New.Thing", "Kind": "EventResource"})
        self.assertEqual(self.matched("New.Thing", {}), 2)
        self.server.request("DELETE", "/Svc.Admin.Resource/Name=New.Thing")
        self.assertEqual(self.get("/Svc.Admin.Webhook/IsPaused=true").status, 204)
        self.created("/Svc.Admin.Resource", {"Name": "New.Thing", "Kind": "EventResource"})
        self.assertEqual(self.matched("New.Thing", {}), 2)

    def test_one_webhook_alone(self):
        webhook = self.webhook(Destination="http://127.0.0.1:1/", EventSelectors=["/Zoo.*/a=1", "/Hr.Hired"])
        other = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/*")
        event = {"Resource": "Zoo.Rumour", "Payload": {"a": 1}, "WebhookId": webhook["Id"]}
        self.assertEqual(self.created("/Svc.Event", event)["Webhooks"], 1)
        self.assertEqual(self.get(f"/Svc.Admin.Delivery/WebhookId={other['Id']}").status, 204)
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"EventSelector": "/Hr.Hired"})
        answer = self.server.request("POST", "/Svc.Event", event)
        self.assertEqual(answer.status, 400, answer.body)


class Rights(SelectorsCase):
    """A pattern selects what its owner may read, and follows the rights."""

    def make_config(self):
        every = [{"Resources": ["*"], "Methods": ["*"]}]
        return dict(super().make_config(), RequireApiKey=True,
                    ApiKeys=[dict(test_keys.key("root", "root-key"), AllowAccess=every)])

    def settle(self):
        pass

    def ask(self, method, target, body=None, key="root-key"):
        return self.server.request(method, target, body, headers={"Authorization": f"apikey {key}"})

    def make_key(self, name, *readable, **members):
        allow = [{"Resources": list(readable), "Methods": ["GET"]},
                 {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]}]
        answer = self.ask("POST", "/Svc.Admin.ApiKey", dict({"Name": name, "AllowAccess": allow}, **members))
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()[0]["Key"]

    def make_webhook(self, key, **members):
        answer = self.ask("POST", "/Svc.Admin.Webhook", dict({"Destination": "http://127.0.0.1:1/"}, **members), key)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()[0]

    def count(self, resource, **members):
        body = dict({"Resource": resource, "Payload": {}}, **members)
        answer = self.ask("POST", "/Svc.Event", body)
        self.assertEqual(answer.status, 201, answer.body)
        return answer.json()[0]["Webhooks"]

    def allow(self, name, *readable):
        allow = [{"Resources": list(readable), "Methods": ["GET"]},
                 {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]}]
        answer = self.ask("PATCH", f"/Svc.Admin.ApiKey/Name={name}", {"AllowAccess": allow})
        self.assertEqual(answer.status, 200, answer.body)

    def test_as_far_as_the_owner_may_read(self):
        self.make_webhook(self.make_key("zoo", "Zoo.*"), EventSelector="/*")
        self.make_webhook(self.make_key("one", "Zoo.Born", "Hr.Hired"), EventSelector="/*")
        for _ in range(2):
            self.assertEqual([self.count(name) for name in ("Zoo.Rumour", "Zoo.Born", "Hr.Hired")], [1, 2, 1])
            self.server.kill()
            self.server.start()

    def test_it_follows_the_rights(self):
        webhook = self.make_webhook(self.make_key("k", "Zoo.*"), EventSelector="/*")
        self.allow("k", "Hr.*")
        self.assertEqual([self.count(name) for name in ("Zoo.Rumour", "Hr.Hired")], [0, 1])
        self.allow("k", "Hr.Hired", "Zoo.Rumour")
        self.assertEqual([self.count(name) for name in ("Zoo.Rumour", "Zoo.Born", "Hr.Hired")], [1, 0, 1])
        self.allow("k", "Shop.Person")
        self.assertEqual(self.count("Hr.Hired"), 0)
        # With nothing left of what it selects but what may be declared one day, it waits.
        stored = self.ask("GET", f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        self.assertFalse(stored["IsPaused"])
        self.ask("DELETE", "/Svc.Admin.ApiKey/Name=k")
        stored = self.ask("GET", f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        self.assertTrue(stored["IsPaused"])
        self.assertIn("Owner", stored["ErrorMessage"])

    def test_a_namespace_that_may_not_be_read(self):
        key = self.make_key("zoo", "Zoo.*")
        answer = self.ask("POST", "/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Hr.*"}, key)
        self.assertEqual(answer.status, 403, answer.body)
        webhook = self.make_webhook(key, EventSelectors=["/Zoo.*", "/Zoo.Rumour"])
        self.allow("zoo", "Hr.*")
        stored = self.ask("GET", f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        self.assertTrue(stored["IsPaused"])
        self.assertIn("may GET nothing of '/Zoo.*'", stored["ErrorMessage"])

    def test_notices_that_may_not_be_read(self):
        """Whatever else of the server's own may be."""
        for selector in {"EventSelector": "/Svc.*"}, {"EventSelectors": ["/Zoo.*", "/Svc.*"]}:
            answer = self.ask("POST", "/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/", **selector},
                              self.make_key(f"k{len(selector)}{len(str(selector))}", "Zoo.*", "Svc.Event", "Svc.Metrics"))
            self.assertEqual(answer.status, 403, answer.body)
            self.assertIn("may GET nothing of '/Svc.*'", answer.json()["detail"])
        webhook = self.make_webhook(self.make_key("told", "Svc.Event", "Svc.DeliveryDead"), EventSelector="/Svc.*")
        self.allow("told", "Svc.Event")
        stored = self.ask("GET", f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        self.assertTrue(stored["IsPaused"])
        self.assertIn("may GET nothing of '/Svc.*'", stored["ErrorMessage"])

    def test_a_key_with_very_many_rights(self):
        """It is asked for its right with each event, instead of waiting for each resource."""
        many = [f"Other.R{no}" for no in range(40)]
        webhook = self.make_webhook(self.make_key("many", "Zoo.Born", *many), EventSelectors=["/*", "/Zoo.*"])
        self.assertEqual([self.count(name) for name in ("Zoo.Rumour", "Zoo.Born", "Hr.Hired", "Zoo.Born")], [0, 1, 0, 1])
        self.allow("many", "Hr.Hired", "Zoo.Rumour", *many)
        self.assertEqual([self.count(name) for name in ("Zoo.Rumour", "Zoo.Born", "Hr.Hired")], [1, 0, 1])
        question = {"WebhookId": webhook["Id"], "Resource": "Zoo.Born", "Payload": {}}
        answer = self.ask("POST", "/Svc.Explain", question).json()
        self.assertEqual([one["Matches"] for one in answer], [False, False])
        self.assertIn("may not GET 'Zoo.Born'", answer[0]["Reason"])

    def test_tenants(self):
        self.make_webhook(self.make_key("acme-1", "*", Tenant="acme"), EventSelector="/Zoo.*")
        self.make_webhook(self.make_key("globex-1", "*", Tenant="globex"), EventSelector="/*")
        self.make_webhook("root-key", EventSelector="/*")
        self.assertEqual(self.count("Zoo.Born"), 1)
        self.assertEqual(self.count("Zoo.Born", Tenant="acme"), 2)
        self.assertEqual(self.count("Hr.Hired", Tenant="acme"), 1)
        self.assertEqual(self.count("Hr.Hired", Tenant="globex"), 2)


if __name__ == "__main__":
    unittest.main()

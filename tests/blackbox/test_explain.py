"""Svc.Explain over what is stored: a webhook's selector, an event that is kept, who may ask; and it always says
what is done, for selectors and payloads at random."""
import json
import random
import unittest
import urllib.parse

import harness
import test_keys

RUMOUR = {"Name": "Zoo.Rumour", "Kind": "EventResource"}
PHOTO = {"Name": "Zoo.Photo", "Kind": "EventResource", "Payload": {"ContentType": "image/png"}}
SECRET = {"Name": "Hr.Hired", "Kind": "EventResource"}


class ExplainCase(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Resources=[RUMOUR, PHOTO, SECRET])

    def explain(self, **question):
        answer = self.server.request("POST", "/Svc.Explain", question)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()


class Stored(ExplainCase):
    shares_server = True

    @harness.apart
    def test_a_webhook_and_an_event(self):
        webhook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Zoo.Rumour/a=3")
        event = self.created("/Svc.Event", {"Resource": "Zoo.Rumour", "Payload": {"a": 4}})
        answer = self.explain(WebhookId=webhook["Id"], EventId=event["Id"])
        self.assertEqual(answer, [{"Matches": False, "Reason": "The condition a=3 does not hold.",
                                   "Selector": "/Zoo.Rumour/a=3",
                                   "Conditions": [{"Condition": "a=3", "Value": 4, "Holds": False}]}])
        self.assertEqual(self.get("/Svc.Event").headers["Svc-count"], "1", "nothing was raised")

    def test_several_selectors(self):
        webhook = self.webhook(Destination="http://127.0.0.1:1/", EventSelectors=["/Zoo.Rumour/a=3", "/Zoo.*/b=1", "/Hr.*"])
        answer = self.explain(WebhookId=webhook["Id"], Resource="Zoo.Rumour", Payload=[{"a": 3}, {"b": 1}])
        self.assertEqual([(one["Selector"], one["Matches"]) for one in answer],
                         [("/Zoo.Rumour/a=3", True), ("/Zoo.Rumour/a=3", False), ("/Zoo.*/b=1", False),
                          ("/Zoo.*/b=1", True), ("/Hr.*", False), ("/Hr.*", False)])
        self.assertIn("the selector of 'Hr.*'", answer[4]["Reason"])

    def test_a_paused_webhook(self):
        webhook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Zoo.Rumour/a=1", IsPaused=True)
        answer = self.explain(WebhookId=webhook["Id"], Resource="Zoo.Rumour", Payload={"a": 1})
        self.assertEqual((answer[0]["Matches"], answer[0]["Reason"]), (False, "The webhook is paused."))
        self.assertTrue(answer[0]["Conditions"][0]["Holds"])

    def test_a_binary_event(self):
        event = self.server.request("POST", "/Svc.Event/Resource=Zoo.Photo", b"\x89PNG",
                                    headers={"Content-Type": "image/png"}).json()[0]
        self.assertTrue(self.explain(EventSelector="/Zoo.Photo", EventId=event["Id"])[0]["Matches"])
        self.assertFalse(self.explain(EventSelector="/Zoo.Rumour", EventId=event["Id"])[0]["Matches"])

    def test_an_event_after_a_restart(self):
        event = self.created("/Svc.Event", {"Resource": "Zoo.Rumour", "Payload": [{"a": 1}, {"a": 2}]})
        self.server.kill()
        self.server.start()
        answers = self.explain(EventSelector="/Zoo.Rumour/a>1", EventId=event["Id"])
        self.assertEqual([answer["Matches"] for answer in answers], [False, True])


class WithKeys(ExplainCase):
    def make_config(self):
        zoo = [{"Resources": ["Zoo.*"], "Methods": ["GET"]}, {"Resources": ["Svc.Explain"], "Methods": ["POST"]}]
        every = [{"Resources": ["*"], "Methods": ["*"]}]
        return dict(super().make_config(), RequireApiKey=True,
                    ApiKeys=[dict(test_keys.key("root", "root-key"), AllowAccess=every),
                             dict(test_keys.key("zoo", "zoo-key"), AllowAccess=zoo)])

    def ask(self, key, method, target, body=None):
        return self.server.request(method, target, body, headers={"Authorization": f"apikey {key}"})

    def settle(self):
        pass


class Rights(WithKeys):
    """Nothing is told that the key could not read elsewhere."""
    shares_server = True

    def test_what_may_not_be_read_is_not_there(self):
        answers = {}
        for resource in ("Zoo.Rumour", "Hr.Hired"):
            event = self.ask("root-key", "POST", "/Svc.Event", {"Resource": resource, "Payload": {"a": 1}}).json()[0]
            answers[resource] = self.ask("zoo-key", "POST", "/Svc.Explain",
                                         {"EventSelector": "/Zoo.Rumour", "EventId": event["Id"]})
        self.assertEqual((answers["Zoo.Rumour"].status, answers["Zoo.Rumour"].json()[0]["Matches"]), (200, True))
        nowhere = self.ask("zoo-key", "POST", "/Svc.Explain",
                           {"EventSelector": "/Zoo.Rumour", "EventId": "01a204ae-b596-702c-9140-72eef0d0a617"})
        self.assertEqual((answers["Hr.Hired"].status, nowhere.status), (404, 404))
        given = self.ask("zoo-key", "POST", "/Svc.Explain",
                         {"EventSelector": "/Zoo.Rumour", "Resource": "Hr.Hired", "Payload": {}})
        self.assertEqual(given.status, 403, given.body)

    def test_a_webhook_needs_its_right(self):
        made = self.ask("root-key", "POST", "/Svc.Admin.Webhook",
                        {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Zoo.Rumour"})
        question = {"WebhookId": made.json()[0]["Id"], "Resource": "Zoo.Rumour", "Payload": {}}
        self.assertEqual(self.ask("zoo-key", "POST", "/Svc.Explain", question).status, 403)
        self.assertEqual(self.ask("root-key", "POST", "/Svc.Explain", question).status, 200)


class Reasons(WithKeys):
    """Of a webhook that selects an event and is not given it all the same."""
    shares_server = True

    def make_config(self):
        config = super().make_config()
        config["ApiKeys"].append(dict(test_keys.key("acme", "acme-key"), Tenant="acme", AllowAccess=[
            {"Resources": ["*"], "Methods": ["*"]}]))
        return config

    def webhook_of(self, key):
        answer = self.ask(key, "POST", "/Svc.Admin.Webhook",
                          {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Zoo.Rumour"})
        return {"WebhookId": answer.json()[0]["Id"]}

    def test_a_tenant(self):
        webhook = self.webhook_of("acme-key")
        for key, matches in (("acme-key", True), ("root-key", False)):
            event = self.ask(key, "POST", "/Svc.Event", {"Resource": "Zoo.Rumour", "Payload": {"a": 1}}).json()[0]
            self.assertEqual(event["Webhooks"], 1 if matches else 0)
            told, = self.ask("root-key", "POST", "/Svc.Explain", {**webhook, "EventId": event["Id"]}).json()
            self.assertEqual(told["Matches"], matches, told)
        self.assertIn("not of the webhook's tenant", told["Reason"])
        # Neither event nor webhook of another is there for a tenant.
        answer = self.ask("acme-key", "POST", "/Svc.Explain", {**webhook, "EventId": event["Id"]})
        self.assertEqual((answer.status, answer.json()["detail"]),
                         (404, f"EventId: there is no event '{event['Id']}'"))
        answer = self.ask("acme-key", "POST", "/Svc.Explain",
                          {**self.webhook_of("root-key"), "Resource": "Zoo.Rumour", "Payload": {}})
        self.assertEqual(answer.status, 404, answer)

    def test_an_owner(self):
        made = self.ask("root-key", "POST", "/Svc.Admin.ApiKey", {"Name": "gone", "AllowAccess": [
            {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]}, {"Resources": ["Zoo.*"], "Methods": ["GET"]}]})
        webhook = self.webhook_of(made.json()[0]["Key"])
        self.ask("root-key", "DELETE", "/Svc.Admin.ApiKey/Name=gone")
        told, = self.ask("root-key", "POST", "/Svc.Explain",
                         {**webhook, "Resource": "Zoo.Rumour", "Payload": {}}).json()
        self.assertFalse(told["Matches"])
        self.assertEqual(told["Reason"], "The webhook is paused: Owner: there is no API key 'gone' any more")


class AtRandom(ExplainCase):
    """As many webhooks get an event as Svc.Explain says."""
    KEYS = ["a", "b", "a.b", "l.*", "l.*.n", "l.Length", "l.0", "t.Year", "'a.b'", "missing"]
    LITERALS = ["1", "2.0", "'1'", "x", "null", "true", "2026-11-01", "''", "1e0", "-3"]
    VALUES = [1, 2, -3, "1", "x", "", None, True, "2026-11-01", [], [1, 2], [{"n": 1}, {"n": "x"}], {"b": 1}, {"b": None}]

    def selector(self, subject="/Zoo.Rumour"):
        conditions = [self.random.choice(self.KEYS) + self.random.choice(["=", "!=", "<", ">", "<=", ">="])
                      + self.random.choice(self.LITERALS) for _ in range(self.random.randrange(4))]
        return subject + ("/" + "&".join(conditions) if conditions else "")

    def entity(self):
        names = self.random.sample(["a", "b", "l", "t", "a.b", "other"], self.random.randrange(6))
        return {name: self.random.choice(self.VALUES) for name in names}

    def test_it_says_what_is_done(self):
        seed = random.randrange(1 << 32)
        self.random = random.Random(seed)
        matched = 0
        with self.subTest(seed=seed):
            webhooks = [self.webhook(Destination="/Svc.Echo", Method="GET", EventSelector=self.selector(),
                                     IsPaused=self.random.random() < 0.1) for _ in range(60)]
            for _ in range(40):
                payload = [self.entity() for _ in range(self.random.randrange(4))]
                event = self.created("/Svc.Event", {"Resource": "Zoo.Rumour", "Payload": payload})
                said = [webhook["Id"] for webhook in webhooks
                        if any(answer["Matches"] for answer in self.explain(WebhookId=webhook["Id"], EventId=event["Id"]))]
                got = self.get(f"/Svc.Admin.Delivery/EventId={event['Id']}").body
                got = [delivery["WebhookId"] for delivery in json.loads(got or "[]")]
                self.assertEqual(sorted(said), sorted(got), (payload, urllib.parse.quote(event["Id"])))
                self.assertEqual(event["Webhooks"], len(said))
                matched += len(said)
            self.assertGreater(matched, 100)

    def selectors(self):
        """One to four, of resources and of patterns; a binary resource takes no conditions."""
        subjects = ["/Zoo.Rumour", "/Hr.Hired", "/Zoo.*", "/Hr.*", "/*", "/Nowhere.*", "/zoo.*"]
        selectors = [self.selector(self.random.choice(subjects)) for _ in range(self.random.randrange(1, 5))]
        if self.random.random() < 0.2:
            selectors.append("/Zoo.Photo")
        if len(selectors) == 1 and self.random.random() < 0.5:
            return {"EventSelector": selectors[0]}
        return {"EventSelectors": selectors}

    def raised(self):
        resource = self.random.choice(["Zoo.Rumour", "Zoo.Rumour", "Hr.Hired", "Zoo.Photo"])
        if resource == "Zoo.Photo":
            answer = self.server.request("POST", "/Svc.Event/Resource=Zoo.Photo", b"PNG", {"Content-Type": "image/png"})
            return answer.json()[0]
        payload = [self.entity() for _ in range(self.random.randrange(4))]
        return self.created("/Svc.Event", {"Resource": resource, "Payload": payload})

    def test_it_says_what_is_done_with_several_and_patterns(self):
        seed = random.randrange(1 << 32)
        self.random = random.Random(seed)
        matched = 0
        with self.subTest(seed=seed):
            webhooks = [self.webhook(Destination="/Svc.Echo", Method="GET", **self.selectors()) for _ in range(40)]
            for _ in range(40):
                event = self.raised()
                said = [webhook["Id"] for webhook in webhooks
                        if any(answer["Matches"] for answer in self.explain(WebhookId=webhook["Id"], EventId=event["Id"]))]
                got = json.loads(self.get(f"/Svc.Admin.Delivery/EventId={event['Id']}").body or "[]")
                self.assertEqual(sorted(said), sorted(delivery["WebhookId"] for delivery in got), event)
                self.assertEqual(event["Webhooks"], len(said))
                matched += len(said)
            self.assertGreater(matched, 100)


if __name__ == "__main__":
    unittest.main()

"""Keys with random rights, over every resource and method, and every spelling of what they ask: what they are
answered follows from their rights alone. What they must not see holds a canary."""
import json
import os
import random
import unittest

import harness
from test_rights import ADMIN, key

KEYS = int(os.environ.get("SVCD_RIGHTS_KEYS", "8"))
CANARY = "canary-of-"
METHODS = ["GET", "POST", "PATCH", "PUT", "DELETE", "REPORT", "HEAD"]
NOTHING = "Id=01a204ae-b596-702c-9140-72eef0d0a617"
DECLARED = [
    {"Name": "Hr.Hired", "Kind": "EventResource", "Payload": {"Resource": "Hr.Person"}},
    {"Name": "Hr.Person", "Kind": "EntityResource", "Indexes": ["Name"], "Events": {"Inserted": "Hr.Hired"},
     "Properties": [{"Name": "Name", "Type": "string"}, {"Name": "Text", "Type": "string"}]},
    {"Name": "Hr.Note", "Kind": "EntityResource"},
    {"Name": "Shop.Note", "Kind": "EntityResource"},
    {"Name": "Shop.Inner.Note", "Kind": "EntityResource"},
    {"Name": "Shop.Terms", "Kind": "BinaryResource", "ContentType": "text/plain", "File": "terms.txt"},
    {"Name": "Shop.Paid", "Kind": "EventResource"},
]
STORED = ["Hr.Person", "Hr.Note", "Shop.Note", "Shop.Inner.Note"]


def covers(pattern, name):
    pattern, name = pattern.lower(), name.lower()
    return pattern in ("*", name) or (pattern.endswith(".*") and name.rpartition(".")[0] == pattern[:-2])


def methods_of(methods):
    if "*" in methods:
        return set(METHODS)
    return set(methods) | ({"REPORT", "HEAD"} if "GET" in methods else set())


class Everywhere(harness.KeyedCase):
    def make_config(self):
        self.seed = int(os.environ.get("SVCD_SEED", random.randrange(1 << 32)))
        print(f"test_rights_everywhere: seed {self.seed}", flush=True)
        self.rng = random.Random(self.seed)
        self.rights = {f"k{number}": self.random_rights() for number in range(KEYS)}
        return {"RequireApiKey": True, "Resources": DECLARED, "ApiKeys": [
            key("admin", (["*"], ["*"])), *(key(name, *rights) for name, rights in self.rights.items())]}

    def random_rights(self):
        patterns = ["*", "Svc.*", "Svc.Admin.*", "Shop.*", "Hr.*", "shop.note", "Hr.Note", "HR.PERSON", "Svc.Event",
                    "Svc.Echo", "Svc.Admin.Webhook", "Svc.Admin.ApiKey", "Svc.Admin.Error", "Shop.Inner.*", "Svc.Metrics",
                    "Svc.Aggregator", "Shop.Terms"]
        weights = [1] + [3] * (len(patterns) - 1)
        methods = [["GET"], ["*"], ["POST"], ["PATCH", "PUT"], ["DELETE"], ["GET", "POST"], ["HEAD"], ["REPORT"]]
        rights = []
        for _ in range(self.rng.randrange(1, 5)):
            resources = self.rng.choices(patterns, weights, k=self.rng.randrange(1, 4))
            # A right on a built-in resource that has none of the methods is refused.
            named = any(name.startswith("Svc.") and not name.endswith("*") for name in resources)
            rights.append((resources, self.rng.choice(methods[:2] if named else methods)))
        return rights

    def may(self, rights, resource, method):
        if resource == "Svc.AvailableResource" and method in ("GET", "REPORT", "HEAD"):
            return True
        return any(method in methods_of(methods) and any(covers(p, resource) and self.gives(p, methods, resource)
                                                         for p in patterns) for patterns, methods in rights)

    @staticmethod
    def gives(pattern, methods, resource):
        """All that there is, is given by its name, or along with everything else."""
        return resource != "Svc.Admin.Backup" or "*" not in pattern or (pattern == "*" and "*" in methods)

    def ask(self, name, method, target, body=None, headers=None):
        return self.server.request(method, target, body, {"Authorization": f"apikey {name}-key", **(headers or {})})

    def told(self, name, *what):
        return f"seed {self.seed}, {name} with {self.rights.get(name)}: {what}"

    def fill(self):
        """Something of everything that is stored."""
        for resource in STORED:
            self.created(f"/{resource}", {"Name": "n", "Text": CANARY + resource}, ADMIN)
        self.created("/Svc.Admin.Webhook", {"Label": CANARY + "Svc.Admin.Webhook", "EventSelector": "/Shop.Paid",
                                            "Destination": "http://127.0.0.1:1/",
                                            "Delivery": {"RetrySchedule": []}}, ADMIN)
        self.created("/Svc.Event", {"Resource": "Shop.Paid", "Payload": {"Text": CANARY + "Shop.Paid"}}, ADMIN)
        self.get(f"/{CANARY}Svc.Admin.Error", ADMIN)
        self.settle()
        listed = self.get("/Svc.AvailableResource", ADMIN).json()
        self.methods = {entry["Name"]: entry["Methods"] for entry in listed
                        if entry["Name"] != "Svc.Console"}  # files without data, which everybody gets
        self.assertLess({*STORED, "Svc.Admin.ApiKey", "Svc.Explain", "Svc.Admin.Delivery"}, set(self.methods))

    def everything(self):
        """What an administrator reads, but for what grows by being asked."""
        state = {}
        for resource, methods in self.methods.items():
            if "GET" in methods and resource not in ("Svc.Aggregator", "Svc.Metrics", "Svc.Admin.Error", "Svc.Admin.ApiKey",
                                                        "Svc.Admin.Backup"):
                answer = self.get(f"/{resource}", ADMIN)
                state[resource] = answer.status, answer.body
        return state

    def check_no_canary(self, name, answer, what):
        text = answer.body.decode() + str(answer.headers)
        for resource in (*STORED, "Svc.Admin.Webhook", "Shop.Paid", "Svc.Admin.Error"):
            told_by = (resource, "Svc.DeliveryDead") if resource == "Svc.Admin.Webhook" else (resource,)
            if not any(self.may(self.rights[name], one, "GET") for one in told_by):
                self.assertNotIn(CANARY + resource, text, self.told(name, what))

    def test_each_method_of_each_resource(self):
        self.fill()
        before = self.everything()
        for name, rights in self.rights.items():
            for resource, supported in self.methods.items():
                for method in METHODS:
                    self.check_method(name, rights, resource, supported, method)
                answer = self.ask(name, "OPTIONS", f"/{resource}")
                expected = 200 if self.may(rights, resource, "GET") else 403
                if supported:
                    self.assertEqual(answer.status, expected, self.told(name, resource, "OPTIONS"))
            self.check_listing(name, rights)
            self.check_aggregator(name, rights)
            self.check_ambiguous(name, rights)
        self.assertEqual(self.everything(), before, f"seed {self.seed}: something has changed")

    def check_method(self, name, rights, resource, supported, method):
        """Bodies and conditions are such that nothing changes where it is allowed."""
        body = {} if method in ("POST", "PATCH", "PUT") else None
        if method == "POST" and resource in STORED:
            body = [1]
        target = f"/{resource}/{NOTHING}" if method in ("PATCH", "PUT", "DELETE") else f"/{resource}"
        answer = self.ask(name, method, target, body)
        told = self.told(name, resource, method, answer)
        if method not in supported:
            self.assertEqual(answer.status, 405, told)
        elif self.may(rights, resource, method):
            self.assertNotIn(answer.status, (401, 403, 405), told)
        else:
            self.assertEqual(answer.status, 403, told)
            if method != "HEAD":
                self.assertEqual(answer.json()["ErrorCode"], "NotAuthorized", told)
        if (method, resource, answer.status) != ("GET", "Svc.Admin.Backup", 200):  # that right is for all there is
            self.check_no_canary(name, answer, (method, target))

    def check_listing(self, name, rights):
        for accept in ("application/json", "application/x-ndjson"):
            text = self.ask(name, "GET", "/", headers={"Accept": accept}).body.decode()
            listed = json.loads(text) if accept.endswith("/json") else [json.loads(line) for line in text.splitlines()]
            found = {entry["Name"]: entry["Methods"] for entry in listed
                     if entry["Kind"] != "EventResource" and entry["Name"] in self.methods}
            expected = {resource: [m for m in supported if self.may(rights, resource, m)]
                        for resource, supported in self.methods.items() if supported}
            self.assertEqual(found, {resource: methods for resource, methods in expected.items() if methods},
                             self.told(name, "the listing"))
        count = self.ask(name, "REPORT", "/Svc.AvailableResource").json()[0]["Count"]
        self.assertEqual(count, len(listed), self.told(name, "their number"))

    def check_aggregator(self, name, rights):
        for resource in STORED:
            for method in ("GET", "REPORT"):
                answer = self.ask(name, "GET", "/Svc.Aggregator", {"x": f"{method} /{resource}"})
                allowed = self.may(rights, "Svc.Aggregator", "GET") and self.may(rights, resource, method)
                self.assertEqual(answer.status, 200 if allowed else 403, self.told(name, "aggregates", method, resource))
                self.check_no_canary(name, answer, "an aggregate")

    def check_ambiguous(self, name, rights):
        """Of those that a name may mean the message lists what the key may use."""
        for method in ("GET", "DELETE"):
            answer = self.ask(name, method, "/Note")
            usable = [r for r in ("Hr.Note", "Shop.Note", "Shop.Inner.Note") if any(self.may(rights, r, m) for m in METHODS)]
            self.assertEqual(answer.status, 404, self.told(name, answer))
            for resource in ("Hr.Note", "Shop.Note", "Shop.Inner.Note"):
                self.assertEqual(resource in answer.json()["detail"], resource in usable and len(usable) > 0,
                                 self.told(name, resource, answer.json()))

    def test_what_is_written_is_shown_to_who_may_get_it(self):
        self.fill()
        for name, rights in self.rights.items():
            for resource in STORED:
                may_get = self.may(rights, resource, "GET")
                target = f"/{resource}/Name=n"
                for method, body in (("POST", {"Name": name}), ("PATCH", {"Name": "n"}), ("PUT", {"Name": "n", "Text": CANARY + resource})):
                    if not self.may(rights, resource, method):
                        continue
                    where = f"/{resource}" if method == "POST" else target
                    answer = self.ask(name, method, where, body)
                    self.assertIn(answer.status, (200, 201), self.told(name, method, resource, answer))
                    self.assertEqual(answer.body != b"", may_get, self.told(name, method, resource, answer))
                    self.check_no_canary(name, answer, (method, where))

    def test_nobody_grants_what_he_lacks(self):
        self.fill()
        made = 0
        for name, rights in self.rights.items():
            rights = [*rights, (["Svc.Admin.ApiKey"], ["POST"])]
            maker = self.created("/Svc.Admin.ApiKey", {"Name": f"{name}-maker", "AllowAccess": [
                {"Resources": resources, "Methods": methods} for resources, methods in rights]}, ADMIN)
            for number in range(12):
                granted = self.rng.choice([self.random_rights(), self.rng.sample(rights, 1)])
                answer = self.post("/Svc.Admin.ApiKey", {"Name": f"{name}-{number}", "AllowAccess": [
                    {"Resources": resources, "Methods": methods} for resources, methods in granted]},
                    {"Authorization": f"apikey {maker['Key']}"})
                self.assertIn(answer.status, (201, 403), self.told(name, granted, answer))
                lacking = [(resource, method) for resource in (*self.methods, "New.Later", "Shop.Later")
                           for method in METHODS
                           if self.may(granted, resource, method) and not self.may(rights, resource, method)]
                if answer.status == 201:
                    self.assertEqual(lacking, [], self.told(name, granted))
                made += answer.status == 201
                if len(granted) == 1 and granted[0] in rights:
                    self.assertEqual(answer.status, 201, self.told(name, "its own right", granted))
        self.assertGreater(made, 0)

    def test_local_requests_of_webhooks(self):
        """A webhook asks with the key that stands in it, and may no more than that."""
        self.fill()
        for name, rights in self.rights.items():
            for resource in (*STORED, "Svc.Echo", "Svc.AvailableResource", "Svc.Admin.Error"):
                for method in self.rng.sample(METHODS, 3):
                    body = {"Method": method, "Destination": f"/{resource}", "EventSelector": "/Shop.Paid",
                            "IsPaused": True, "Headers": {"Authorization": f"Bearer {name}-key"}}
                    answer = self.post("/Svc.Admin.Webhook", body, ADMIN)
                    allowed = method in self.methods[resource] and self.may(rights, resource, method)
                    self.assertEqual(answer.status, 201 if allowed else 400, self.told(name, method, resource, answer))
                custom = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.Paid", "IsPaused": True,
                          "CustomPayloadRequest": {"URI": f"/{resource}", "Headers": {"Authorization": f"apikey {name}-key"}}}
                self.assertEqual(self.post("/Svc.Admin.Webhook", custom, ADMIN).status,
                                 201 if self.may(rights, resource, "GET") else 400, self.told(name, "custom", resource))


if __name__ == "__main__":
    unittest.main()

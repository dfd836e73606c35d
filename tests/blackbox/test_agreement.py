"""Properties, of requests, selectors and payloads that are made at random: what has two ways gives one answer.

  - A request in query form is answered as the same request in path form.
  - Svc.Explain says of each event and webhook what the deliveries then say.

SVCD_SEED=n makes the same again, SVCD_ROUNDS=n as many rounds; each test prints its seed."""
import collections
import json
import os
import random
import unittest
import urllib.parse

import harness

RESOURCES = [
    {"Name": "Lab.Dog", "Kind": "EntityResource", "Indexes": ["Name", "Legs"], "Properties": [
        {"Name": "Name", "Type": "string"}, {"Name": "Legs", "Type": "integer"}, {"Name": "Weight", "Type": "number"},
        {"Name": "Tame", "Type": "boolean"}, {"Name": "Born", "Type": "datetime"}, {"Name": "Tags", "Type": "array"},
        {"Name": "Home", "Type": "object"}]},
    {"Name": "Lab.Any", "Kind": "EntityResource"},
    {"Name": "Lab.Born", "Kind": "EventResource", "Payload": {"Resource": "Lab.Dog"}},
    {"Name": "Lab.Seen", "Kind": "EventResource"},
    {"Name": "Lab.Inner.Seen", "Kind": "EventResource"},
    {"Name": "Hr.Seen", "Kind": "EventResource"},
    {"Name": "Hr.Hired", "Kind": "EventResource", "Properties": [
        {"Name": "Name", "Type": "string"}, {"Name": "Age", "Type": "integer"}]},
]
TEXTS = ["", "a", "A", "ant", "Ant colony", "a/b&c=d", "50%", "x+y", "Ä ñ 𝄞", "12345", "null", "true", "'", "a'b", "#?",
         "2026-03-01T12:00:00Z", "a,b", "<>", "!", "->", "0", "*"]
KEYS = ["Name", "Legs", "Weight", "Tame", "Born", "Tags", "Home", "Tags.0", "Tags.*", "Home.Place", "Home.Rooms",
        "Name.Length", "Tags.Length", "Born.Year", "Born.DayOfWeek", "name", "'a.b'.'c>d'", "'g h'", "List.*.k", "List.*.k.*",
        "List.1.k", "Missing", "Missing.Deep", "Id", "Age"]
OPERATORS = ["=", "!=", "<", ">", "<=", ">="]


class Random(harness.ServerCase):
    rounds = 1

    def make_config(self):
        self.seed = int(os.environ.get("SVCD_SEED", random.randrange(1 << 32)))
        self.rounds = int(os.environ.get("SVCD_ROUNDS", self.rounds))
        print(f"{self.id()}: seed {self.seed}, {self.rounds} rounds", flush=True)
        self.rng = random.Random(self.seed)
        return {"Resources": RESOURCES, "Limits": {"RequestCpuMs": 60000}}

    def value(self, depth=0):
        kind = self.rng.randrange(9 if depth < 2 else 7)
        if kind < 3:
            return self.rng.choice(TEXTS)
        if kind == 7:
            return [self.value(depth + 1) for _ in range(self.rng.randrange(3))]
        if kind == 8:
            return {key: self.value(depth + 1) for key in self.rng.sample(["k", "Place", "Rooms", "c>d"], 2)}
        return self.rng.choice([None, True, False, 0, 1, 4, 6, -1, 1.5, 12345, "2026-03-01"])

    def anything(self):
        """An entity that any resource without properties takes."""
        entity = {name: self.value() for name in ("Name", "Legs", "Tags", "Home", "List", "a.b", "g h", "Age")
                  if self.rng.random() < 0.6}
        if self.rng.random() < 0.3:
            entity["List"] = [{"k": self.value(1)} for _ in range(self.rng.randrange(3))]
        return entity

    def dog(self):
        def maybe(value):
            return value if self.rng.random() < 0.8 else None
        return {"Name": maybe(self.rng.choice(TEXTS)), "Legs": maybe(self.rng.choice([0, 4, 6])),
                "Weight": maybe(self.rng.choice([0.001, 1.5, 600])), "Tame": maybe(self.rng.random() < 0.5),
                "Born": maybe(self.rng.choice(["2026-03-01T12:00:00Z", "2020-12-31T23:59:59+02:00", "2026-04-05"])),
                "Tags": maybe([self.rng.choice(TEXTS) for _ in range(self.rng.randrange(4))]),
                "Home": maybe({"Place": self.rng.choice(TEXTS), "Rooms": self.rng.choice([1, 12])})}

    def literal(self):
        text = self.rng.choice([*TEXTS, "1", "4", "6", "1.5", "-1", "2026-03-01", "2026", "false", "NULL"])
        return self.rng.choice([text, text, f"'{text}'", f'"{text}"'])

    def condition(self):
        """Key, operator, and a value that no operator can take the beginning of."""
        operator, value = self.rng.choice(OPERATORS), self.literal()
        return self.rng.choice(KEYS), operator, value if not value.startswith("=") else "x"


class QueryForm(Random):
    rounds = 400
    METAS = ["limit=0", "limit=3", "limit=-1", "offset=2", "offset=-3", "order_asc=Name", "order_desc=Legs,Name",
             "order_asc='g h'", "select=Name,Legs", "select=Home.Place,'a.b'.'c>d'", "add=Name.Length", "rename=Name->N",
             "distinct=true", "search=a", "search=ANT,Name,CS", "search_regex=^a.*", "search='a,b'", "limit=x", "nonsense=1",
             "select=", "order_asc=Nowhere"]

    def as_path(self, resource, conditions, metas):
        def part(texts):
            return "&".join(texts) or "_"
        written = [urllib.parse.quote(key, safe="'") + operator + urllib.parse.quote(value, safe="")
                   for key, operator, value in conditions]
        metas = [name + "=" + urllib.parse.quote(value, safe="'>") for name, value in (m.split("=", 1) for m in metas)]
        return f"/{resource}/{part(written)}/{part(metas)}"

    def as_query(self, resource, conditions, metas):
        """Some of the conditions may stay in the path; parameters come in any order, but that of two orders counts."""
        split = self.rng.randrange(len(conditions) + 1) if self.rng.random() < 0.3 else 0
        path = self.as_path(resource, conditions[:split], []).removesuffix("/_").removesuffix("/_")
        quote = self.rng.choice([urllib.parse.quote_plus, lambda text: urllib.parse.quote(text, safe="")])
        parameters = ["where=" + quote("".join(condition)) for condition in conditions[split:]]
        if self.rng.random() < 0.1:
            parameters.append("where=")
        places = sorted(self.rng.choices(range(len(parameters) + 1), k=len(metas)))
        for moved, (place, meta) in enumerate(zip(places, metas)):
            name, value = meta.split("=", 1)
            parameters.insert(place + moved, name + "=" + quote(value))
        return path + "?" + "&".join(parameters)

    def fill(self):
        for number in range(40):
            self.created("/Lab.Dog", self.dog())
            self.created("/Lab.Any", self.anything())

    def ask(self, method, target):
        answer = self.server.request(method, target)
        body = answer.body
        if answer.status >= 400 and body:
            body = json.loads(body)["ErrorCode"]
        return answer.status, answer.headers["Svc-count"], body

    def test_query_form_is_path_form(self):
        self.fill()
        seen = collections.Counter()
        for _ in range(self.rounds):
            resource = self.rng.choice(["Lab.Dog", "Any", "lab.any"])
            conditions = [self.condition() for _ in range(self.rng.randrange(4))]
            metas = self.rng.sample(self.METAS, self.rng.randrange(3))
            names = [meta.split("=")[0] for meta in metas]
            metas = [meta for at, meta in enumerate(metas) if names.index(meta.split("=")[0]) == at]
            method = self.rng.choice(["GET", "GET", "GET", "REPORT", "HEAD"])
            path, query = self.as_path(resource, conditions, metas), self.as_query(resource, conditions, metas)
            by_path, by_query = self.ask(method, path), self.ask(method, query)
            told = f"seed {self.seed}: {method}\n  {path}\n  {query}\n  {by_path[:2]}\n  {by_query[:2]}"
            if by_path[0] == 204 and method != "REPORT":
                self.assertEqual(by_query, (200, "0", b"[]" if method == "GET" else b""), told)
            elif by_path[0] >= 400:
                # Several things may be wrong, and the forms do not meet them in one order.
                self.assertGreaterEqual(by_query[0], 400, told)
                if len(conditions) + len(metas) == 1:
                    self.assertEqual(by_query, by_path, told)
            else:
                self.assertEqual(by_query, by_path, told)
            seen[by_path[0]] += 1
        print(f"{sum(seen.values())} requests in both forms: "
              + ", ".join(f"{count} were {status}" for status, count in sorted(seen.items())), flush=True)
        self.assertGreater(seen[200], self.rounds // 8, "too few found anything")


class Explained(Random):
    """Each round has webhooks of its own, and events that are raised beside them."""
    rounds = 2
    EVENTS = ["Lab.Born", "Lab.Seen", "Lab.Inner.Seen", "Hr.Seen", "Hr.Hired"]

    def selector(self):
        resource = self.rng.choice([*self.EVENTS, *self.EVENTS, "Lab.*", "Hr.*", "*", "lab.inner.*", "None.*"])
        conditions = "&".join(urllib.parse.quote(key, safe="'*") + operator + urllib.parse.quote(value, safe="")
                              for key, operator, value in
                              (self.condition() for _ in range(self.rng.choice([0, 1, 1, 1, 2]))))
        return f"/{resource}/{conditions}" if conditions else f"/{resource}"

    def make_webhook(self, receiver, number):
        """What does not fit the declared payload is refused, and another tried."""
        while True:
            selectors = [self.selector() for _ in range(self.rng.choice([1, 1, 2, 4]))]
            members = {"EventSelector": selectors[0]} if len(selectors) == 1 else {"EventSelectors": selectors}
            answer = self.post("/Svc.Admin.Webhook", {"Destination": receiver.url(f"/{number}"), **members})
            if answer.status == 201:
                return answer.json()[0]
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidEventSelector"),
                             f"seed {self.seed}: {selectors}")

    def raise_event(self):
        resource = self.rng.choice(self.EVENTS)
        make = {"Lab.Born": self.dog,
                "Hr.Hired": lambda: {"Name": self.rng.choice(TEXTS), "Age": self.rng.choice([None, 1, 4])}}
        entities = [make.get(resource, self.anything)() for _ in range(self.rng.choice([1, 1, 2, 3]))]
        payload = entities[0] if len(entities) == 1 and self.rng.random() < 0.5 else entities
        return self.created("/Svc.Event", {"Resource": resource, "Payload": payload})

    def explained(self, webhook, event):
        answer = self.post("/Svc.Explain", {"WebhookId": webhook["Id"], "EventId": event["Id"]})
        self.assertEqual(answer.status, 200, answer)
        for one in answer.json():  # all conditions hold, for it to match
            if one["Matches"]:
                self.assertTrue(all(condition["Holds"] for condition in one["Conditions"]), one)
        return any(one["Matches"] for one in answer.json())

    def test_explain_says_what_is_delivered(self):
        receiver = self.receiver()
        pairs = matches = 0
        for _ in range(self.rounds):
            webhooks = [self.make_webhook(receiver, number) for number in range(20)]
            events = [self.raise_event() for _ in range(25)]
            self.settle_all()
            sent = collections.Counter((request.headers["webhook-id"], request.headers["Svc-webhook-id"])
                                       for request in self.taken(receiver))
            expected = collections.Counter()
            for event in events:
                found = [webhook["Id"] for webhook in webhooks if self.explained(webhook, event)]
                expected.update((event["Id"], webhook) for webhook in found)
                self.assertEqual(event["Webhooks"], len(found), self.told(event, webhooks))
            self.assertEqual(sent, expected, f"seed {self.seed}")
            pairs += len(events) * len(webhooks)
            matches += len(expected)
            self.server.request("DELETE", "/Svc.Admin.Webhook/_/unsafe=true")
        print(f"{pairs} pairs of event and webhook explained as they were delivered: {matches} match", flush=True)
        self.assertGreater(matches, pairs // 50)

    def told(self, event, webhooks):
        stored = self.get(f"/Svc.Event/Id={event['Id']}").json()
        selectors = [webhook["EventSelector"] or webhook["EventSelectors"] for webhook in webhooks]
        return f"seed {self.seed}: {stored} with {selectors}"

    def settle_all(self):
        for state in ("Pending", "InFlight", "Waiting"):
            harness.wait_until(lambda: self.server.request("REPORT", f"/Svc.Admin.Delivery/State={state}").json()
                               == [{"Count": 0}], "all is delivered")

    def taken(self, receiver):
        while not receiver.requests.empty():
            yield receiver.requests.get()


if __name__ == "__main__":
    unittest.main()

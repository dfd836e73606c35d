"""Tenants: a key with one sees, counts and changes what is its tenant's, and nothing tells it of others.

The second class asks at random. What one tenant is told by a server that another one uses as well is
compared, word by word, with what a server tells it that nobody else uses."""
import hashlib
import json
import os
import random
import re
import unittest
import uuid

import harness
from harness import ADMIN

ACME = {"Authorization": "apikey acme-key"}
GLOBEX = {"Authorization": "apikey globex-key"}
TENANTS = {"acme": ACME, "globex": GLOBEX}

RESOURCES = [
    {"Name": "Hr.Hired", "Kind": "EventResource", "Payload": {"Resource": "Hr.Person"}},
    {"Name": "Hr.Person", "Kind": "EntityResource", "Indexes": ["Name"], "Events": {"Inserted": "Hr.Hired"},
     "Properties": [{"Name": "Name", "Type": "string"}, {"Name": "Age", "Type": "integer"},
                    {"Name": "Tenant", "Type": "string"}]},
    {"Name": "Hr.Order", "Kind": "EventResource"},
    {"Name": "Hr.Note", "Kind": "EntityResource"},
    {"Name": "Hr.Loose", "Kind": "EntityResource",  # without an index on the tenant
     "Properties": [{"Name": "Name", "Type": "string"}, {"Name": "Age", "Type": "integer"},
                    {"Name": "Tenant", "Type": "any"}]},
    {"Name": "Hr.Odd", "Kind": "EntityResource", "Properties": [{"Name": "Tenant", "Type": "integer"}]},
]
EVERYTHING = [{"Resources": ["*"], "Methods": ["*"]}]


def key(name, tenant=None, allow=None, secret=None):
    return {"Name": name, "KeySha256": hashlib.sha256((secret or f"{name}-key").encode()).hexdigest(),
            "Tenant": tenant, "AllowAccess": allow or EVERYTHING}


def configuration():
    return {"RequireApiKey": True, "Resources": RESOURCES, "Limits": {"ScanEntities": 1},
            "ApiKeys": [key("admin"), key("acme", "acme"), key("globex", "globex"),
                        *(key("same", tenant, secret=f"same-{tenant}") for tenant in TENANTS)]}


def person(name, **more):
    return {"Name": name, **more}


class Rule(harness.KeyedCase):
    def make_config(self):
        return configuration()

    def webhook(self, headers, receiver, selector="/Hr.Order", **more):
        return self.created("/Svc.Admin.Webhook", {
            "Destination": receiver.url(), "EventSelector": selector, **more}, headers)

    def raised(self, headers, **more):
        return self.created("/Svc.Event", {"Resource": "Hr.Order", "Payload": {"n": 1}, **more}, headers)

    def test_each_sees_and_changes_its_own(self):
        ours = self.created("/Hr.Person", person("Ann"), ACME)
        theirs = self.created("/Hr.Person", person("Ann"), GLOBEX)
        self.assertEqual((ours["Tenant"], theirs["Tenant"]), ("acme", "globex"))
        self.assertEqual(self.get("/Hr.Person", ACME).json(), [ours])
        self.assertEqual(self.get("/Hr.Person/Name=Ann", GLOBEX).json(), [theirs])
        self.assertEqual(self.get(f"/Hr.Person/Id={theirs['Id']}", ACME).status, 204)
        self.assertEqual(self.get("/Hr.Person/Tenant=globex", ACME).status, 204)
        self.assertEqual((self.count("/Hr.Person", ACME), self.count("/Hr.Person", ADMIN)), (1, 2))
        self.assertEqual(self.server.request("PATCH", "/Hr.Person/Name=Ann", {"Age": 5}, ACME).status, 200)
        answer = self.server.request("PATCH", f"/Hr.Person/Id={theirs['Id']}", {"Age": 5}, ACME)
        self.assertEqual(answer.status, 404)
        self.assertEqual(self.server.request("PUT", "/Hr.Person/Name=Ann", {"Name": "Ann"}, ACME).status, 200)
        self.assertEqual(self.server.request("DELETE", "/Hr.Person/_/unsafe=true", headers=ACME).json(),
                         [{"Count": 1}])
        self.assertEqual(self.get("/Hr.Person", ADMIN).json(), [theirs])

    def test_another_value_is_refused(self):
        for method, target in (("POST", "/Hr.Person"), ("PUT", "/Hr.Person/Name=Ann"),
                               ("POST", "/Hr.Person/_/safepost=Name")):
            answer = self.server.request(method, target, person("Ann", Tenant="globex"), ACME)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (403, "NotAuthorized"), target)
        self.created("/Hr.Person", person("Ann", Tenant=None), ACME)
        for value, status in (("globex", 403), ("acme", 200), (None, 200)):
            answer = self.server.request("PATCH", "/Hr.Person/Name=Ann", {"Tenant": value}, ACME)
            self.assertEqual(answer.status, status, value)
        self.assertEqual(self.get("/Hr.Person/Tenant=acme", ADMIN).json()[0]["Name"], "Ann")
        self.assertEqual(self.post("/Hr.Odd", {"Tenant": 5}, ACME).status, 403, "it can hold no tenant")
        self.assertEqual(self.get("/Hr.Odd", ACME).status, 204)

    def test_safepost_finds_its_own(self):
        theirs = self.created("/Hr.Person", person("Ann", Age=1), GLOBEX)
        for path in ("Name", "Age"):  # with an index and without
            answer = self.post(f"/Hr.Person/_/safepost={path}", person("Ann", Age=1), ACME)
            self.assertIn(answer.status, (200, 201))
        self.assertEqual(self.count("/Hr.Person", ACME), 1)
        self.assertEqual(self.get("/Hr.Person", GLOBEX).json(), [theirs])

    def test_a_dynamic_resource_has_none(self):
        self.created("/Hr.Note", {"Tenant": "globex"}, ACME)
        self.assertEqual(self.count("/Hr.Note", ACME), 1)
        self.assertEqual(self.count("/Hr.Note", GLOBEX), 1)

    def test_events_go_to_their_tenant_and_to_all(self):
        receivers = {name: self.receiver() for name in ("acme", "globex", "all")}
        self.webhook(ACME, receivers["acme"])
        self.webhook(GLOBEX, receivers["globex"])
        self.webhook(ADMIN, receivers["all"])
        ours = self.raised(ACME)
        given = self.raised(ADMIN, Tenant="globex")
        nobodys = self.raised(ADMIN)
        self.assertEqual([e["Webhooks"] for e in (ours, given, nobodys)], [2, 2, 1])
        self.assertEqual(receivers["acme"].take().headers["webhook-id"], ours["Id"])
        self.assertEqual(receivers["globex"].take().headers["webhook-id"], given["Id"])
        self.settle()
        self.assertEqual(receivers["all"].requests.qsize(), 3)
        self.assertTrue(receivers["acme"].requests.empty() and receivers["globex"].requests.empty())
        self.assertEqual([e["Id"] for e in self.get("/Svc.Event", ACME).json()], [ours["Id"]])
        for resource in ("Delivery", "WebhookLog"):
            for name, headers in TENANTS.items():
                entry, = self.get(f"/Svc.Admin.{resource}", headers).json()
                self.assertEqual(entry["Tenant"], name)
                self.assertEqual(self.count(f"/Svc.Admin.{resource}", headers), 1)
            self.assertEqual(self.count(f"/Svc.Admin.{resource}", ADMIN), 5)
        self.assertEqual(self.count("/Svc.Admin.Delivery/State=Delivered", ACME), 1)
        operators, = self.get("/Svc.Admin.Webhook/Tenant=null", ADMIN).json()
        self.assertEqual(self.count(f"/Svc.Admin.Delivery/WebhookId={operators['Id']}&Tenant=null", ADMIN), 3)
        self.assertEqual(self.count(f"/Svc.Admin.Delivery/WebhookId={operators['Id']}", ACME), 0)

    def test_an_events_tenant(self):
        self.assertEqual(self.post("/Svc.Event", {"Resource": "Hr.Order", "Payload": {}, "Tenant": "globex"},
                                   ACME).status, 403)
        self.assertEqual(self.post("/Svc.Event/Resource=Hr.Order&Tenant=globex", {}, ACME).status, 403)
        self.assertEqual(self.post("/Svc.Event/Resource=Hr.Order&Tenant=a%20b", {}, ADMIN).status, 400)
        self.assertEqual(self.post("/Svc.Event/Resource=Hr.Order&Tenant=globex", {}, ADMIN).status, 201)
        self.created("/Hr.Person", person("Ann"), ACME)
        self.created("/Hr.Person", person("Bob", Tenant="globex"), ADMIN)
        self.created("/Hr.Person", person("Cid"), ADMIN)
        seen = [(e["Resource"], e["Tenant"]) for e in self.get("/Svc.Event", ADMIN).json()]
        self.assertEqual(seen, [("Hr.Order", "globex"), ("Hr.Hired", "acme"), ("Hr.Hired", "globex"),
                                ("Hr.Hired", None)])

    def test_conditions_that_describe_no_event(self):
        for conditions in ("Resource=Hr.Order&Webhooks=5", "Resource=Hr.Order&Resource=Hr.Order",
                           "Resource=Hr.Order&Tenant=a&Tenant=b", "Resource!=Hr.Order", "Tenant=acme",
                           "Resource=Hr.Order&Id=7"):
            answer = self.post(f"/Svc.Event/{conditions}", {}, ADMIN)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidConditionSyntax"),
                             conditions)
        self.assertEqual(self.get("/Svc.Event", ADMIN).status, 204)

    def test_a_webhook_of_others_is_none(self):
        theirs = self.webhook(GLOBEX, self.receiver())
        answer = self.post("/Svc.Event", {"Resource": "Hr.Order", "Payload": {}, "WebhookId": theirs["Id"]}, ACME)
        self.assertEqual(answer.status, 400)
        self.assertIn("there is no webhook", answer.json()["detail"])
        answer = self.post("/Svc.Event", {"Resource": "Hr.Order", "Payload": {}, "WebhookId": theirs["Id"]}, ADMIN)
        self.assertEqual(answer.status, 400, "the event is of no tenant")
        self.assertEqual(self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={theirs['Id']}",
                                             {"IsPaused": True}, ACME).status, 404)

    def test_a_webhook_with_deliveries_stays_with_its_tenant(self):
        receiver = self.receiver()
        webhook = self.webhook(ADMIN, receiver)
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        self.assertEqual(self.server.request("PATCH", target, {"Tenant": "x y"}, ADMIN).status, 400)
        self.assertEqual(self.server.request("PATCH", target, {"Tenant": "acme"}, ADMIN).status, 200)
        self.raised(ACME)
        self.settle()
        self.assertEqual(self.server.request("PATCH", target, {"Tenant": "globex"}, ADMIN).status, 409)
        self.assertEqual(self.server.request("PATCH", target, {"Label": "x"}, ADMIN).status, 200)
        self.server.request("DELETE", f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}/unsafe=true", headers=ADMIN)
        self.assertEqual(self.server.request("PATCH", target, {"Tenant": "globex"}, ADMIN).status, 200)
        self.raised(ACME)
        self.assertEqual(self.count("/Svc.Admin.Delivery", ADMIN), 0)
        self.raised(GLOBEX)
        self.settle()
        self.assertEqual(self.count("/Svc.Admin.Delivery", GLOBEX), 1)

    def test_errors_know_the_key(self):
        self.get("/Nothing", ACME)
        self.get("/Nothing", GLOBEX)
        self.get("/Nothing", ADMIN)
        plain, = self.get("/Svc.Admin.Error", ACME).json()
        self.assertFalse({"KeyName", "Tenant"} & set(plain))
        shown, = self.get("/Svc.Admin.Error/_/add=KeyName,Tenant", ACME).json()
        self.assertEqual({**plain, "KeyName": "acme", "Tenant": "acme"}, shown)
        seen = self.get("/Svc.Admin.Error/_/select=KeyName,Tenant", ADMIN).json()
        self.assertEqual(seen, [{"KeyName": n, "Tenant": t} for n, t in
                                (("acme", "acme"), ("globex", "globex"), ("admin", None))])
        self.assertEqual(self.count("/Svc.Admin.Error/KeyName=globex", ADMIN), 1)
        self.assertEqual(self.count("/Svc.Admin.Error/KeyName=globex", ACME), 0)
        self.assertEqual(self.get("/Svc.Admin.Error/_/search=globex", ADMIN).status, 204)

    def test_what_asks_for_a_tenant_is_confined(self):
        """Aggregator, and the local requests of webhooks."""
        self.created("/Hr.Person", person("Ann"), ACME)
        self.created("/Hr.Person", person("Bob"), GLOBEX)
        answer = self.server.request("GET", "/Svc.Aggregator", {"n": "REPORT /Hr.Person", "all": "GET /Hr.Person"},
                                     ACME).json()[0]
        self.assertEqual((answer["n"], [p["Name"] for p in answer["all"]]), (1, ["Ann"]))
        receiver = self.receiver()
        self.webhook(ACME, receiver, CustomPayloadRequest={"URI": "/Hr.Person", "Headers": ACME})
        self.webhook(ACME, receiver, Destination="/Hr.Person", Headers=ACME)
        self.raised(ACME)
        self.assertEqual([p["Name"] for p in receiver.take().json()], ["Ann"])

    def test_idempotency_is_each_tenants_own(self):
        for tenant, headers in TENANTS.items():
            same = {"Authorization": f"apikey same-{tenant}"}  # keys of one name
            ids = set()
            for either in (same, headers, same):
                answer = self.post("/Svc.Event/Resource=Hr.Order", {"who": tenant},
                                   {**either, "Idempotency-Key": "one"})
                self.assertEqual(answer.status, 201, answer)
                ids.add(answer.json()[0]["Id"])
            self.assertEqual(len(ids), 1, "the tenant's, whichever of its keys")
        self.assertEqual(self.count("/Svc.Event", ADMIN), 2)

    def test_owners_of_one_name(self):
        """What a tenant's key owns is not left to that of another tenant."""
        webhooks = {tenant: self.webhook({"Authorization": f"apikey same-{tenant}"}, self.receiver())
                    for tenant in TENANTS}
        self.server.config["ApiKeys"] = [k for k in self.server.config["ApiKeys"]
                                         if (k["Name"], k["Tenant"]) != ("same", "acme")]
        self.server.kill()
        self.server.start()
        paused = {tenant: self.get(f"/Svc.Admin.Webhook/Id={w['Id']}", ADMIN).json()[0]["IsPaused"]
                  for tenant, w in webhooks.items()}
        self.assertEqual(paused, {"acme": True, "globex": False})

    def test_a_declaration_with_entities_of_tenants(self):
        self.created("/Svc.Admin.Resource", {"Name": "Dyn.Thing", "Kind": "EntityResource", "Properties": [
            {"Name": "Tenant", "Type": "string"}]}, ADMIN)
        self.created("/Dyn.Thing", {}, GLOBEX)
        answer = self.server.request("DELETE", "/Svc.Admin.Resource/Name=Dyn.Thing/unsafe=true", headers=ACME)
        self.assertEqual(answer.status, 403)

    def test_tenants_survive(self):
        """Also in what cleaning moves; tearDown compares the digests."""
        self.webhook(ACME, self.receiver())
        for headers in (ACME, GLOBEX, ADMIN):
            self.raised(headers)
        self.settle()
        before = self.get("/Svc.Event", ACME).json(), self.get("/Svc.Admin.Delivery", ACME).json()
        self.server.kill()
        self.server.start()
        self.assertEqual((self.get("/Svc.Event", ACME).json(), self.get("/Svc.Admin.Delivery", ACME).json()), before)


UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.I)
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
NUMBERS = re.compile(r'("(?:ObjectNo|\w+Ms|Attempts?|BodyByteCount)":) ?\d+')
OWN_ID = re.compile(r'(?:"Id": ?"|/id=)([0-9a-f-]{36})')
MADE_KEY = re.compile(r"svck_[\w-]{43}")
TAG = re.compile(r'(?<=is now )\\?"[0-9a-f]+\\?"')
PAGE = re.compile(r"ObjectNo(?:>|%3E)\d+")
USED = re.compile(r'("LastUsedTime":) ?("[^"]*"|null)')


class Told:
    """What a server has told a tenant, without what no two servers have in common: ids, serial numbers,
    times. Ids are known by the order in which they came."""

    def __init__(self):
        self.ids = {}
        self.own = []

    def name(self, found):
        return "#" + str(self.ids.setdefault(found.group(0).lower(), len(self.ids)))

    def plain(self, text, port, is_ordered):
        text = USED.sub(r"\1U", MADE_KEY.sub("KEY", TIME.sub("T", text)))
        text = PAGE.sub("ObjectNo>N", TAG.sub("tag", NUMBERS.sub(r"\1N", text))).replace(f":{port}", ":P")
        return UUID.sub(self.name if is_ordered else "#", text)

    def answer(self, answer, port, is_ordered):
        text = answer.body.decode()
        if not is_ordered and text.startswith("["):
            items = [UUID.sub("#", NUMBERS.sub(r"\1N", json.dumps(item))) for item in json.loads(text)]
            text = "\n".join(sorted(items))
        elif not is_ordered:
            text = "\n".join(sorted(UUID.sub("#", NUMBERS.sub(r"\1N", line)) for line in text.splitlines()))
        headers = [f"{name}: {value}" for name, value in answer.headers.items()
                   if name not in ("Date", "ETag", "Content-Length")]
        headers.append("ETag" if answer.headers["ETag"] else "no ETag")
        return answer.status, self.plain("\n".join(headers), port, is_ordered), self.plain(text, port, is_ordered)


class Asking:
    """A random request, made before it is known which server gets it: `{own}` is an id that the tenant has
    been told, `{foreign}` one that the other has, if there is an other."""

    def __init__(self, rng, receivers):
        self.rng = rng
        self.receivers = receivers

    def conditions(self, resource):
        rng = self.rng
        own = {"Hr.Person": ["Name=Ann", "Name!=Ann", "Age>3", "Age=4&Name=Bob", "Tenant=null"],
               "Hr.Loose": ["Name=Ann", "Name!=Ann", "Age>3", "Age=4&Name=Bob", "Tenant=null", "Tenant='globex'"],
               "Svc.Event": ["Resource=Hr.Order", "Webhooks>0", "Payload.0.n=1"],
               "Svc.Admin.Webhook": ["Label=Ann", "IsPaused=true", "Owner=globex", "Owner=acme"],
               "Svc.Admin.Delivery": ["State=Delivered", "State=Dead", "Event=Hr.Order", "EventId={foreign}",
                                      "WebhookId={foreign}", "EventId={own}", "WebhookId={own}"],
               "Svc.Admin.WebhookLog": ["IsSuccess=true", "Attempt=1", "WebhookId={foreign}", "EventId={own}"],
               "Svc.Admin.Error": ["Action=GET", "KeyName=globex", "KeyName=acme", "ErrorCode=UnknownResource"],
               "Svc.Admin.ApiKey": ["Name=globex", "Name=same", "Name!=same", "CreatedBy=null", "CreatedBy=globex",
                                    "Name=made"]}
        return rng.choice(["_", "_", "Id={own}", "Id={foreign}", "Tenant=acme", "Tenant=globex", "Tenant!=acme",
                           "ObjectNo>0", *own[resource], *own[resource]])

    def metas(self, resource, method):
        rng = self.rng
        choice = ["_", "_", "limit=1", "limit=2&offset=1", "order_asc=Tenant", "select=Tenant", "add=Tenant",
                  "search=globex", "search=Ann", "distinct=true&select=Tenant"]
        if method in ("PATCH", "DELETE"):
            choice = ["_", "unsafe=true", "limit=1", "unsafe=true&search=Ann"]
        if method == "POST":
            choice = ["_", "safepost=Name", "safepost=Age", "safepost=Name,Age"] if resource.startswith("Hr.") else ["_"]
        return rng.choice(choice)

    def body(self, resource):
        rng = self.rng
        tenant = rng.choice([{}, {}, {}, {"Tenant": None}, {"Tenant": "acme"}, {"Tenant": "globex"}])
        if resource.startswith("Hr."):
            one = {"Name": rng.choice(["Ann", "Bob"]), "Age": rng.randrange(6), **tenant}
            return rng.choice([one, one, [one, {"Name": "Cid"}]])
        if resource == "Svc.Event":
            only = rng.choice([{}, {}, {"WebhookId": "{own}"}, {"WebhookId": "{foreign}"}])
            return {"Resource": rng.choice(["Hr.Order", "Nothing"]), "Payload": {"n": rng.randrange(3)}, **tenant,
                    **only}
        if resource == "Svc.Admin.Delivery":
            return {"State": "Pending"}
        if resource == "Svc.Admin.ApiKey":
            return {"Name": rng.choice(["made", "acme", "globex", "same", "admin"]), **tenant, "AllowAccess": EVERYTHING}
        return {"Label": rng.choice(["Ann", "Bob"]), "Destination": "{receiver}",
                "EventSelector": rng.choice(["/Hr.Order", "/Hr.Order/n=1", "/Hr.Hired/Name=Ann"]),
                "IsPaused": rng.random() < 0.2, **tenant}

    def question(self):
        rng = self.rng
        asked = rng.choice([{"EventSelector": "/Hr.Order"}, {"EventSelector": "/Hr.Order/n=1"}, {"WebhookId": "{own}"},
                            {"WebhookId": "{foreign}"}])
        return {**asked, **rng.choice([{"EventId": "{own}"}, {"EventId": "{foreign}"},
                                       {"Resource": "Hr.Order", "Payload": {"n": 1}}])}

    def others(self):
        """What has no tenants, and an id of somebody else's error or attempt."""
        rng = self.rng
        resource = rng.choice(["Svc.AvailableResource", "Svc.Admin.ErrorCode", "Svc.Admin.Resource", "Svc.Echo"])
        return rng.choice(["GET", "REPORT", "HEAD", "OPTIONS"]), f"/{resource}", None

    def headers(self):
        return self.rng.choice([{}, {}, {}, {"Accept": "application/x-ndjson"}, {"Accept": "application/json;indent=2"},
                                {"Prefer": "count=exact"}, {"Prefer": "return=minimal"}, {"Idempotency-Key": "one"},
                                {"Idempotency-Key": "two"}, {"If-None-Match": '"0"'}, {"If-Match": '"0"'}])

    def make(self):
        rng = self.rng
        methods = {"Hr.Loose": ["GET", "REPORT", "POST", "POST", "PATCH", "PUT", "DELETE"],
                   "Hr.Person": ["GET", "REPORT", "HEAD", "POST", "POST", "POST", "PATCH", "PUT", "DELETE"],
                   "Svc.Event": ["GET", "REPORT", "POST", "POST", "POST", "DELETE"],
                   "Svc.Admin.Webhook": ["GET", "REPORT", "POST", "POST", "PATCH", "PUT", "DELETE"],
                   "Svc.Admin.Delivery": ["GET", "REPORT", "PATCH", "DELETE"],
                   "Svc.Admin.WebhookLog": ["GET", "REPORT", "HEAD", "DELETE"],
                   "Svc.Admin.Error": ["GET", "REPORT", "DELETE"],
                   "Svc.Admin.ApiKey": ["GET", "REPORT", "HEAD", "POST", "PATCH", "DELETE"]}
        resource = rng.choice(list(methods))
        method = rng.choice(methods[resource])
        conditions = "_" if method == "POST" else self.conditions(resource)
        target = f"/{resource}/{conditions}/{self.metas(resource, method)}"
        if rng.random() < 0.05:
            return "GET", "/Svc.Aggregator", {"n": f"REPORT /{resource}", "m": f"REPORT {target}"}
        if rng.random() < 0.05:
            return "POST", "/Svc.Explain", self.question()
        if rng.random() < 0.05:
            return self.others()
        body = self.body(resource) if method in ("POST", "PATCH", "PUT") else None
        if method in ("PATCH", "PUT") and isinstance(body, list):
            body = body[0]
        return method, target, body


class Apart(unittest.TestCase):
    """Three servers: one that both tenants use, and one for each alone."""

    REQUESTS = int(os.environ.get("SVCD_TENANT_REQUESTS", "300"))

    def setUp(self):
        self.servers = {}
        self.receiver = harness.Receiver()
        self.addCleanup(self.receiver.close)
        for name in ("both", *TENANTS):
            self.servers[name] = harness.Server(configuration())
            self.servers[name].keeps_connections = True
            self.addCleanup(self.servers[name].remove)
            self.servers[name].start()
            answer = self.servers[name].request(
                "POST", "/Svc.Admin.Webhook", {"Destination": self.receiver.url(), "EventSelector": "/Hr.Order"},
                ADMIN)
            self.assertEqual(answer.status, 201, answer)

    def settle(self, server):
        """But for what waits in webhooks that are paused."""
        def listed(target):
            return json.loads(server.request("GET", target, headers=ADMIN).body or b"[]")

        def is_settled():
            pending = {delivery["WebhookId"] for delivery in listed("/Svc.Admin.Delivery/State=Pending")}
            paused = pending and {webhook["Id"] for webhook in listed("/Svc.Admin.Webhook/IsPaused=true")}
            return not pending - paused and not listed("/Svc.Admin.Delivery/State=InFlight")
        harness.wait_until(is_settled, "no delivery is under way")

    def fill(self, text, told, foreign, receiver):
        text = text.replace("{receiver}", receiver).replace("{foreign}", foreign)
        return text.replace("{own}", told.own[self.place % len(told.own)] if told.own else str(uuid.UUID(int=1)))

    def ask(self, where, tenant, request, told, foreign):
        server = self.servers[where]
        (method, target, body), more = request
        target = self.fill(target, told, foreign, "")
        if body is not None:
            body = json.loads(self.fill(json.dumps(body), told, foreign, self.receiver.url()))
        self.settle(server)
        answer = server.request(method, target, body, {**more, **TENANTS[tenant]})
        is_ordered = not re.match(r"/Svc.Admin.(Delivery|WebhookLog)", target)
        found = told.answer(answer, server.port, is_ordered)
        if is_ordered and "Resource" not in target:  # what is made, found, and stored of what failed
            seen = OWN_ID.findall(answer.body.decode() + (answer.headers["ErrorInfo"] or ""))
            told.own += [id for id in seen if id not in told.own]
        return found

    def test_what_one_is_told_does_not_depend_on_the_other(self):
        seed = int(os.environ.get("SVCD_SEED", random.randrange(1 << 32)))
        print(f"test_tenants: seed {seed}", flush=True)
        rng = random.Random(seed)
        asking = Asking(rng, self.receiver)
        shared = {name: Told() for name in TENANTS}
        alone = {name: Told() for name in TENANTS}
        for number in range(self.REQUESTS):
            tenant, other = rng.sample(list(TENANTS), 2)
            request = asking.make(), asking.headers()
            self.place = rng.randrange(1 << 30)
            ids = shared[other].own
            foreign = ids[rng.randrange(len(ids))] if ids else str(uuid.UUID(int=2))
            for told in (shared[tenant], alone[tenant]):
                told.ids[foreign] = "other"
            expected = self.ask(tenant, tenant, request, alone[tenant], foreign)
            found = self.ask("both", tenant, request, shared[tenant], foreign)
            self.assertEqual(found, expected, f"seed {seed}, request {number} of {tenant}: {request}")
        self.check_tenants()

    def check_tenants(self):
        for resource in ("Hr.Person", "Svc.Event", "Svc.Admin.Webhook", "Svc.Admin.Delivery",
                         "Svc.Admin.WebhookLog", "Svc.Admin.ApiKey"):
            for name, headers in TENANTS.items():
                answer = self.servers["both"].request("GET", f"/{resource}", headers=headers)
                for entity in answer.json() if answer.status == 200 else []:
                    self.assertEqual(entity["Tenant"], name, resource)


if __name__ == "__main__":
    unittest.main()

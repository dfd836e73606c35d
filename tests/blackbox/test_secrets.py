"""Secrets are written, never read. A canary stands in every place that is one, and is looked for in
every byte that leaves the server: answers in all formats, headers, errors, deliveries' logs, metrics,
the server's log, the dump of the journal."""
import base64
import glob
import hashlib
import json
import os
import random
import signal
import subprocess
import unittest
import urllib.parse

import harness

TOOL = os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "svc-journal")
MASK = "*******"
EVERYTHING = ["Svc.Admin.Backup"]  # the journal as it is, for those who may have everything
ADMIN = {"Authorization": "apikey admin-key"}
READER = {"Authorization": "apikey reader-key"}
CLERK = {"Authorization": "apikey clerk-key"}
SIGNING = "whsec_" + base64.b64encode(b"canary-signing-secret-24").decode()
SIGNING_KEY = "whsk_" + base64.b64encode(b"canary-signing-key-of-32-bytes!!").decode()
# What none of the following may be found in.
CANARIES = ["canary", SIGNING[6:], SIGNING_KEY[5:], "reader-key"]
HEADERS = {"Authorization": "apikey canary-1", "Cookie": "a=canary-2", "X-Api-Key": "canary-3",
           "Proxy-Authorization": "Basic canary-4", "X-Auth-Token": "canary-5", "API-KEY": "canary-6",
           "X-Mine": "canary-7", "X-By-Value": "Bearer canary-8"}
PLAIN = {"X-Plain": "shown"}


def key(name, allow, **more):
    return dict({"Name": name, "KeySha256": hashlib.sha256(f"{name}-key".encode()).hexdigest(),
                 "AllowAccess": [{"Resources": resources, "Methods": methods}
                                 for resources, methods in allow]}, **more)


def without_words_of(target, text):
    text = urllib.parse.unquote(text)
    for words in urllib.parse.unquote(target).split("/"):
        text = text.replace(words, "")
    return text


class SecretsCase(harness.ServerCase):
    limits = {}
    where = ""
    CANARIES = CANARIES

    def make_config(self):
        limits = dict({"SecretHeaders": ["X-Auth-Token", "Api-Key", "X-Mine"]}, **self.limits)
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, Limits=limits, ApiKeys=[
            key("admin", [(["*"], ["*"])]),
            key("reader", [(["Svc.Admin.Webhook", "Shop.Person", "Shop.Message"], ["*"])]),
            key("clerk", [(["Svc.Admin.Webhook"], ["POST", "PATCH", "PUT"]), (["Shop.*"], ["GET"])])])

    def settle(self):
        """As the base class, with a key."""
        def is_settled():
            answer = self.get("/Svc.Admin.Delivery/State=InFlight/limit=1", ADMIN)
            return answer.status == 204
        harness.wait_until(is_settled, "no delivery is in flight")
        self.get("/Svc.Admin.Error", ADMIN)

    def assert_no_canary(self, data, where):
        text = data if isinstance(data, str) else data.decode("utf-8", "replace")
        for form in (text, urllib.parse.unquote(text)):
            for canary in self.CANARIES:
                at = form.find(canary)
                self.assertEqual(at, -1, f"{canary} in {where}: …{form[max(at - 100, 0):at + 100]}… {self.where}")

    def ask(self, method, target, body=None, headers=ADMIN):
        """A request whose answer is looked through."""
        answer = self.server.request(method, target, body, headers)
        self.assert_no_canary(answer.body, (method, target))
        for name, value in answer.headers.items():
            if name in ("Svc-pager", "Link"):  # of the next page, which is asked for in the same words
                value = without_words_of(target, value)
            self.assert_no_canary(f"{name}: {value}", (method, target))
        return answer

    def webhook(self, **members):
        body = dict({"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
                     "Headers": dict(HEADERS, **PLAIN), "Signing": {"Secrets": [SIGNING, SIGNING_KEY]},
                     "CustomPayloadRequest": {
                         "URI": "/Shop.Person",
                         "Headers": {"Authorization": "apikey reader-key", "X-Api-Key": "canary-10"},
                         "Body": {"Authorization": "canary-11", "List": ["apikey canary-12"]}}},
                    **members)
        answer = self.ask("POST", "/Svc.Admin.Webhook", body)
        self.assertEqual(answer.status, 201, answer)
        return answer.json()[0]

    def patch(self, webhook, body, headers=ADMIN):
        return self.ask("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", body, headers)

    def raise_event(self):
        event = {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}}
        answer = self.ask("POST", "/Svc.Event", event)
        self.assertEqual(answer.status, 201, answer)

    def attempts(self, count=1):
        """The log, once that many attempts are in it."""
        def find():
            answer = self.get("/Svc.Admin.WebhookLog", ADMIN)
            return answer.status == 200 and len(answer.json()) >= count
        harness.wait_until(find, "attempts in the log")
        return self.ask("GET", "/Svc.Admin.WebhookLog").json()


class NobodyReads(SecretsCase):
    shares_server = True

    def test_what_wrote_them_is_not_shown_them(self):
        webhook = self.webhook()
        self.assertEqual(webhook["Headers"], dict({name: MASK for name in HEADERS}, **PLAIN))
        self.assertEqual(webhook["Signing"], {"Secrets": [MASK, MASK]})
        custom = webhook["CustomPayloadRequest"]
        self.assertEqual(custom["Headers"], {"Authorization": MASK, "X-Api-Key": MASK})
        self.assertEqual(custom["Body"], {"Authorization": MASK, "List": [MASK]})
        changed = self.patch(webhook, {"Label": "l"}).json()
        self.assertEqual(changed, [dict(webhook, Label="l")])
        replaced = self.ask("PUT", f"/Svc.Admin.Webhook/Id={webhook['Id']}", webhook).json()
        self.assertEqual(replaced, [webhook])

    def test_every_resource_in_every_format(self):
        self.webhook()
        self.webhook(Destination="http://127.0.0.1:1/other", Label="two")
        self.raise_event()
        self.attempts(2)
        resources = [entry["Name"] for entry in self.ask("GET", "/").json()
                     if entry["Kind"] != "EventResource" and entry["Name"] not in EVERYTHING]
        self.assertIn("Svc.Admin.WebhookLog", resources)
        formats = ({}, {"Accept": "text/csv"}, {"Accept": "application/x-ndjson"},
                   {"Accept": "application/json;indent=2"})
        for resource in resources:
            for accept in formats:
                self.ask("GET", f"/{resource}", None, dict(ADMIN, **accept))
            self.ask("OPTIONS", f"/{resource}")
            self.ask("HEAD", f"/{resource}")
            self.ask("REPORT", f"/{resource}")
        for meta in ("add=Status", "select=Headers", "select=Headers.Authorization,Signing.Secrets",
                     "rename=Headers-%3EH", "distinct=true", "order_asc=Headers.Authorization",
                     "order_desc=Signing.Secrets.0", "add=Headers.Authorization",
                     "add=Headers.Authorization.Length", "limit=1", "offset=-1"):
            answer = self.ask("GET", f"/Svc.Admin.Webhook/_/{meta}")
            self.assertEqual(answer.status, 200, answer)
        lengths = self.ask("GET", "/Svc.Admin.Webhook/Headers.Authorization.Length=7")
        self.assertEqual(lengths.status, 200, lengths)

    def test_conditions_and_searches_see_the_mask(self):
        """Neither by asking, nor by order, nor by what is changed or deleted, is one found out."""
        webhook = self.webhook()
        quoted = urllib.parse.quote
        for condition in (f"Headers.Authorization={quoted('apikey canary-1')}",
                          "Headers.X-Mine=canary-7", "Headers.X-Mine>b", "Headers.Cookie>a",
                          f"Signing.Secrets.0={quoted(SIGNING, '')}",
                          f"Signing.Secrets.*={quoted(SIGNING, '')}",
                          "CustomPayloadRequest.Headers.X-Api-Key=canary-10",
                          "CustomPayloadRequest.Body.Authorization=canary-11"):
            self.assertEqual(self.get(f"/Svc.Admin.Webhook/{condition}", ADMIN).status, 204, condition)
            count = self.server.request("DELETE", f"/Svc.Admin.Webhook/{condition}", None, ADMIN)
            self.assertIn(b'"Count":0', count.body, condition)
            answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/{condition}", {"Label": "x"}, ADMIN)
            self.assertEqual(answer.status, 404, answer)
        for search in ("search=canary", "search=whsec_", "search_regex=can.ry", "search=apikey"):
            self.assertEqual(self.get(f"/Svc.Admin.Webhook/_/{search}", ADMIN).status, 204, search)
        self.assertEqual(self.get("/Svc.Admin.Webhook/_/search=shown", ADMIN).status, 200)
        # Nor by a POST that updates what is equal.
        twin = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
                "Headers": {"X-Mine": "canary-7"}}
        answer = self.ask("POST", "/Svc.Admin.Webhook/_/safepost=Headers.X-Mine", twin)
        self.assertEqual(answer.status, 201, answer)
        self.assertNotEqual(answer.json()[0]["Id"], webhook["Id"])

    @harness.apart
    def test_requests_that_the_server_makes_see_no_more(self):
        """A webhook that lists webhooks, one that sends the list on, and an aggregate of it."""
        seen = []
        receiver = self.receiver(lambda request: seen.append(request.body))
        self.webhook()
        own = {"EventSelector": "/Shop.OrderPlaced"}
        self.webhook(Method="GET", Destination="/Svc.Admin.Webhook", CustomPayloadRequest=None,
                     Headers=ADMIN, **{})
        self.webhook(Destination=receiver.url(), Headers={}, Signing=None,
                     CustomPayloadRequest={"URI": "/Svc.Admin.Webhook", "Headers": READER}, **own)
        self.raise_event()
        receiver.take()
        self.assert_no_canary(seen[0], "a custom payload")
        self.assertEqual(len(json.loads(seen[0])), 3)
        log = self.attempts(3)
        listed, = [entry for entry in log if entry["Method"] == "GET"]
        self.assertIn(MASK, listed["ResponseBody"])
        answer = self.ask("GET", "/Svc.Aggregator", {"W": "GET /Svc.Admin.Webhook"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.body.count(b'"ObjectNo"'), 3)

    def test_what_is_sent_is_the_secret(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), CustomPayloadRequest=None)
        self.patch(webhook, {"Headers": {"Cookie": MASK, "X-Plain": "changed"}})
        self.ask("PUT", f"/Svc.Admin.Webhook/Id={webhook['Id']}", webhook)
        self.raise_event()
        request = receiver.take()
        for name, value in dict(HEADERS, **PLAIN).items():
            self.assertEqual(request.headers[name], value)
        self.assertEqual(len(request.headers["webhook-signature"].split()), 2)
        self.attempts()

    @harness.apart
    def test_receivers_that_send_back_what_they_got(self):
        """As JSON, as text, as JSON that is cut."""
        fill = "x" * 5000
        bodies = [lambda got: json.dumps({"headers": got}).encode(),
                  lambda got: "\r\n".join(f"{name}: {value}" for name, value in got.items()).encode(),
                  lambda got: json.dumps({"headers": got, "fill": fill}, indent=1).encode(),
                  lambda got: b"refused: " + got["X-By-Value"].encode() + b" is no key",
                  lambda got: b"see http://me:canary-20@example.com/ for more"]
        for make in bodies:
            receiver = self.receiver(lambda request, make=make: (400, {}, make(dict(request.headers))))
            self.webhook(Destination=receiver.url(), CustomPayloadRequest=None,
                         Delivery={"RetrySchedule": []})
        self.raise_event()
        log = self.attempts(len(bodies))
        for entry in log:
            self.assertIn(MASK, entry["ResponseBody"])
        self.assertIn("refused: ******* is no key", [entry["ResponseBody"] for entry in log])
        self.assertIn("see http://*******@example.com/ for more",
                      [entry["ResponseBody"] for entry in log])

    def test_neither_logs_nor_metrics_nor_dumps(self):
        webhook = self.webhook(Label="plain label")
        self.patch(webhook, {"Headers": {"Authorization": "apikey canary-9"}})
        self.ask("POST", "/Svc.Admin.Webhook", {"Headers": {"Authorization": "apikey canary-9"}})
        self.raise_event()
        self.attempts()
        self.ask("GET", "/Svc.Metrics")
        self.settle()
        dump = subprocess.run([TOOL, "dump", self.server.data], capture_output=True, check=True,
                              timeout=harness.DEADLINE_S)
        self.assert_no_canary(dump.stdout + dump.stderr, "svc-journal dump")
        self.assertIn(b"plain label", dump.stdout)
        self.assertIn(MASK.encode(), dump.stdout)
        self.assert_no_canary("\n".join(self.server.log), "the log")

    @harness.apart
    def test_a_proxy_with_a_password_that_is_refused(self):
        for proxy in ("ftp://me:canary@host", "http://me:canary@", "me:canary@no host"):
            self.server.config["Delivery"] = {"Proxy": proxy}
            path = self.server.write_config()
            result = subprocess.run([harness.SVCD, "--config", path, "--check"], capture_output=True,
                                    timeout=harness.DEADLINE_S)
            self.assertEqual(result.returncode, 2)
            self.assertIn(b"Proxy", result.stderr)
            self.assert_no_canary(result.stderr, proxy)
        del self.server.config["Delivery"]

    def test_files_are_the_users_alone(self):
        self.webhook()
        files = glob.glob(os.path.join(self.server.data, "*"))
        self.assertTrue(any("journal" in os.path.basename(file) for file in files), files)
        for file in files:
            self.assertEqual(os.stat(file).st_mode & 0o777, 0o600, file)
        target = os.path.join(self.server.directory, "backup")
        subprocess.run([TOOL, "backup", self.server.data, target], check=True, capture_output=True)
        for file in glob.glob(os.path.join(target, "*")):
            self.assertEqual(os.stat(file).st_mode & 0o777, 0o600, file)


class Made(SecretsCase):
    """What the server makes is shown in the answer to the request that had it made, and nowhere else."""

    def made(self, method, target, body, headers=ADMIN):
        """A request that makes secrets: its answer, and what is new in it."""
        answer = self.server.request(method, target, body, headers)
        self.assertIn(answer.status, (200, 201), answer)
        new = [secret for entity in answer.json() for secret in entity["Signing"]["Secrets"] if secret != MASK]
        return answer.json(), new

    def look_everywhere(self, secrets):
        bare = [secret.split("_", 1)[1] for secret in secrets]

        def look(data, where):
            for form in (data, urllib.parse.unquote_to_bytes(data)):
                for secret in bare:
                    self.assertNotIn(secret.encode(), form, where)
        for entry in self.get("/", ADMIN).json():
            if entry["Kind"] == "EventResource" or entry["Name"] in EVERYTHING:
                continue
            for accept in ("application/json", "text/csv", "application/x-ndjson"):
                answer = self.get(f"/{entry['Name']}", dict(ADMIN, Accept=accept))
                look(answer.body + str(answer.headers).encode(), entry["Name"])
        for target in ("/Svc.Admin.Webhook/_/select=Signing.Secrets", "/Svc.Admin.Webhook/_/add=Signing.Secrets.0"):
            look(self.get(target, ADMIN).body, target)
        for secret in secrets:
            quoted = urllib.parse.quote(secret, "")
            for target in (f"/Svc.Admin.Webhook/Signing.Secrets.*={quoted}", f"/Svc.Admin.Webhook/_/search={quoted}"):
                self.assertEqual(self.get(target, ADMIN).status, 204, target)
        self.settle()
        dump = subprocess.run([TOOL, "dump", self.server.data], capture_output=True, check=True,
                              timeout=harness.DEADLINE_S)
        look(dump.stdout + dump.stderr, "svc-journal dump")
        look("\n".join(self.server.log).encode(), "the log")

    def test_by_every_method(self):
        body = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced", "Signing": {},
                "Delivery": {"RetrySchedule": []}}
        (webhook,), first = self.made("POST", "/Svc.Admin.Webhook", body)
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        secrets = first + self.made("PATCH", target, {"Signing": {"Rotate": True}})[1]
        secrets += self.made("PUT", target, body)[1]
        secrets += self.made("POST", "/Svc.Admin.Webhook/_/safepost=Id", dict(body, Label="x"))[1]
        several, new = self.made("PATCH", "/Svc.Admin.Webhook/_/unsafe=true", {"Signing": {"Rotate": True}})
        self.assertEqual((len(several), len(new)), (2, 2))
        secrets += new
        self.assertEqual(len(set(secrets)), 6)
        self.assertTrue(all(len(base64.b64decode(secret[6:])) == 32 for secret in secrets), secrets)
        self.assertEqual(webhook["Signing"], {"Secrets": first})
        self.raise_event()
        self.attempts()
        self.look_everywhere(secrets)
        self.server.kill()
        self.server.start()
        self.look_everywhere(secrets)

    def test_others_that_are_stored_stay_hidden(self):
        webhook = self.webhook()
        (answer,), new = self.made("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"Signing": {"Rotate": True}})
        self.assertEqual(len(new), 1)
        self.assert_no_canary(json.dumps(answer), "the answer")
        self.assertEqual(answer["Headers"], webhook["Headers"])
        self.assertEqual(answer["Signing"]["Secrets"], [MASK, MASK] + new)

    def test_whatever_the_client_prefers_and_may_read(self):
        """A secret that nobody is told would be of no use. Without a right to GET no more is told."""
        body = {"Label": "a", "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced", "Signing": {}}
        minimal = {"Prefer": "return=minimal"}
        (webhook,), new = self.made("POST", "/Svc.Admin.Webhook", body, dict(ADMIN, **minimal))
        self.assertEqual(len(new), 1)
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"Label": "b"}, dict(ADMIN, **minimal))
        self.assertEqual((answer.status, answer.body), (200, b""))
        for method, target in (("POST", "/Svc.Admin.Webhook"), ("PUT", f"/Svc.Admin.Webhook/Id={webhook['Id']}")):
            (told,), new = self.made(method, target, body, CLERK)
            self.assertEqual(told, {"Id": told["Id"], "Signing": {"Secrets": new}})
        answer = self.server.request("POST", "/Svc.Admin.Webhook", dict(body, Signing=None), CLERK)
        self.assertEqual((answer.status, answer.body), (201, b""))

    def test_not_to_a_webhook_that_makes_webhooks(self):
        """Its log would show it to others."""
        made = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced", "Signing": {}, "Label": "made"}
        self.webhook(Destination="/Svc.Admin.Webhook", CustomPayloadRequest=None, Headers=ADMIN, Signing=None,
                     EventSelector="/Shop.OrderPlaced/Label=made")
        event = {"Resource": "Shop.OrderPlaced", "Payload": made}
        self.assertEqual(self.ask("POST", "/Svc.Event", event).status, 201)
        entry, = self.attempts()
        self.assertEqual(entry["StatusCode"], 201, entry)
        self.assertIn('"Secrets":["*******"]', entry["ResponseBody"])
        self.assertEqual(self.ask("GET", "/Svc.Admin.Webhook/Label=made").json()[0]["Signing"], {"Secrets": [MASK]})


class AtRandom(SecretsCase):
    """Whatever is asked of whatever is there, and done to it, no byte that leaves has a canary."""

    REQUESTS = int(os.environ.get("SVCD_SECRET_REQUESTS", "400"))
    READABLE = ["Svc.Admin.Webhook"] * 4 + ["Svc.Admin.WebhookLog", "Svc.Admin.Delivery", "Svc.Admin.Error", "Svc.Admin.ApiKey",
                                            "Svc.Event", "Svc.AvailableResource", "Svc.Admin.Resource", "Svc.Metrics"]
    SECRET_PATHS = ["Headers", "Headers.Authorization", "Headers.X-Mine", "Headers.X-By-Value", "Signing", "Signing.Secrets",
                    "Signing.Secrets.0", "Signing.Secrets.*", "CustomPayloadRequest", "CustomPayloadRequest.Headers.X-Api-Key",
                    "CustomPayloadRequest.Body.List.0", "Headers.Cookie.Length", "OwnerKey", "WriterKey", "KeySha256",
                    "ResponseBody", "RequestHeaders", "RequestBody", "Body", "Uri", "Key"]

    def setUp(self):
        super().setUp()
        self.seed = int(os.environ.get("SVCD_SEED", random.randrange(1 << 32)))
        print(f"test_secrets: seed {self.seed}", flush=True)
        self.rng = random.Random(self.seed)
        self.ids = []
        self.leaked = []

    def condition(self):
        rng = self.rng
        path = rng.choice(self.SECRET_PATHS)
        name = path.rpartition(".")[2]
        bare = ["canary-7"] if name in HEADERS and name != "X-By-Value" else []  # elsewhere it is a text like any
        literal = rng.choice(["null", "a", *bare, urllib.parse.quote("apikey canary-1"), urllib.parse.quote(SIGNING, ""), "7",
                              "'*******'"])
        known = [f"Id={rng.choice(self.ids)}"] if self.ids else []
        return rng.choice(["_", "_", *known, *known, "IsPaused=true", "ObjectNo>0", path + rng.choice("= != < >".split())
                           + literal])

    def meta(self):
        rng = self.rng
        path = rng.choice(self.SECRET_PATHS)
        return rng.choice(["_", f"select={path}", f"add={path}", f"order_asc={path}", f"order_desc={path}", "distinct=true",
                           f"rename={path}-%3ESeen", "search=anary", "search_regex=c.n.ry", f"search=a,{path}", "limit=2",
                           "offset=-2", "add=Status", "limit=x", f"safepost={path}", "unsafe=true"])

    def mostly(self, good, bad):
        return self.rng.choice(good if self.rng.random() < 0.9 else bad)

    def body(self, is_new):
        """Of a webhook; many are wrong somewhere."""
        rng = self.rng
        headers = {name: value if is_new or rng.random() < 0.5 else MASK for name, value in rng.sample(list(HEADERS.items()), 3)}
        members = {"Label": rng.choice(["a", "b"]), "Method": self.mostly(["POST", "GET"], ["FETCH"]),
                   "EventSelector": self.mostly(["/Shop.OrderPlaced"], ["/Shop.Nothing"]),
                   "Destination": self.mostly([self.mine.url(), self.echo.url()],
                                              ["http://me:canary-20@example.com/", "/Shop.Message", "nowhere"]),
                   "Headers": self.mostly([headers, dict(headers, **ADMIN)],
                                          ["Bearer canary-8", {"X-Mine": ["canary-7"]}, {"X-Mine": "canary-7\n"}, {"Cookie": MASK}]),
                   "Signing": self.mostly([None, {"Secrets": [SIGNING]}, {"Secrets": [SIGNING, SIGNING_KEY]}],
                                          [{"Secrets": SIGNING}, {"Secrets": [SIGNING + "!"]}, {"Secret": SIGNING},
                                           {"Secrets": [MASK, SIGNING_KEY]}]),
                   "CustomPayloadRequest": self.mostly(
                       [None, {"URI": "/Svc.Admin.Webhook", "Headers": ADMIN},
                        {"URI": "/Svc.Admin.ApiKey", "Headers": ADMIN},
                        {"URI": "/Svc.Aggregator", "Headers": ADMIN, "Body": {"w": "GET /Svc.Admin.Webhook"}}],
                       [{"URI": "/Svc.Admin.Webhook/_/select=Headers", "Headers": {"Authorization": "apikey canary-9"}},
                        {"URI": "/Svc.Admin.ApiKey/_/add=KeySha256", "Headers": ADMIN}]),
                   "IsPaused": rng.random() < 0.1, "Delivery": {"RetrySchedule": []}}
        if not is_new:
            members = {name: members[name] for name in rng.sample(list(members), rng.randrange(1, 9))}
        text = json.dumps(members)
        return text[:rng.randrange(len(text))] if rng.random() < 0.05 else text

    def make(self):
        rng = self.rng
        kind = rng.random()
        if kind < 0.1:
            return "POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}}
        if kind < 0.15:
            return "GET", "/Svc.Aggregator", {"all": f"GET /{rng.choice(self.READABLE)}/{self.condition()}/{self.meta()}"}
        if kind < 0.2 and self.ids:
            return "POST", "/Svc.Explain", {"WebhookId": rng.choice(self.ids), "Resource": "Shop.OrderPlaced", "Payload": {}}
        if kind < 0.5:
            target = rng.choice([*5 * ["/Svc.Admin.Webhook"], "/Svc.Admin.WebhookLog", "/webhok", "/",
                                 f"/Svc.Admin.Webhook/{self.condition()}/{self.meta()}"])
            method = rng.choice(["POST", "POST", "POST", "PATCH", "PATCH", "PUT"])
            return method, target, self.body(method != "PATCH" and rng.random() < 0.8)
        if kind < 0.55:
            return "PATCH", "/Svc.Admin.Delivery/_/unsafe=true", {"State": "Pending"}
        return (rng.choice(["GET", "GET", "GET", "HEAD", "REPORT", "OPTIONS"]),
                f"/{rng.choice(self.READABLE)}/{self.condition()}/{self.meta()}", None)

    def test_no_byte_has_one(self):
        self.mine = self.receiver(lambda request: self.leaked.append(request.body))
        self.echo = self.receiver(lambda request: (500, {}, json.dumps(dict(request.headers)).encode()))
        made = self.created("/Svc.Admin.ApiKey", {"Name": "made", "AllowAccess": [
            {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]}]}, ADMIN)
        canaries = [made["Key"], *(hashlib.sha256(text.encode()).hexdigest()
                                   for text in (made["Key"], "admin-key", "reader-key"))]
        self.addCleanup(setattr, self, "CANARIES", CANARIES)
        self.CANARIES = [*CANARIES, *canaries]
        self.ids = [self.webhook(Label=label, Destination=self.mine.url())["Id"] for label in "abc"]
        keys = [ADMIN, ADMIN, READER, CLERK, {"Authorization": f"apikey {made['Key']}"}]
        number = 0
        while number < self.REQUESTS or len(self.ids) == 3:  # chance may refuse each webhook of so many requests
            self.assertLess(number, 20 * self.REQUESTS, f"seed {self.seed}: no webhook was made")
            method, target, body = self.make()
            headers = {**self.rng.choice(keys), **self.rng.choice([{}, {}, {"Accept": "text/csv"}, {
                "Accept": "application/x-ndjson"}, {"Accept": "text/html"}, {"Prefer": "count=exact"}, {"If-Match": '"1"'}])}
            self.where = f"seed {self.seed}, request {number}: {method} {target} {body}"
            answer = self.ask(method, target, body, headers)
            if answer.status == 201 and target.startswith("/Svc.Admin.Webhook") and answer.body[:1] == b"[":
                self.ids += [webhook["Id"] for webhook in answer.json()]
            number += 1
        self.settle()
        for body in self.leaked:
            self.assert_no_canary(body, "a delivery")
        for resource in self.READABLE:
            self.ask("GET", f"/{resource}")
        dump = subprocess.run([TOOL, "dump", self.server.data], capture_output=True, check=True, timeout=harness.DEADLINE_S)
        # The digests of keys are what is stored of them.
        self.CANARIES = [*CANARIES, made["Key"]]
        self.assert_no_canary(dump.stdout + dump.stderr, "svc-journal dump")
        self.assert_no_canary("\n".join(self.server.log), "the log")

    def settle(self):
        super().settle()
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=InFlight", ADMIN).status == 204, "settled")


class Errors(SecretsCase):
    """What is stored of requests that failed."""
    shares_server = True

    def failed(self, method, target, body=None, headers=None):
        answer = self.ask(method, target, body, dict(ADMIN, **(headers or {})))
        self.assertGreaterEqual(answer.status, 400, answer)
        return self.ask("GET", answer.headers["ErrorInfo"]).json()[0]

    def test_a_webhook_posted_somewhere_else(self):
        body = {"Destination": "https://me:canary-20@example.com/", "EventSelector": "/Shop.OrderPlaced",
                "Headers": dict(HEADERS, **PLAIN), "Signing": {"Secrets": [SIGNING, SIGNING_KEY]},
                "Note": f"the header is Authorization: apikey canary-21, or {SIGNING}"}
        for target in ("/", "/Svc.Admin.WebhookLog", "/Svc.Admin.Webhook", "/Svc.Admin.Webhok", "/Shop.Person"):
            stored = self.failed("POST", target, body)
            self.assertIn("https://*******@example.com/", stored["Body"])
            self.assertIn('"X-Plain":"shown"', stored["Body"])
        for spoiled in (json.dumps(body)[:-1], json.dumps(body, indent=1) + "]",
                        json.dumps(body).replace('"Headers"', '"Headers" "'),
                        "\n".join(f"{name}: {value}" for name, value in HEADERS.items()),
                        urllib.parse.urlencode({"api-key": "canary-5", "x": "1"})):
            stored = self.failed("POST", "/Svc.Admin.Webhook", spoiled)
            self.assertIn(MASK, stored["Body"])

    def test_names_that_are_escaped(self):
        stored = self.failed("POST", "/Shop.Person", '{"Author\\u0069zation":\n"canary-1","a":1}')
        self.assertIn(MASK, stored["Body"])

    def test_headers(self):
        headers = dict(HEADERS, **PLAIN)
        del headers["Authorization"]
        stored = self.failed("GET", "/Svc.NoSuch", None, dict(headers, Referer="http://me:canary-20@h/x"))
        for name in headers:
            if name not in PLAIN:
                self.assertIn(f"{name}: {MASK}", stored["Headers"])
        self.assertIn("X-Plain: shown", stored["Headers"])
        self.assertIn(f"Authorization: apikey {MASK}", stored["Headers"])
        self.assertIn(f"Referer: http://{MASK}@h/x", stored["Headers"])

    def test_targets(self):
        quoted = urllib.parse.quote
        for target in ("/Svc.Admin.Webhook/Headers.X-Mine=canary-7/limit=x",
                       "/Svc.Admin.Webhook/Headers.X-Mine=canary-7&x=1/limt=1",
                       "/Svc.Admin.Webhook/Headers.X-Mine=canary-7/limit",
                       "/Svc.Admin.Webhook/Headers.%58-Mine=canary-7/limit",
                       "/Svc.Admin.Webhook/Headers.'X-Mine'=canary-7/limit=x",
                       "/Svc.Admin.Webhook?where=Headers.X-Mine%3Dcanary-7&limit=x",
                       "/Svc.Admin.Webhook?where=Headers.X-Mine%3Dcanary-7&where=a",
                       "/Svc.Admin.Webhook?search=apikey+canary-1&limit=x",
                       "/Svc.Admin.Webhook?search=apikey+canary-1&limt=1",
                       f"/Svc.Admin.Webhook/_/search={quoted('apikey canary-1')}&limit=x",
                       f"/Svc.Admin.Webhook/_/search={quoted('apikey canary-1')}&limit",
                       f"/Shop.Person/Age={quoted('Bearer canary-8')}",
                       f"/Svc.Admin.Delivery/State={quoted(SIGNING, '')}/limit=x",
                       f"/{quoted('apikey canary-1')}",
                       f"/Shop.Person/Name={quoted('apikey canary-1')}/a/b/c",
                       f"/Shop.Person/Name={quoted('apikey canary-1')}%"):
            stored = self.failed("GET", target)
            self.assertIn(MASK, urllib.parse.unquote(stored["Uri"]), target)

    def test_what_holds_none_stays_as_it_came(self):
        body = '{ "Name" : [ 1 ],\n "Text": "the cookie jar is basic" }'
        self.assertEqual(self.failed("POST", "/Shop.Person", body)["Body"], body)


class Writing(SecretsCase):
    shares_server = True

    def test_the_mask_keeps_what_is_stored(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), CustomPayloadRequest=None)
        for members in ({"Headers": {"cookie": MASK, "X-Mine": MASK, "X-Plain": "a"}},
                        {"Signing": {"Secrets": [MASK, MASK]}}, webhook):
            self.assertEqual(self.patch(webhook, members).status, 200)
        self.raise_event()
        request = receiver.take()
        self.assertEqual(request.headers["Cookie"], HEADERS["Cookie"])
        self.assertEqual(request.headers["X-Mine"], HEADERS["X-Mine"])
        self.attempts()

    def test_a_mask_for_nothing_is_refused(self):
        webhook = self.webhook(Headers=PLAIN, CustomPayloadRequest=None)
        for members, place in (({"Headers": {"X-Mine": MASK}}, "Headers.X-Mine"),
                               ({"Headers": {"Authorization": "\\u002a******"}}, "Headers.Authorization"),
                               ({"Signing": {"Secrets": [MASK] * 3}}, "Signing.Secrets.2"),
                               ({"CustomPayloadRequest": {"URI": "/Shop.Person", "Headers": {
                                   "Cookie": MASK}}}, "CustomPayloadRequest.Headers.Cookie")):
            body = json.dumps(members).replace("\\\\u002a", "\\u002a")
            answer = self.patch(webhook, body)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidResourceEntity"))
            self.assertIn(f"{place} is {MASK}, but no value is stored", answer.json()["detail"])

    def test_writing_a_secret_is_always_a_change(self):
        """Equal or not, so that nobody learns by trying."""
        webhook = self.webhook(CustomPayloadRequest=None)
        tags = set()
        for members in ({"Headers": {"X-Mine": "canary-7"}}, {"Headers": {"X-Mine": "canary-other"}},
                        {"Headers": {"X-Mine": "canary-other"}}, {"Signing": {"Secrets": [SIGNING]}},
                        {"Signing": {"Secrets": [SIGNING]}}):
            answer = self.patch(webhook, members)
            self.assertEqual(answer.status, 200, answer)
            tags.add(self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}", ADMIN).headers["ETag"])
        self.assertEqual(len(tags), 5)

    @harness.apart
    def test_a_kept_reference_does_not_tell_a_secret(self):
        """A local destination whose key has gone wrong is kept when nothing is written of it, and only
        then: one that writes the stored key is told what one that writes another is told."""
        webhook = self.webhook(Destination="/Shop.Message", CustomPayloadRequest=None, Headers=READER,
                               Signing=None)
        self.server.config["ApiKeys"] = [entry for entry in self.server.config["ApiKeys"]
                                         if entry["Name"] != "reader"]
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.assertEqual(self.patch(webhook, {"Label": "a"}).status, 200)
        answers = [self.patch(webhook, {"Headers": {"Authorization": value}, "Label": "b"})
                   for value in ("apikey reader-key", "apikey none")]
        self.assertEqual([answer.status for answer in answers], [400, 400])
        self.assertEqual(*[answer.json()["detail"] for answer in answers])


class Guesses(SecretsCase):
    """A wrong key that is written into a webhook is a failed sign-in."""

    limits = {"FailedSignInsPerMinute": 5}

    def guess(self, value, headers, **members):
        body = dict({"Destination": "/Shop.Message", "EventSelector": "/Shop.OrderPlaced",
                     "Headers": {"Authorization": value}}, **members)
        return self.ask("POST", "/Svc.Admin.Webhook", body, headers)

    def assert_refused(self, answer):
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (429, "TooManyRequests"))
        self.assertGreater(int(answer.headers["Retry-After"]), 0)

    FROM = {"X-Forwarded-For": "192.0.2.7"}  # a trusted proxy says so

    def test_they_count_against_the_address(self):
        keys = [dict(headers, **self.FROM) for headers in (CLERK, ADMIN)]
        for i in range(5):
            answer = self.guess(f"apikey none-{i}", keys[i % 2])
            self.assertEqual(answer.status, 400, answer)
        # Neither wrong nor right ones are judged any more, here or at the door.
        self.assert_refused(self.guess("apikey none", keys[0]))
        self.assert_refused(self.guess("apikey reader-key", keys[1]))
        self.assert_refused(self.get("/Shop.Person", dict(READER, **self.FROM)))
        self.assertEqual(self.get("/Shop.Person", READER).status, 204)

    def test_they_count_in_custom_requests(self):
        for i in range(5):
            custom = {"URI": "/Shop.Person", "Headers": {"Authorization": f"apikey none-{i}"}}
            answer = self.guess("", dict(CLERK, **self.FROM), Destination="http://127.0.0.1:1/",
                                Headers={}, CustomPayloadRequest=custom)
            self.assertEqual(answer.status, 400, answer)
        self.assert_refused(self.get("/Shop.Person", dict(READER, **self.FROM)))

    def test_they_count_against_the_key(self):
        """From addresses that change: what the proxy says is believed."""
        answers = [self.guess(f"apikey none-{i}", dict(CLERK, **{"X-Forwarded-For": f"192.0.2.{i}"}))
                   for i in range(6)]
        self.assertEqual([answer.status for answer in answers], [400] * 5 + [429])
        other = dict(ADMIN, **{"X-Forwarded-For": "192.0.2.100"})
        self.assertEqual(self.guess("apikey reader-key", other).status, 201)
        harness.wait_until(lambda: any("a key that writes webhooks" in line for line in self.server.log),
                           "the log says so")

    def test_right_ones_and_none_do_not_count(self):
        for _ in range(8):
            self.assertEqual(self.guess("apikey reader-key", CLERK).status, 201)
            self.assertEqual(self.guess("", CLERK).status, 400)


class Shown(harness.ServerCase):
    """Characters that move cursors or turn what is read are escaped where people read."""

    NASTY = "a\u0085b\u009b31mc\u202ed\u2066e\u200ff\u061cg\u2028h\x7fi"

    def assert_harmless(self, text):
        for c in self.NASTY:
            if not c.isalnum():
                self.assertNotIn(c, text)

    def test_a_dump(self):
        """Of what came unescaped."""
        for target, body in (("/Shop.Message", {"Text": self.NASTY, "No": 1}),
                             ("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"T": self.NASTY}}),
                             ("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {self.NASTY: 1}})):
            self.created(target, json.dumps(body, ensure_ascii=False))
        dump = subprocess.run([TOOL, "dump", self.server.data], capture_output=True, check=True,
                              timeout=harness.DEADLINE_S).stdout.decode()
        self.assert_harmless(dump)
        entity, = [line for line in map(json.loads, dump.splitlines())
                   if line["record"].get("resource") == "Shop.Message"]
        self.assertEqual(entity["record"]["json"]["Text"], self.NASTY)
        self.assertIn("\\u202e", dump)

    def test_the_log(self):
        """A member that there is not is named there: when the configuration is read anew, and at once."""
        self.server.config = dict(self.server.config, **{self.NASTY: 1})
        path = self.server.write_config()
        self.server.process.send_signal(signal.SIGHUP)
        lines = harness.wait_until(
            lambda: [line for line in self.server.log if "nothing has changed" in line], "a line")
        result = subprocess.run([harness.SVCD, "--config", path, "--check"], capture_output=True,
                                timeout=harness.DEADLINE_S)
        self.assertEqual(result.returncode, 2)
        for said in (lines[0], result.stderr.decode()):
            self.assertIn("\\u202e", said)
            self.assert_harmless(said)
        self.server.config.pop(self.NASTY)


if __name__ == "__main__":
    unittest.main()

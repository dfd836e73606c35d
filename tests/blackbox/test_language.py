"""The query language: what the conformance table cannot show, and each rule once from outside."""
import json
import random
import threading
import unittest
import urllib.parse

import harness


class Hidden(harness.ServerCase):
    """What is computed, such as a webhook's Status, in conditions, order and search."""

    def test_failing_webhooks_are_found_and_sorted(self):
        bad = self.receiver(lambda request: 500)
        good = self.receiver()
        for label, receiver in (("bad", bad), ("good", good)):
            self.webhook(Label=label, Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         Delivery={"RetrySchedule": [3600, 3600]})
        self.webhook(Label="none", Destination=good.url(), EventSelector="/Shop.PersonCreated")
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}}] * 3)
        harness.wait_until(lambda: self.labels("Status.State=Failing&Status.Waiting=3") == ["bad"],
                           "it is failing")
        harness.wait_until(lambda: self.labels("Status.RecentAttempts=3&Status.SuccessRate=1") == ["good"],
                           "it has delivered")
        self.assertEqual(self.labels("Status.State!=Failing"), ["good", "none"])
        self.assertEqual(self.labels("Status.LastFailureTime>2026-01-01"), ["bad"])
        self.assertEqual(self.labels("_", "order_desc=Status.Waiting&limit=1"), ["bad"])
        self.assertEqual(self.labels("_", "search=500,Status.LastError"), ["bad"])
        self.assertEqual(self.get("/Svc.Admin.Webhook/Label=bad/add=Status.State&select=Status.State").json(),
                         [{"Status.State": "Failing"}])
        answer = self.server.request("PATCH", "/Svc.Admin.Webhook/Status.State=Failing", {"IsPaused": True})
        self.assertEqual([entity["Label"] for entity in answer.json()], ["bad"])

    def labels(self, conditions, metas="limit=9"):
        answer = self.get(f"/Svc.Admin.Webhook?where=&select=Label&{metas}" if conditions == "_" else
                          f"/Svc.Admin.Webhook/{conditions}?select=Label&{metas}")
        self.assertEqual(answer.status, 200, answer)
        return [entity["Label"] for entity in answer.json()]

    def test_many_are_looked_at_beside_others(self):
        """More than a turn takes: the search goes on on a fiber, and finds the same."""
        count = 4000 if harness.is_sanitized() else 9000
        hooks = [{"Label": f"w{number}", "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
                  "IsPaused": number % 100 == 0} for number in range(count)]
        for first in range(0, len(hooks), 1000):
            self.assertEqual(self.post("/Svc.Admin.Webhook", hooks[first:first + 1000],
                                       {"Prefer": "return=minimal"}).status, 201)
        answer = self.get("/Svc.Admin.Webhook/Status.State=Paused/select=Label")
        self.assertEqual([entity["Label"] for entity in answer.json()], [f"w{n}" for n in range(0, count, 100)])
        answer = self.server.request("PATCH", "/Svc.Admin.Webhook/Status.State=Paused&Label!=w0/unsafe=true",
                                     {"IsPaused": False})
        self.assertEqual(answer.headers["Svc-info"], f"{count // 100 - 1} entities updated in 'Svc.Admin.Webhook'")
        self.assertEqual(self.server.request("REPORT", "/Svc.Admin.Webhook/Status.State=Paused").json(),
                         [{"Count": 1}])
        answer = self.server.request("DELETE", "/Svc.Admin.Webhook/IsPaused=false/unsafe=true")
        self.assertEqual(answer.headers["Svc-info"], f"{count - 1} entities deleted from 'Svc.Admin.Webhook'")


class Words(harness.ServerCase):
    def test_methods_of_the_log_and_actions_of_errors_in_any_case(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Method="put")
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})
        receiver.take()
        for method in ("put", "PUT", "'Put'"):
            harness.wait_until(lambda m=method: self.count(f"/Svc.Admin.WebhookLog/method={m}") == 1, method)
        answer = self.get("/Svc.Admin.WebhookLog/method=zzz")
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidEnumValue"))
        self.get("/nothing")
        self.assertGreaterEqual(self.count("/Svc.Admin.Error/action=get"), 2)
        self.assertEqual(self.count("/Svc.Admin.Error/action=get"), self.count("/Svc.Admin.Error/Action=GET"))
        self.assertEqual(self.get("/Svc.Admin.Error/action=zzz").status, 204)

    def count(self, target):
        return self.server.request("REPORT", target).json()[0]["Count"]

    def test_search_ignores_case_and_sees_what_is_not_selected(self):
        self.post("/Shop.Message", """[{"No": 1, "Text": "Straße"}, {"No": 2, "Text": "other"}]""")
        for search in ("STRA", "stra", "STRA%C3%9FE", "stra,Text", "STRA,Text,CI"):
            answer = self.get(f"/Shop.Message/_/search={search}&select=No")
            self.assertEqual((search, answer.status, answer.body), (search, 200, b'[{"No":1}]'))
        for search in ("STRA,CS", "stra,Text,CS", "No.Length"):
            self.assertEqual(self.get(f"/Shop.Message/_/search={search}&select=No").status, 204, search)

    def test_a_new_name_is_free(self):
        self.post("/Shop.Message", [{"No": 1, "Text": "a"}, {"No": 2}])
        self.assertEqual(self.get("/Shop.Message/No=2/rename=No->Text&select=Text").json(), [{"Text": 2}])
        answer = self.get("/Shop.Message/_/rename=No->Text")
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidMetaConditionSyntax"))


class Asking(harness.ServerCase):
    """Svc.Echo and Svc.Aggregator, by GET and by POST."""
    shares_server = True

    def test_echo_takes_any_operator_and_a_body(self):
        for method in ("GET", "POST"):
            answer = self.server.request(method, "/echo/a!=b&c%3E5?where=d%3Ce+f", {"g": [1, {"h": None}]})
            self.assertEqual((answer.status, answer.body), (200, b'[{"a":"b","c":5,"d":"e f","g":[1, {"h": null}]}]'))
            answer = self.server.request(method, "/echo/a!=b", {"a": 1})
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidConditionSyntax"))

    def test_echo_as_a_custom_payload_and_as_a_destination(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"URI": "/Svc.Echo/kind!=x", "Body": {"text": "hello"}})
        self.webhook(Destination="/Svc.Echo", EventSelector="/Shop.OrderPlaced")
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})
        self.assertEqual(receiver.take().json(), [{"kind": "x", "text": "hello"}])
        log = harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog/Destination=%2FSvc.Echo").body, "it is tried")
        self.assertEqual([entry["StatusCode"] for entry in json.loads(log)], [200])

    def test_a_posted_template_sees_one_moment_beside_writers(self):
        many = 10000 if harness.is_sanitized() else 20000
        for first in range(0, many, 5000):
            self.post("/Shop.Message", [{"No": number, "Text": "x" * 100} for number in range(first, first + 5000)],
                      {"Prefer": "return=minimal"})
        wanted = "REPORT /Shop.Message/Text.Length>0&No>=0"
        template = {"a": wanted, "b": wanted, "c": wanted}
        is_over = threading.Event()

        def write():
            while not is_over.is_set():
                self.server.request("POST", "/Shop.Message", [{"No": 1, "Text": "y"}] * 20, {"Prefer": "return=minimal"})
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(5):
                answer = self.post("/Svc.Aggregator", template)
                counts = answer.json()[0]
                self.assertTrue(counts["a"] == counts["b"] == counts["c"] >= many, answer)
        finally:
            is_over.set()
            writer.join()
        metrics = self.get("/Svc.Metrics").body.decode()
        self.assertIn("svc_requests_given_way_total", metrics)
        self.assertNotIn("svc_requests_given_way_total 0\n", metrics)


class Forms(harness.ServerCase):
    """Whatever is asked, the query form and the path form are answered alike."""

    VALUES = ["1", "2.5", "-3", "null", "true", "x", "a/b", "c&d", "e=f", "g h", "i+j", "100%", "'q'", "<k>", "\u00e4", "l!=m", ""]
    CONDITIONS = ["No", "Text", "Deep.A", "Deep.'p.q'", "List.*", "List.0", "Text.Length", "Missing", "ObjectNo"]
    METAS = {"limit": ["0", "1", "3", "-1", "x"], "offset": ["0", "2", "-2"], "distinct": ["true", "false"],
             "order_asc": ["No", "Text,No", "Deep.A"], "order_desc": ["No", "List.Length", "Text"],
             "select": ["No", "Text,Deep", "List,Missing"], "add": ["Text.Length", "Deep.A"],
             "rename": ["No->Number", "Text->T,No->N", "No->Text"], "search": ["a", "A,Text", "B,CS", "'g h'", "a,Text,XX"],
             "search_regex": ["^a", "[a-c].,Text", "(", "h|j,CS"], "unsafe": ["true"], "limt": ["1"]}

    def setUp(self):
        super().setUp()
        self.random = random.Random(4711)
        texts = [value for value in self.VALUES if value]
        for number in range(24):
            entity = {"No": number % 7, "Text": self.random.choice(texts), "Deep": {"A": number % 3, "p.q": number % 2},
                      "List": [self.random.choice([1, 2, "x", None]) for _ in range(number % 4)]}
            self.created("/Shop.Message", {name: value for name, value in entity.items() if self.random.random() < 0.9})

    def quoted(self, text):
        """As it must be in a path: what has a meaning there is escaped, some of the rest as well."""
        return "".join(c if (c.isascii() and c.isalnum()) or (c in "-_.*,'" and self.random.random() < 0.8) else urllib.parse.quote(c, safe="")
                       for c in text)

    def form_quoted(self, text):
        return urllib.parse.quote_plus(text, safe=self.random.choice(["", "=,'", "*./"]))

    def random_request(self):
        """The same in both forms."""
        pick = self.random
        conditions = [(pick.choice(self.CONDITIONS), pick.choice(["=", "!=", "<", ">", "<=", ">="]), pick.choice(self.VALUES))
                      for _ in range(pick.choice([0, 0, 1, 1, 2, 3]))]
        names = pick.sample(list(self.METAS), pick.choice([0, 1, 1, 2, 3]))
        metas = [(name, pick.choice(self.METAS[name])) for name in names]
        in_path = "&".join(self.quoted(key) + op + self.quoted(value) for key, op, value in conditions) or "_"
        path = f"/Shop.Message/{in_path}/" + "&".join(f"{name}={self.quoted(value)}" for name, value in metas)
        kept = pick.randint(0, len(conditions))  # so many stay in the path
        before = "&".join(self.quoted(key) + op + self.quoted(value) for key, op, value in conditions[:kept]) or "_"
        parameters = [f"{name}={self.form_quoted(value)}" for name, value in metas]
        at = 0  # conditions stand anywhere among the others
        for key, op, value in conditions[kept:]:
            at = pick.randint(at, len(parameters))
            parameters.insert(at, "where=" + self.form_quoted(key + op + value))
            at += 1
        return path, f"/Shop.Message/{before}?" + "&".join(parameters)

    def told(self, answer):
        """What of an answer must be the same."""
        if answer.status >= 400:
            return answer.status, answer.json()["ErrorCode"]
        status = 200 if answer.status == 204 else answer.status
        return status, answer.headers["Svc-count"], answer.body or b"[]", answer.headers["Svc-total"]

    def test_random_requests(self):
        seen = {}
        for _ in range(1500):
            path, query = self.random_request()
            method = self.random.choice(["GET", "GET", "GET", "REPORT"])
            headers = self.random.choice([None, {"Prefer": "count=exact"}])
            first, second = (self.server.request(method, target, headers=headers) for target in (path, query))
            self.assertEqual(self.told(first), self.told(second), f"{path}\n{query}")
            if first.status == 200 and first.headers["Svc-pager"]:
                page, other = (self.get(answer.headers["Svc-pager"]) for answer in (first, second))
                self.assertEqual(self.told(page), self.told(other), f"{path}\n{query}")
            seen[first.status] = seen.get(first.status, 0) + 1
        for status, least in ((200, 300), (204, 100), (400, 100)):
            self.assertGreater(seen.get(status, 0), least, seen)


if __name__ == "__main__":
    unittest.main()

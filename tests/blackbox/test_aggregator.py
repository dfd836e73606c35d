"""Svc.Aggregator: a template filled with the results of local requests."""
import hashlib
import json
import unittest

import harness

PATH = "/Svc.Aggregator"


class AggregatorCase(harness.ServerCase):
    def aggregate(self, template, headers=None, target=PATH, method="GET"):
        return self.server.request(method, target, template, headers)

    def ck_error(self, answer, status, code, words):
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (status, code), answer)
        self.assertIn(words, answer.headers["Svc-info"])


class Templates(AggregatorCase):
    shares_server = True

    def populate(self):
        for name in ("Ada", "Grace", "Ida"):
            self.created("/Shop.Person", {"Name": name})

    def setUp(self):
        super().setUp()
        self.people = self.get("/Shop.Person").json()

    def test_results(self):
        template = {"All": "GET /Shop.Person", "Count": "REPORT /Shop.Person",
                    "Deep": [{"Names": "GET /person/Name>B/select=Name&order_desc=Name"}, "GET /Shop.Message"],
                    "None": "REPORT /Shop.Message"}
        answer = self.aggregate(template)
        self.assertEqual((answer.status, answer.headers["Svc-count"]), (200, "1"))
        self.assertEqual(answer.json(), [{
            "All": self.people, "Count": 3, "Deep": [{"Names": [{"Name": "Ida"}, {"Name": "Grace"}]}, []],
            "None": 0}])

    def test_everything_else_stays_as_written(self):
        text = ('{"Number":12345678901234567890.10,"E":1E+2,"\\u0041":"\\ud83d\\ude00\\/","Null":null,'
                '"Yes":true,"GET /Shop.Person":["get /Shop.Person","GET  /Shop.Person","POST /Shop.Person",'
                '"GET Shop.Person"," GET /Shop.Person","GET",""],"Empty":[{},[]]}')
        answer = self.aggregate(text)
        self.assertEqual((answer.status, answer.body.decode()), (200, f"[{text}]"))
        spaced = text.replace(",", " ,\n").replace(":", " : ")
        self.assertEqual(json.loads(self.aggregate(spaced).body), json.loads(f"[{spaced}]"))

    def test_arrays_of_objects(self):
        answer = self.aggregate([{"No": 1, "Count": "REPORT /Shop.Person"}, {"No": 2}])
        self.assertEqual(answer.json(), [{"No": 1, "Count": 3}, {"No": 2}])
        self.assertEqual(self.aggregate([]).status, 204)

    def test_escapes_in_requests(self):
        answer = self.aggregate('{"A":"GET \\/Shop.\\u0050erson\\/Name=Ada"}')
        self.assertEqual(answer.json(), [{"A": self.people[:1]}])

    def test_other_methods_and_formats(self):
        template = [{"No": 1, "Count": "REPORT /Shop.Person"}, {"No": 2}]
        self.assertEqual(self.aggregate(template, method="REPORT").json(), [{"Count": 2}])
        head = self.aggregate(template, method="HEAD")
        self.assertEqual((head.status, head.body), (200, b""))
        csv = self.aggregate(template, {"Accept": "text/csv"})
        self.assertEqual(csv.body, b"No,Count\r\n1,3\r\n2,\r\n")
        answer = self.aggregate(template, target=PATH + "/No=1/select=Count")
        self.assertEqual(answer.json(), [{"Count": 3}])
        people = self.aggregate({"P": "GET /Shop.Person"}, {"Accept": "application/json;indent=2"})
        self.assertEqual(people.json(), [{"P": self.people}])
        for method in ("PATCH", "PUT", "DELETE"):
            self.assertEqual(self.aggregate(template, method=method).headers["Allow"], "GET, POST, REPORT, HEAD")

    def test_posted(self):
        template = [{"No": 1, "Count": "REPORT /Shop.Person", "People": "GET /Shop.Person"}, {"No": 2}]
        for target in ("", "/_/limit=1", "/No=2", "/_/search=Grace"):
            asked = self.aggregate(template, target=PATH + target)
            posted = self.aggregate(template, target=PATH + target, method="POST")
            self.assertEqual((posted.status, posted.body), (200, asked.body), target)
        self.assertEqual(self.aggregate([], method="POST").body, b"[]")

    def test_it_is_listed(self):
        entry, = self.get("/Svc.AvailableResource/Name=Svc.Aggregator").json()
        self.assertEqual((entry["Kind"], entry["Methods"]), ("EntityResource", ["GET", "POST", "REPORT", "HEAD"]))

    def test_what_is_no_template(self):
        for body, code, words in (
                (None, "NoDataSource", "needs a body"), ("  ", "NoDataSource", "needs a body"),
                ("{", "FailedJsonDeserialization", "line 1"), ("7", "InvalidResourceEntity", "an object or"),
                ('"GET /Shop.Person"', "InvalidResourceEntity", "an object or"),
                ('["GET /Shop.Person"]', "InvalidResourceEntity", "an object or"),
                ('{"A":1,"A":2}', "FailedJsonDeserialization", "A")):
            self.ck_error(self.aggregate(body), 400, code, words)
        self.assertEqual(self.aggregate("{}", {"Content-Type": "text/plain"}).status, 415)

    def test_errors_name_the_place(self):
        for request, status, code, words in (
                ("GET /NoSuch", 404, "UnknownResource", "Svc could not locate"),
                ("REPORT /Shop.Person/Nme=1", 404, "UnknownProperty", "Name"),
                ("GET /Shop.Person/a/b/c/d", 400, "InvalidUriSyntax", "three parts"),
                ("GET /Shop.OrderPlaced", 405, "MethodNotAllowed", "does not support GET"),
                ("GET /Shop.Terms", 400, "WrongResourceKind", "binary"),
                ("GET /Svc.Aggregator", 508, "InfiniteLoopDetected", "by itself")):
            template = {"First": "GET /Shop.Person", "List": [1, {"Second": request}]}
            answer = self.aggregate(template)
            self.ck_error(answer, status, code, words)
            self.assertIn(f"List.1.Second: '{request}': ", answer.headers["Svc-info"])
            error, = self.get(answer.headers["ErrorInfo"]).json()
            self.assertEqual((error["ResourceName"], error["ErrorCode"]), ("Svc.Aggregator", code))

    def test_as_a_custom_payload(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"URI": PATH, "Body": {
                         "People": "REPORT /Shop.Person", "Who": "GET /Shop.Person/_/select=Name&limit=1"}})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        self.assertEqual(receiver.take().json(), [{"People": 3, "Who": [{"Name": "Ada"}]}])


class Bounds(AggregatorCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"AggregatedRequests": 3, "AnswerBytes": 65536}
        return config

    def test_requests(self):
        self.assertEqual(self.aggregate({"A": ["REPORT /Shop.Person"] * 3}).json(), [{"A": [0, 0, 0]}])
        self.ck_error(self.aggregate({"A": ["REPORT /Shop.Person"] * 4}), 413, "PayloadTooLarge",
                      "A.3: 'REPORT /Shop.Person': there are more requests")

    def test_bytes(self):
        self.created("/Shop.Message", {"Text": "x" * 30000})
        self.assertEqual(self.aggregate({"A": "GET /Shop.Message", "B": "GET /Shop.Message"}).status, 200)
        answer = self.aggregate({"A": "GET /Shop.Message", "B": ["GET /Shop.Message"] * 2})
        self.ck_error(answer, 413, "PayloadTooLarge", "B.1: 'GET /Shop.Message': the answer would be larger")
        self.created("/Shop.Message", {"Text": "x" * 40000})
        answer = self.aggregate({"A": "GET /Shop.Message"})
        self.ck_error(answer, 413, "PayloadTooLarge", "A: 'GET /Shop.Message': the answer would be larger")


class Depth(AggregatorCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"JsonDepth": 900})

    def test_depth(self):
        """An entity and a template, neither of which is too deep, but both together may be."""
        self.created("/Shop.Message", '{"A":' + "[" * 899 + '"[{[{"' + "]" * 899 + "}")
        for depth, status in ((97, 200), (98, 413), (899, 413)):
            template = '{"B":' + "[" * depth + '"GET /Shop.Message"' + "]" * depth + "}"
            for accept in ("application/json", "application/json;indent=1", "text/csv"):
                answer = self.aggregate(template, {"Accept": accept})
                self.assertEqual(answer.status, status, (depth, accept, answer))
        self.assertIn("nested more than 999 deep", answer.headers["Svc-info"])


class Keys(AggregatorCase):
    def make_config(self):
        def key(name, *resources):
            return {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(),
                    "AllowAccess": [{"Resources": list(resources), "Methods": ["GET"]}]}
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [key("clerk", "Svc.Aggregator", "Shop.Person"), key("other", "Shop.Person")]
        return config

    def test_requests_have_the_rights_of_the_caller(self):
        clerk, other = ({"Authorization": f"apikey {name}"} for name in ("clerk", "other"))
        template = {"Count": "REPORT /Shop.Person"}
        self.assertEqual(self.aggregate(template, clerk).json(), [{"Count": 0}])
        self.assertEqual(self.aggregate(template, other).status, 403)
        self.assertEqual(self.aggregate(template).status, 401)
        answer = self.aggregate(dict(template, Messages="GET /Shop.Message"), clerk)
        self.ck_error(answer, 403, "NotAuthorized", "Messages: 'GET /Shop.Message': ")


class BasePath(AggregatorCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), BasePath="/api")

    def test_local_requests_are_written_without_it(self):
        answer = self.aggregate({"Count": "REPORT /Shop.Person"}, target="/api" + PATH)
        self.assertEqual(answer.json(), [{"Count": 0}])
        self.created("/api/Svc.Admin.Webhook", {
            "Destination": "/Shop.Message", "EventSelector": "/Shop.OrderPlaced",
            "CustomPayloadRequest": {"URI": "/Svc.Echo/From=here"}})
        self.created("/api/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        answer = harness.wait_until(lambda: (a := self.get("/api/Shop.Message")).status == 200 and a,
                                    "the message is stored")
        self.assertEqual(answer.json()[0]["From"], "here")


if __name__ == "__main__":
    unittest.main()

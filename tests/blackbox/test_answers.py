"""What answers say besides the entities: codes of what is no request, links below a base path, tags, and what a
PATCH says that changes nothing."""
import http.client
import json
import resource
import unittest

import harness


def split(raw):
    """Status, header fields and body of one answer."""
    head, _, body = raw.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    return int(lines[0].split()[1]), dict(line.split(": ", 1) for line in lines[1:]), body


class Refusals(harness.ServerCase):
    """Bytes that never become a request: each kind has a code of its own, and none is stored."""

    config = dict(harness.load_config(harness.SHOP),
                  Limits={"UriBytes": 256, "HeaderBytes": 512, "BodyBytes": 1024, "HeaderSeconds": 1,
                          "BodySeconds": 1})

    def refused(self, data, status, code):
        answered, headers, body = split(self.server.raw(data))
        problem = json.loads(body)
        self.assertEqual((answered, problem["status"], problem["ErrorCode"]), (status, status, code), body)
        self.assertEqual(headers["Connection"], "close")
        self.assertEqual(headers["Svc-info"], problem["detail"])
        self.assertNotIn("ErrorInfo", headers)
        self.assertNotIn("instance", problem)

    def test_each_has_its_code(self):
        host = b"Host: x\r\n"
        for data, status, code in (
                (b"GET /" + b"x" * 300 + b" HTTP/1.1\r\n" + host + b"\r\n", 414, "UriTooLong"),
                (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"x" * 600 + b"\r\n\r\n", 431, "HeadersTooLarge"),
                (b"GET / HTTP/1.1\r\n" + host + b"X: y\r\n" * 101 + b"\r\n", 431, "HeadersTooLarge"),
                (b"GET / HTTP/1.1\r\n" + host + b"Expect: tea\r\n\r\n", 417, "ExpectationFailed"),
                (b"GET / HTTP/2.0\r\n" + host + b"\r\n", 505, "HttpVersionNotSupported"),
                (b"POST / HTTP/1.1\r\n" + host + b"Content-Length: 2000\r\n\r\n", 413, "PayloadTooLarge"),
                (b"POST / HTTP/1.1\r\n" + host + b"Transfer-Encoding: gzip, chunked\r\n\r\n", 501,
                 "UnsupportedContent"),
                (b"CONNECT a:80 HTTP/1.1\r\n" + host + b"\r\n", 501, "UnknownMethod"),
                (b"GET / HTTP/1.1\r\n\r\n", 400, "InvalidUriSyntax"),
                (b"GET / HTTP/1.1\r\n" + host + b"Authorization: a\r\nAuthorization: b\r\n\r\n", 400,
                 "InvalidUriSyntax"),
                # These come too slowly.
                (b"GET / HTTP/1.1\r\n", 408, "RequestTimeout"),
                (b"POST /Svc.Event HTTP/1.1\r\n" + host + b"Content-Length: 9\r\n\r\n", 408, "RequestTimeout")):
            with self.subTest(data=data[:60]):
                self.refused(data, status, code)
        self.assertEqual(self.server.request("REPORT", "/Svc.Admin.Error").json(), [{"Count": 0}])

    def test_a_method_that_is_unknown_makes_a_request(self):
        """The connection stays, its body is no request, and what it was is stored."""
        raw = self.server.raw(b"LOCK /Shop.Person HTTP/1.1\r\nHost: x\r\nContent-Length: 18\r\n\r\n"
                              b"GET / HTTP/1.1\r\n\r\n"
                              b"REPORT /Shop.Person HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        statuses = [int(part[:3]) for part in raw.split(b"HTTP/1.1 ")[1:]]
        self.assertEqual(statuses, [501, 200])
        error = self.get("/Svc.Admin.Error/ErrorCode=UnknownMethod").json()[0]
        self.assertEqual((error["Action"], error["Body"]), ("LOCK", "GET / HTTP/1.1\r\n\r\n"))


class BasePath(harness.ServerCase):
    """What clients follow as it stands carries the base path; what is specified relative to it does not."""

    config = dict(harness.load_config(harness.SHOP), BasePath="/api")

    def test_instance_link_and_location(self):
        answer = self.get("/api/nowhere")
        relative = answer.headers["ErrorInfo"]
        self.assertRegex(relative, r"^/Svc\.Admin\.Error/id=[0-9a-f-]{36}$")
        self.assertEqual(answer.json()["instance"], "/api" + relative)
        stored = self.get(answer.json()["instance"])
        self.assertEqual((stored.status, stored.json()[0]["Uri"]), (200, "/nowhere/_/_"))
        inserted = self.post("/api/Shop.Person", [{"Name": "Ann"}, {"Name": "Bob"}])
        self.assertIsNone(inserted.headers["Location"])
        page = self.get("/api/Shop.Person/_/limit=1")
        self.assertFalse(page.headers["Svc-pager"].startswith("/api"))
        self.assertEqual(page.headers["Link"].split(">")[0][1:].replace("%3E", ">"),
                         "/api" + page.headers["Svc-pager"].replace("%3E", ">"))
        one = self.post("/api/Shop.Person", {"Name": "Cid"})
        self.assertEqual(self.get(one.headers["Location"]).json()[0]["Name"], "Cid")
        event = self.post("/api/Svc.Event", {"Resource": "Shop.PersonCreated", "Payload": {"Name": "Dee"}})
        self.assertEqual(self.get(event.headers["Location"]).json()[0]["Payload"][0]["Name"], "Dee")

    def test_without_one_it_is_the_same(self):
        self.server.stop()
        self.server.config.pop("BasePath")
        self.server.write_config()
        self.server.start()
        answer = self.get("/nowhere")
        self.assertEqual(answer.json()["instance"], answer.headers["ErrorInfo"])


class Tags(harness.ServerCase):
    """Whatever holds one entity has an ETag, which the next request can name."""
    shares_server = True

    def tag_of(self, target):
        answer = self.get(target)
        self.assertEqual(len(answer.json()), 1, answer)
        return answer.headers["ETag"]

    def test_the_tag_of_a_change_is_that_of_a_get(self):
        for target, body in (("/Shop.Person", {"Name": "Ann"}), ("/Shop.Message", {"a": 1}),
                             ("/Svc.Admin.Resource", {"Name": "Lab.Rat", "Kind": "EntityResource"}),
                             ("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": [{"a": 1}, {"b": 2}]})):
            with self.subTest(target=target):
                answer = self.post(target, body)
                self.assertEqual(answer.status, 201)
                self.assertRegex(answer.headers["ETag"], r'^"\d+"$')
                self.assertEqual(answer.headers["ETag"], self.tag_of(answer.headers["Location"]))
                again = self.get(answer.headers["Location"], {"If-None-Match": answer.headers["ETag"]})
                self.assertEqual((again.status, again.body), (304, b""))

    def test_a_chain_of_changes_needs_no_get(self):
        answer = self.post("/Shop.Message", {"n": 0})
        place, tags = answer.headers["Location"], [answer.headers["ETag"]]
        for n in range(1, 5):
            method, body = ("PATCH", {"n": n}) if n % 2 else ("PUT", {"n": n})
            answer = self.server.request(method, place, body, {"If-Match": tags[-1]})
            self.assertEqual((answer.status, answer.json()[0]["n"]), (200, n))
            tags.append(answer.headers["ETag"])
        self.assertEqual(len(set(tags)), 5)
        self.assertEqual(self.server.request("DELETE", place, headers={"If-Match": tags[-2]}).status, 412)
        self.assertEqual(self.server.request("DELETE", place, headers={"If-Match": tags[-1]}).status, 200)

    def test_tags_outlive_a_restart(self):
        event = self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"a": 1}}).headers["Location"]
        person = self.post("/Shop.Person", {"Name": "Ann"}).headers["Location"]
        targets = (event, person, "/Svc.Admin.ErrorCode/Code=100", "/Svc.AvailableResource/Name=Shop.Person")
        before = [self.tag_of(target) for target in targets]
        self.server.kill()
        self.server.start()
        self.assertEqual([self.tag_of(target) for target in targets], before)

    @harness.apart
    def test_a_delivery_is_sent_again_once(self):
        receiver = self.receiver(lambda request: 500)
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Delivery={"RetrySchedule": []})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"a": 1}})
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Dead").status == 200, "it is dead")
        dead = self.tag_of("/Svc.Admin.Delivery")
        self.assertRegex(dead, r'^"[0-9a-f]{16}"$')
        self.assertEqual(self.get("/Svc.Admin.Delivery", {"If-None-Match": dead}).status, 304)
        for wrong in ('"0"', "W/" + dead):
            refused = self.server.request("PATCH", "/Svc.Admin.Delivery", {"State": "Pending"}, {"If-Match": wrong})
            self.assertEqual((refused.status, refused.json()["ErrorCode"]), (412, "PreconditionFailed"))
        sent = self.server.request("PATCH", "/Svc.Admin.Delivery", {"State": "Pending"}, {"If-Match": dead})
        self.assertEqual(sent.status, 200)
        self.assertRegex(sent.headers["ETag"], r'^"[0-9a-f]{16}"$')
        receiver.take()
        receiver.take()
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Dead").status == 200, "it is dead again")
        for method, body in (("PATCH", {"State": "Pending"}), ("DELETE", None)):
            late = self.server.request(method, "/Svc.Admin.Delivery", body, {"If-Match": dead})
            self.assertEqual(late.status, 412, method)
        self.assertEqual(self.server.request("PATCH", "/Svc.Admin.Delivery", [{"State": "Pending"}]).json()["ErrorCode"],
                         "DataSourceFormat")
        now = self.tag_of("/Svc.Admin.Delivery")
        self.assertEqual(self.server.request("DELETE", "/Svc.Admin.Delivery", headers={"If-Match": now}).json(),
                         [{"Count": 1}])


class NothingChanged(harness.ServerCase):
    """A PATCH that changes nothing writes nothing, but a secret that is written is a change."""

    def serial(self):
        """ObjectNo of an entity that is made for this."""
        return self.created("/Shop.Message", {})["ObjectNo"]

    def test_nothing_is_written(self):
        place = self.post("/Shop.Person", {"Name": "Ann", "Age": 4}).headers["Location"]
        before = self.serial()
        for body in ({}, {"Age": 4}, {"name": "Ann", "Email": None}, {"Id": "x"}):
            self.assertEqual(self.server.request("PATCH", place, body).status, 200)
        self.assertEqual(self.serial(), before + 1)
        self.server.request("PATCH", place, {"Age": 5})
        self.assertGreater(self.serial(), before + 2)

    def test_a_declaration_that_stays_is_not_put_in_force_again(self):
        place = self.post("/Svc.Admin.Resource", {"Name": "Lab.Rat", "Kind": "EntityResource"}).headers["Location"]
        tag = self.get(place).headers["ETag"]
        self.assertEqual(self.server.request("PATCH", place, {"Kind": "entityresource"}).headers["ETag"], tag)
        self.assertEqual(self.get(place).headers["ETag"], tag)

    def test_what_an_older_declaration_made_is_compared_as_it_is_shown(self):
        declared = self.post("/Svc.Admin.Resource", {"Name": "Lab.Rat", "Kind": "EntityResource",
                                                     "Properties": [{"Name": "A", "Type": "string"}]})
        place = self.post("/Lab.Rat", {"A": "x"}).headers["Location"]
        self.server.request("PATCH", declared.headers["Location"],
                            {"Properties": [{"Name": "A", "Type": "string"}, {"Name": "B", "Type": "string"}]})
        tag = self.get(place).headers["ETag"]
        self.assertEqual(self.server.request("PATCH", place, {"A": "x"}).headers["ETag"], tag)
        changed = self.server.request("PATCH", place, {"B": "y"})
        self.assertNotEqual(changed.headers["ETag"], tag)
        self.assertEqual(changed.headers["ETag"], self.get(place).headers["ETag"])

    def test_a_secret_is_a_change_equal_or_not(self):
        hook = self.post("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:9/", "EventSelector": "/OrderPlaced",
                                                "Headers": {"Authorization": "Bearer x", "X-Plain": "y"}})
        place, tag = hook.headers["Location"], hook.headers["ETag"]
        for body in ({}, {"IsPaused": False}, {"Headers": {"X-Plain": "y"}}, {"Headers": {"Authorization": "*******"}}):
            self.assertEqual(self.server.request("PATCH", place, body).headers["ETag"], tag, body)
        tags = [self.server.request("PATCH", place, {"Headers": {"Authorization": value}}).headers["ETag"]
                for value in ("Bearer x", "Bearer x", "Bearer z")]
        self.assertEqual(len({tag, *tags}), 4)

    def test_no_event_is_raised(self):
        self.created("/Svc.Admin.Resource", [{"Name": "Lab.Rat", "Kind": "EntityResource",
                                              "Events": {"Updated": "Lab.RatChanged"}},
                                             {"Name": "Lab.RatChanged", "Kind": "EventResource"}])
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Lab.RatChanged")
        place = self.post("/Lab.Rat", {"n": 1}).headers["Location"]
        self.server.request("PATCH", place, {"n": 1})
        self.server.request("PATCH", place, {"n": 2})
        self.assertEqual([rat["n"] for rat in receiver.take().json()], [2])
        self.assertEqual(self.server.request("REPORT", "/Svc.Event/Resource=Lab.RatChanged").json(), [{"Count": 1}])


class NoNewFile(harness.ServerCase):
    """The journal gets no file to go on in: 507, which does not tell where it is."""

    config = dict(harness.load_config(harness.SHOP), SegmentBytes=65536)

    def test_the_directory_stays_unsaid(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=harness.DEADLINE_S)
        self.addCleanup(connection.close)

        def post():
            connection.request("POST", "/Shop.Message", json.dumps({"Text": "x" * 20000}))
            response = connection.getresponse()
            return response.status, response.headers, response.read()

        self.assertEqual(post()[0], 201)
        pid = self.server.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
        for _ in range(50):
            status, headers, body = post()
            if status != 201:
                break
        problem = json.loads(body)
        self.assertEqual((status, problem["ErrorCode"]), (507, "StorageFailure"))
        for text in (problem["detail"], headers["Svc-info"]):
            self.assertNotIn(self.server.directory, text)
            self.assertIn("cannot open journal-", text)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        harness.wait_until(lambda: post()[0] == 201, "there is room again")
        self.assertTrue(any(self.server.data in line and "cannot open" in line for line in self.server.log))


class LocalHead(harness.ServerCase):
    """HEAD has no body, nor has its entry in the log, also where the service asks itself."""

    def test_nothing_is_logged(self):
        self.created("/Shop.Person", {"Name": "Ann"})
        self.webhook(Destination="/Shop.Person", Method="HEAD", EventSelector="/OrderPlaced", Label="head")
        self.webhook(Destination="/Shop.Person", Method="GET", EventSelector="/OrderPlaced", Label="get")
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        harness.wait_until(lambda: len((self.get("/Svc.Admin.WebhookLog").body or b"[]")) > 2
                           and len(self.get("/Svc.Admin.WebhookLog").json()) == 2, "both have asked")
        bodies = {entry["Method"]: (entry["IsSuccess"], entry["ResponseBody"])
                  for entry in self.get("/Svc.Admin.WebhookLog").json()}
        self.assertEqual(bodies["HEAD"][0], True)
        self.assertIn(bodies["HEAD"][1], ("", None))
        self.assertIn("Ann", bodies["GET"][1])


class Userinfo(harness.ServerCase):
    """A destination with a user name and password is refused, and shown nowhere."""

    def test_it_is_masked(self):
        for body in ({"Destination": "http://ann:hush@receiver.example/", "EventSelector": "/OrderPlaced"},
                     {"Destination": "https://ann:hush@receiver.example/a?b", "EventSelector": "/nowhere"},
                     {"Destination": 5, "Label": "http://ann:hush@receiver.example/"}):
            answer = self.post("/Svc.Admin.Webhook", body)
            self.assertEqual(answer.status, 400)
            error = self.get(answer.headers["ErrorInfo"])
            self.assertNotIn(b"hush", answer.body + error.body)
            self.assertIn("//*******@receiver.example/", error.json()[0]["Body"])
        broken = self.post("/Svc.Admin.Webhook", b'{"Destination":"http://ann:hush@receiver.example/",')
        self.assertNotIn(b"hush", broken.body + self.get(broken.headers["ErrorInfo"]).body)


class Methods(harness.ServerCase):
    """Methods are stored in capitals, whoever declares them."""

    config = dict(harness.load_config(harness.SHOP),
                  Resources=[{"Name": "Lab.Rat", "Kind": "EntityResource", "Methods": ["get", "Post"]},
                             {"Name": "Lab.Born", "Kind": "EventResource"}])

    def test_they_are_in_capitals(self):
        self.created("/Svc.Admin.Resource", {"Name": "Lab.Cat", "Kind": "EntityResource", "Methods": ["patch", "get"]})
        self.server.request("PUT", "/Svc.Admin.Resource/Name=Lab.Dog",
                            {"Name": "Lab.Dog", "Kind": "EntityResource", "Methods": ["delete"]})
        self.created("/Svc.Admin.ApiKey", {"Name": "k", "AllowAccess": [{"Resources": ["*"], "Methods": ["get", "*"]}]})
        hook = self.webhook(Destination="http://127.0.0.1:9/", Method="put", EventSelector="/Born")
        listed = self.get("/Svc.Admin.Resource/Name>Lab.C&Name<Lac/select=Name,Methods&order_asc=Name").json()
        self.assertEqual(listed, [{"Name": "Lab.Cat", "Methods": ["PATCH", "GET"]},
                                  {"Name": "Lab.Dog", "Methods": ["DELETE"]},
                                  {"Name": "Lab.Rat", "Methods": ["GET", "POST"]}])
        self.assertEqual(self.get("/Svc.Admin.ApiKey").json()[0]["AllowAccess"][0]["Methods"], ["GET", "*"])
        self.assertEqual(hook["Method"], "PUT")
        for bad in ("BREW", 5, None, ""):
            refused = self.post("/Svc.Admin.Resource", {"Name": "Lab.Ox", "Kind": "EntityResource", "Methods": [bad]})
            self.assertEqual(refused.status, 400, bad)


if __name__ == "__main__":
    unittest.main()

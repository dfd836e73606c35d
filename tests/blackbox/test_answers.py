"""What answers say besides the entities: codes of what is no request, and where they lead below a base path."""
import json
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


if __name__ == "__main__":
    unittest.main()

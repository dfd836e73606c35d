"""What browsers, and whoever gets them to ask, may and may not do."""
import base64
import hashlib
import unittest

import harness

KEY = "admin-key"
ADMIN = {"Authorization": f"apikey {KEY}"}
CROSS_SITE = {"Sec-Fetch-Site": "cross-site"}
BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
PERSON = {"Name": "Ada"}


def key(name, secret, *access):
    return {"Name": name, "KeySha256": hashlib.sha256(secret.encode()).hexdigest(),
            "AllowAccess": [{"Resources": resources, "Methods": methods}
                            for resources, methods in access]}


class WithoutKeys(harness.ServerCase):
    """Nobody needs a key: then no page of another site may act."""

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Hosts=["svc.example", "fd00::5"],
                    AllowedCorsOrigins=["https://app.example"])

    def persons(self):
        return self.server.request("REPORT", "/Shop.Person").json()[0]["Count"]

    def status(self, method="GET", **headers):
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        body = PERSON if method == "POST" else None
        return self.server.request(method, "/Shop.Person", body, headers).status

    def asked_as(self, host):
        """The status of a request that was sent to that name."""
        answer = self.server.raw(b"GET /Shop.Person HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                                 % host)
        return int(answer.split()[1])

    def test_a_page_of_another_site_may_not_act(self):
        for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, CROSS_SITE,
                        {"Origin": "http://localhost:3000"}, {"Origin": "http://evil.example:80"}):
            self.assertEqual(self.server.request("POST", "/Shop.Person", PERSON, headers).status, 403,
                             headers)
            self.assertEqual(self.get("/Shop.Person", headers).status, 403, headers)
        # A form or a script needs no preflight for this one.
        blob = self.server.request("POST", "/Shop.Person", PERSON,
                                   {"Origin": "https://evil.example", "Content-Type": "text/plain"})
        self.assertEqual(blob.status, 403)
        self.assertEqual(self.persons(), 0)
        self.assertEqual(self.get("/Svc.Admin.Error").status, 204, "nothing is stored")

    def test_pages_of_its_own_and_those_allowed_may(self):
        own = f"http://127.0.0.1:{self.server.port}"
        for origin in (own, own.replace("http:", "https:"), "https://app.example"):
            self.assertEqual(self.status("POST", Origin=origin), 201, origin)
        self.assertEqual(self.status(Sec_Fetch_Site="same-origin"), 200)
        self.assertEqual(self.status(Sec_Fetch_Site="none"), 200)
        self.assertEqual(self.status(Origin="https://app.example", Sec_Fetch_Site="cross-site"), 200)

    def test_no_other_name_leads_here(self):
        for host in (b"evil.example", b"evil.example:8080", b"10.0.0.1", b"localhost.evil.example",
                     b"127.0.0.1.evil.example", b"[fd00::6]:80", b"svc.example.evil", b"xlocalhost"):
            self.assertEqual(self.asked_as(host), 403, host)
        for host in (b"localhost", b"LOCALHOST:1", b"127.0.0.1", b"127.1.2.3:99", b"[::1]:5",
                     b"a.localhost", b"svc.example", b"SVC.example:443", b"[fd00::5]"):
            self.assertEqual(self.asked_as(host), 204, host)
        # The name in the request line is the one that counts.
        answer = self.server.raw(b"GET http://evil.example/Shop.Person HTTP/1.1\r\nHost: localhost\r\n"
                                 b"Connection: close\r\n\r\n")
        self.assertEqual(int(answer.split()[1]), 403)
        # A page that was loaded under another name is of its own origin there.
        answer = self.server.raw(b"POST /Shop.Person HTTP/1.1\r\nHost: evil.example\r\n"
                                 b"Origin: http://evil.example\r\nConnection: close\r\n"
                                 b"Content-Length: 2\r\n\r\n{}")
        self.assertEqual(int(answer.split()[1]), 403)

    def test_bytes_are_no_page(self):
        self.created("/Svc.Admin.Resource", {
            "Name": "Shop.Page", "Kind": "BinaryResource", "ContentType": "text/html",
            "Content": base64.b64encode(b"<script>alert(1)</script>").decode()})
        for target in ("/Shop.Page", "/Svc.Health", "/Svc.Metrics"):
            answer = self.get(target)
            self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff", target)
            self.assertEqual(answer.headers["Content-Security-Policy"], "sandbox", target)

    def test_a_browser_gets_json_to_be_read(self):
        answer = self.get("/Svc.AvailableResource/Name=Svc.Echo/select=Name", {"Accept": BROWSER})
        self.assertEqual(answer.body, b'[\n  {\n    "Name": "Svc.Echo"\n  }\n]')
        answer = self.get("/nowhere", {"Accept": BROWSER})
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertTrue(answer.body.startswith(b'{\n  "type": "about:blank",\n'), answer)

    def test_a_spreadsheet_runs_nothing(self):
        self.created("/Shop.Person", {"Name": "=HYPERLINK(\"http://evil.example\")"})
        answer = self.get("/Shop.Person/_/select=Name", {"Accept": "text/csv"})
        self.assertEqual(answer.body, b'Name\r\n"\'=HYPERLINK(""http://evil.example"")"\r\n')
        self.assertEqual(answer.headers["Content-Type"], "text/csv; charset=utf-8")
        self.assertEqual(answer.headers["Content-Disposition"],
                         'attachment; filename="Shop.Person.csv"')

    def test_csv_in_a_delivery_is_as_it_is(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.PersonCreated",
                     Headers={"Content-Type": "text/csv"})
        self.created("/Shop.Person", {"Name": "=1+1"})
        self.assertIn(b",=1+1,", receiver.take().body)


class WithKeys(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True,
                    AllowedCorsOrigins=["https://app.example"], ApiKeys=[
                        key("admin", KEY, (["*"], ["*"])),
                        key("patcher", "patch-key", (["Shop.Person"], ["PATCH"]))])

    def test_options_tell_nothing_to_who_has_no_key(self):
        for target in ("/Person", "/Shop.Person", "/nowhere"):
            self.assertEqual(self.server.request("OPTIONS", target).status, 401, target)
        answer = self.server.request("OPTIONS", "/Shop.Person", headers=ADMIN)
        self.assertEqual(answer.json()[0]["Resource"], "Shop.Person")

    def test_a_preflight_is_the_same_whatever_it_names(self):
        headers = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
        answers = []
        for target in ("/Shop.Person", "/nowhere", "/Person/%zz/a/b/c"):
            answer = self.server.request("OPTIONS", target, headers=headers)
            answers.append((answer.status, answer.body, answer.headers["Access-Control-Allow-Methods"],
                            answer.headers["Access-Control-Allow-Origin"]))
        self.assertEqual(answers[0][0], 200)
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        headers["Origin"] = "https://evil.example"
        self.assertEqual(self.server.request("OPTIONS", "/Shop.Person", headers=headers).status, 401)

    def test_who_may_not_get_is_shown_nothing(self):
        self.created("/Shop.Person", {"Name": "Ada", "Email": "ada@example.com"}, ADMIN)
        patch = {"Authorization": "apikey patch-key"}
        answer = self.server.request("PATCH", "/Shop.Person/_/unsafe=true", {}, patch)
        self.assertEqual((answer.status, answer.body), (200, b""))
        answer = self.server.request("PATCH", "/Shop.Person/_/unsafe=true", {}, ADMIN)
        self.assertEqual(answer.json()[0]["Name"], "Ada")

    def test_with_a_key_any_page_may_ask_but_not_read(self):
        answer = self.get("/Shop.Person", dict(ADMIN, Origin="https://evil.example", **CROSS_SITE))
        self.assertEqual(answer.status, 204)
        self.assertIsNone(answer.headers["Access-Control-Allow-Origin"])
        self.assertIn("Origin", answer.headers["Vary"])

    def test_a_browser_can_ask_its_user(self):
        offered = self.get("/Shop.Person", {"Accept": BROWSER}).headers.get_all("WWW-Authenticate")
        self.assertEqual(offered, ['apikey realm="Svc"', 'Basic realm="Svc"'])
        self.assertEqual(self.get("/").headers.get_all("WWW-Authenticate"), ['apikey realm="Svc"'])


class Probes(harness.ServerCase):
    """Paths that every server is asked for."""

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, BasePath="/hooks",
                    ApiKeys=[key("admin", KEY, (["*"], ["*"]))])

    def settle(self):
        pass

    def test_the_console_opens_no_password_box(self):
        """However its address is written."""
        for target in ("/hooks", "/hooks/", "/hooks/Svc.Console/", "/hooks/svc.console", "/hooks/SVC.CONSOLE/"):
            answer = self.get(target, {"Accept": BROWSER})
            self.assertEqual((answer.status, answer.headers["Location"]), (302, "/hooks/Svc.Console"), target)
        self.assertEqual(self.get("/hooks/", {"Accept": BROWSER}).headers["Vary"], "Accept")
        self.assertEqual(self.get("/hooks/Svc.Console", {"Accept": BROWSER}).status, 200)
        self.assertEqual(self.get("/hooks/Svc.Console/none.js", {"Accept": BROWSER}).status, 404)
        self.assertEqual(self.get("/hooks/Svc.Consoles", {"Accept": BROWSER}).status, 401)

    def test_they_need_no_key_and_store_nothing(self):
        self.assertEqual(self.get("/hooks/livez").body, b"ok\n")
        self.assertEqual(self.get("/hooks/readyz").status, 200)
        self.assertEqual(self.get("/hooks/readyz?leader").status, 200)
        self.assertEqual(self.get("/hooks/favicon.ico").status, 204)
        self.assertEqual(self.get("/favicon.ico").status, 204, "where browsers look")
        self.assertIn(b"Disallow: /", self.get("/robots.txt").body)
        self.assertIn(b"Disallow: /", self.get("/hooks/robots.txt").body)
        self.assertEqual(self.server.request("HEAD", "/hooks/livez").status, 200)
        for method in ("POST", "DELETE", "OPTIONS", "REPORT"):
            answer = self.server.request(method, "/hooks/livez")
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, "GET, HEAD"), method)
        for target in ("/livez", "/hooks/LIVEZ", "/hooks/livez/", "/hooks//livez"):
            self.assertNotEqual(self.get(target, ADMIN).status, 200, target)
        errors = self.get("/hooks/Svc.Admin.Error", ADMIN).json()
        self.assertEqual(len(errors), 4, "those of the other targets alone")


if __name__ == "__main__":
    unittest.main()

"""Pages: Svc-pager and Link lead through all entities, each once."""
import re
import unittest

import harness


class Paging(harness.ServerCase):
    def test_following_the_pager(self):
        numbers = list(range(25))
        self.post("/Shop.Message", [{"No": number} for number in numbers])
        for header in ("Svc-pager", "Link"):
            target, seen = "/Shop.Message/No>=3&No<23/limit=7&order_desc=No", []
            while target:
                answer = self.get(target)
                self.assertEqual(answer.status, 200, answer)
                seen += [entity["No"] for entity in answer.json()]
                target = answer.headers[header]
                if header == "Link" and target:
                    target = re.fullmatch(r'<([^<>]*)>; rel="next"', target).group(1)
            self.assertEqual(seen, sorted(numbers[3:23], reverse=True), header)

    def pages(self, target, between=lambda number: None):
        """The entities of all pages."""
        number = 0
        while target:
            answer = self.get(target)
            self.assertIn(answer.status, (200, 204), answer)
            yield from answer.json() if answer.status == 200 else []
            target = answer.headers["Svc-pager"]
            number += 1
            between(number)

    def test_what_comes_and_goes_repeats_and_hides_nothing(self):
        self.post("/Shop.Message", [{"No": number, "Group": number % 3} for number in range(1000)])

        def between(page):
            self.server.request("DELETE", f"/Shop.Message/No>={page * 10}&No<{page * 10 + 3}/unsafe=true")
            self.post("/Shop.Message", {"No": 2000 + page, "Group": 1})
        seen = [entity["No"] for entity in self.pages("/Shop.Message/_/limit=50&select=No", between)]
        self.assertEqual(seen, sorted(set(seen)))
        there = {entity["No"] for entity in self.get("/Shop.Message").json()}
        gone = {number for page in range(1, 40) for number in range(page * 10, page * 10 + 3)}
        self.assertLessEqual(set(range(1000)) - gone, set(seen))
        self.assertLessEqual({number for number in there if number < 2000}, set(seen))
        self.assertGreater(max(seen), 2000)

    def test_events_and_errors_page_by_their_number_too(self):
        for first in range(0, 60, 20):
            self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                     for number in range(first, first + 20)])
        numbers = [entity["Payload"][0]["No"] for entity in self.pages("/Svc.Event/_/limit=7&select=Payload")]
        self.assertEqual(numbers, list(range(60)))
        self.assertRegex(self.get("/Svc.Event/_/limit=7").headers["Svc-pager"], r"^/Svc.Event/ObjectNo>\d+/limit=7$")
        for number in range(12):
            self.get(f"/nothing{number}")
        uris = [entity["Uri"] for entity in self.pages("/Svc.Admin.Error/Uri!=null/limit=5&select=Uri")]
        self.assertEqual(uris, [f"/nothing{number}/_/_" for number in range(12)])

    def test_the_last_events_are_at_hand(self):
        """Without going over all that are kept, so that nothing gives way to others; and those of one resource, or
        tenant, behind very many of another."""
        self.created("/Svc.Admin.Resource", {"Name": "Shop.OrderShipped", "Kind": "EventResource"})
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": n}, "Tenant": "acme" if n % 2 else None}
                                 for n in range(20)])
        count = 10000 if harness.is_sanitized() else 30000
        for first in range(0, count, 1000):
            self.post("/Svc.Event", [{"Resource": "Shop.OrderShipped", "Payload": {"No": n}}
                                     for n in range(first, first + 1000)])

        def given_way():
            return [line for line in self.get("/Svc.Metrics").body.decode().splitlines()
                    if line.startswith("svc_requests_given_way_total ")]
        before, last = given_way(), self.get("/Svc.Event/_/offset=-1").json()[0]["ObjectNo"]
        for target, numbers in (
                ("/_/offset=-3", [count - 3, count - 2, count - 1]), ("/_/offset=-3&limit=1", [count - 3]),
                (f"/Payload.0.No!={count - 1}/offset=-2", [count - 3, count - 2])):
            found = self.get("/Svc.Event" + target).json()
            self.assertEqual([e["Payload"][0]["No"] for e in found], numbers, target)
        self.assertEqual(given_way(), before)
        for target, numbers in (
                (f"/ObjectNo>{last - 2}/offset=-9", [count - 2, count - 1]),
                ("/Resource=Shop.OrderPlaced/offset=-2", [18, 19]), ("/Tenant=acme/offset=-2", [17, 19]),
                ("/Tenant=acme&Payload.0.No<9/offset=-1", [7]), ("/Resource=Shop.OrderPlaced/limit=2", [0, 1])):
            found = self.get("/Svc.Event" + target).json()
            self.assertEqual([e["Payload"][0]["No"] for e in found], numbers, target)
        report = self.server.request("REPORT", "/Svc.Event/Resource=Shop.OrderPlaced/offset=-50")
        self.assertEqual(report.json(), [{"Count": 20}])

    def test_deliveries_are_listed_otherwise(self):
        for _ in range(2):
            self.webhook(Destination=self.receiver().url(), EventSelector="/Shop.OrderPlaced")
        self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}} for number in range(5)])
        pager = self.get("/Svc.Admin.Delivery/_/limit=3").headers["Svc-pager"]
        self.assertEqual(pager, "/Svc.Admin.Delivery/_/limit=3&offset=3")
        self.assertEqual(len(list(self.pages("/Svc.Admin.Delivery/_/limit=3"))), 10)

    def test_totals(self):
        self.post("/Shop.Message", [{"No": number, "Text": "x" * (number % 7)} for number in range(700)])
        exact = {"Prefer": "count=exact"}
        for target, count, total in (
                ("/_/limit=10", 10, 700), ("/No<100/limit=10", 10, 100), ("/Text.Length=3", 100, 100),
                ("/_/select=Text&distinct=true&limit=2", 2, 7), ("/No>=690/offset=5", 5, 10),
                ("/No>=600/order_desc=No&limit=1", 1, 100), ("/No=5/limit=0", 0, 1)):
            answer = self.get("/Shop.Message" + target, exact)
            self.assertEqual((answer.headers["Svc-count"], answer.headers["Svc-total"]), (str(count), str(total)), target)
            self.assertEqual(answer.headers["Preference-Applied"], "count=exact")
        self.assertIsNone(self.get("/Shop.Message/_/limit=1").headers["Svc-total"])

    def test_a_total_of_very_many_gives_way_to_others(self):
        count = 10000 if harness.is_sanitized() else 30000
        for first in range(0, count, 5000):
            self.post("/Shop.Message", [{"No": number} for number in range(first, first + 5000)], {"Prefer": "return=minimal"})
        answer = self.get("/Shop.Message/No>=10/limit=2&offset=1", {"Prefer": "count=exact"})
        self.assertEqual((answer.headers["Svc-total"], [entity["No"] for entity in answer.json()]), (str(count - 10), [11, 12]))
        answer = self.get(f"/Shop.Message/No>={count - 1000}/limit=2&select=No")
        last = self.get(answer.headers["Svc-pager"])
        self.assertEqual([entity["No"] for entity in last.json()], [count - 998, count - 997])

    def test_no_pager_on_the_last_page(self):
        self.post("/Shop.Message", [{"No": 1}, {"No": 2}])
        self.assertIsNone(self.get("/Shop.Message/_/limit=2").headers["Svc-pager"])
        self.assertIsNone(self.get("/Shop.Message/_/limit=-1").headers["Svc-pager"])


class BelowABasePath(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), BasePath="/api")

    def settle(self):
        """Nothing is delivered here."""

    def test_location_and_link_have_it_and_pager_and_error_info_do_not(self):
        answer = self.post("/api/Shop.Message", {"No": 1})
        self.assertEqual(self.get(answer.headers["Location"]).json()[0]["No"], 1)
        self.post("/api/Shop.Message", {"No": 2})
        answer = self.get("/api/Shop.Message/_/limit=1")
        pager = answer.headers["Svc-pager"]
        self.assertEqual(answer.headers["Link"], f'</api{pager.replace(">", "%3E")}>; rel="next"')
        self.assertEqual(self.get("/api" + pager).json()[0]["No"], 2)
        info = self.get("/api/Nothing").headers["ErrorInfo"]
        self.assertRegex(info, "^/Svc.Admin.Error/id=")
        self.assertEqual(self.get("/api" + info).json()[0]["ErrorCode"], "UnknownResource")
        self.assertEqual(self.get("/Shop.Message").json()["ErrorCode"], "InvalidUriSyntax")


if __name__ == "__main__":
    unittest.main()

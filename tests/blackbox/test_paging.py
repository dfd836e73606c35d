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
        self.assertEqual(answer.headers["Link"], f'</api{pager}>; rel="next"')
        self.assertEqual(self.get("/api" + pager).json()[0]["No"], 2)
        info = self.get("/api/Nothing").headers["ErrorInfo"]
        self.assertRegex(info, "^/Svc.Admin.Error/id=")
        self.assertEqual(self.get("/api" + info).json()[0]["ErrorCode"], "UnknownResource")
        self.assertEqual(self.get("/Shop.Message").json()["ErrorCode"], "InvalidUriSyntax")


if __name__ == "__main__":
    unittest.main()

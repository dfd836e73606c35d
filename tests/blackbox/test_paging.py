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


if __name__ == "__main__":
    unittest.main()

"""Changes of many entities at once: POST with safepost, and what one request may write."""
import random
import unittest

import harness

MESSAGE = "/Shop.Message"


class Safepost(harness.ServerCase):
    """Shop.Message declares no properties and no indexes: what is stored is found in one pass."""

    def test_any_sequence_of_inputs_is_as_if_sent_one_by_one(self):
        draw = random.Random(7)
        expected = {}
        for _ in range(12):
            inputs = [{"Key": draw.choice([1, 2, 3, "1", None, True]), draw.choice("abc"): number}
                      for number in range(draw.randrange(1, 8))]
            answer = self.server.request("POST", MESSAGE + "/_/safepost=Key", inputs)
            new = 0
            for entity in inputs:
                key = repr(entity["Key"])
                new += key not in expected
                expected.setdefault(key, {}).update(entity)
            self.assertEqual(answer.status, 201 if new else 200, answer)
            shown = {repr(entity["Key"]): entity for entity in answer.json()}
            self.assertEqual(len(shown), len(answer.json()), "each entity once")
            stored = {repr(entity["Key"]): entity for entity in self.get(MESSAGE).json()}
            self.assertEqual({key: stored[key] for key in shown}, shown)
            self.assertEqual({key: {name: value for name, value in entity.items()
                                    if name not in ("Id", "ObjectNo")}
                              for key, entity in stored.items()}, expected)

    def test_of_a_bad_input_nothing_stays(self):
        self.post(MESSAGE, {"Key": 1, "a": 1})
        answer = self.server.request("POST", MESSAGE + "/_/safepost=Key",
                                     [{"Key": 1, "a": 2}, {"Key": 2}, {"Key": [1]}])
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidResourceEntity"))
        self.assertIn("entity 2", answer.json()["detail"])
        self.assertEqual([entity["a"] for entity in self.get(MESSAGE).json()], [1])


class ChangeBytes(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"ChangeBytes": 65536})

    def test_a_small_body_that_would_change_too_much_changes_nothing(self):
        self.post(MESSAGE, [{"No": number} for number in range(100)])
        for method, target, body in (
                ("PATCH", MESSAGE + "/_/unsafe=true", {"Text": "x" * 1000}),
                ("POST", MESSAGE + "/_/safepost=No",
                 [{"No": 0, f"Name{number}": "x" * 100} for number in range(100)])):
            answer = self.server.request(method, target, body, {"Prefer": "return=minimal"})
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (413, "PayloadTooLarge"))
            self.assertIn("ChangeBytes", answer.json()["detail"])
            self.assertEqual(self.get(MESSAGE + "/_/select=Text&distinct=true").json(),
                             [{"Text": None}])
        metrics = self.get("/Svc.Metrics").body.decode()
        self.assertRegex(metrics, r'svc_limit_hits_total\{limit="ChangeBytes"\} 2\n')
        answer = self.server.request("PATCH", MESSAGE + "/_/unsafe=true&limit=50",
                                     {"Text": "x" * 1000})
        self.assertEqual(answer.status, 200, answer)


if __name__ == "__main__":
    unittest.main()

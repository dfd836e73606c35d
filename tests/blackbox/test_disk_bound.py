"""Rewriting one entity for ever: the directory stays under twice the live data plus two segments, and one that
is kept for cleaning when what is alive would nearly fill a segment."""
import os
import unittest

import harness

SEGMENT = 65536


class DiskBound(harness.ServerCase):
    entities = 0  # of about a kilobyte each
    kept = 0

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), SegmentBytes=SEGMENT, Fsync="no")

    def size(self):
        total = 0
        for entry in os.scandir(self.server.data):
            if entry.name.startswith("journal-"):
                try:
                    total += entry.stat().st_size
                except FileNotFoundError:
                    pass  # it was dropped meanwhile
        return total

    def rewrite(self, times):
        for number in range(self.entities):
            self.created("/Shop.Message", {"No": number, "Text": "x" * 880})
        live = self.entities * 1000
        for change in range(times):
            answer = self.server.request("PATCH", "/Shop.Message/No=0", {"Change": change})
            self.assertEqual(answer.status, 200, answer)
            self.assertLess(self.size(), 2 * live + 2 * SEGMENT + self.kept, f"after {change} changes")
        kept = self.get("/Shop.Message/_/select=No&order_asc=No").json()
        self.assertEqual([entity["No"] for entity in kept], list(range(self.entities)))


class Little(DiskBound):
    entities = 10

    def test_it(self):
        self.rewrite(400)


class HalfASegment(DiskBound):
    entities = 50
    kept = SEGMENT

    def test_it(self):
        self.rewrite(600)


class Several(DiskBound):
    entities = 160

    def test_it(self):
        self.rewrite(650)


if __name__ == "__main__":
    unittest.main()

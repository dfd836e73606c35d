"""svc-journal, and what a server says of a damaged journal."""
import glob
import json
import os
import subprocess
import unittest

import harness

TOOL = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=60, check=False)


class Journal(harness.ServerCase):
    def entities(self, count):
        return [self.created("/Shop.Message", {"No": number}) for number in range(count)]

    def damage(self, needle):
        """Flips a bit of the first occurrence in the first segment; returns file and offset."""
        path = sorted(glob.glob(os.path.join(self.server.data, "*.seg")))[0]
        with open(path, "r+b") as file:
            place = file.read().index(needle)
            file.seek(place)
            file.write(bytes([needle[0] ^ 1]))
        return path, place

    def test_verify_and_dump(self):
        entities = self.entities(20)
        for running in (True, False):
            result = tool("verify", self.server.data)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("ok: ", result.stdout)
            lines = tool("dump", self.server.data).stdout.splitlines()
            records = [json.loads(line)["record"] for line in lines]
            stored = [r["json"] for r in records
                      if r["kind"] == "entity" and r["resource"] == "Shop.Message"]
            self.assertEqual(stored, entities)
            if running:
                self.server.kill()
        self.server.start()

    def test_damage_in_the_middle_refuses_to_start(self):
        self.entities(20)
        self.server.kill()
        path, place = self.damage(b'"No":7')
        result = tool("verify", self.server.data)
        self.assertEqual(result.returncode, 1)
        self.assertIn(path, result.stderr)
        with self.assertRaises(AssertionError) as refused:
            self.server.start()
        self.assertEqual(self.server.process.wait(timeout=10), 2)
        self.assertIn(os.path.basename(path), str(refused.exception))
        self.assertRegex(str(refused.exception), r"offset \d+")
        self.assertGreater(place, 4096)

    def test_a_renumbered_segment(self):
        self.entities(1)
        self.server.kill()
        path = sorted(glob.glob(os.path.join(self.server.data, "*.seg")))[0]
        other = path.replace("1.seg", "2.seg")
        os.rename(path, other)
        self.assertEqual(tool("verify", self.server.data).returncode, 1)
        with self.assertRaises(AssertionError):
            self.server.start()
        os.rename(other, path)
        with open(other, "wb"):
            pass
        result = tool("verify", self.server.data)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("blank", result.stderr)
        self.server.start()

    def test_output_that_cannot_be_written(self):
        self.entities(5)
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TOOL, "dump", self.server.data], stdout=full,
                                    stderr=subprocess.PIPE, timeout=60, check=False)
        self.assertEqual(result.returncode, 2)

    def test_usage(self):
        self.assertEqual(tool().returncode, 2)
        self.assertEqual(tool("verify", "/does/not/exist").returncode, 2)
        self.assertEqual(tool("nonsense", self.server.data).returncode, 2)


if __name__ == "__main__":
    unittest.main()

"""svc-journal, and what a server says of a damaged journal."""
import glob
import json
import os
import shutil
import subprocess
import threading
import unittest

import harness

TOOL = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)


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
        self.assertEqual(self.server.process.wait(timeout=harness.DEADLINE_S), 2)
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

    def test_dump_by_serial_and_kind(self):
        entities = self.entities(5)
        self.server.request("DELETE", f"/Shop.Message/Id={entities[0]['Id']}")
        gone = tool("dump", "--kind", "entity-gone", self.server.data).stdout.splitlines()
        self.assertEqual([json.loads(line)["record"]["id"] for line in gone], [entities[0]["Id"]])
        last = entities[-1]["ObjectNo"]
        lines = tool("dump", "--from", str(last), self.server.data).stdout.splitlines()
        self.assertEqual([json.loads(line)["serial"] for line in lines], [last, last + 1])
        self.assertEqual(tool("dump", "--kind", "nonsense", self.server.data).returncode, 2)

    def large(self):
        """Entities that fill three segments. Returns how many."""
        for number in range(80):
            answer = self.post("/Shop.Message", {"No": number, "Text": "x" * 31250}, {"Prefer": "return=minimal"})
            self.assertEqual(answer.status, 201, answer)
        return 80

    def all_numbers(self):
        answer = self.get("/Shop.Message/_/select=No")
        return [] if answer.status == 204 else [entity["No"] for entity in answer.json()]

    def test_repair_keeps_what_is_before_the_damage(self):
        count = self.large()
        self.server.kill()
        segments = sorted(glob.glob(os.path.join(self.server.data, "*.seg")))
        self.assertGreaterEqual(len(segments), 3)
        with open(segments[1], "r+b") as file:
            content = file.read()
            place = content.index(b'"Text":"xx', 9 << 16)
            file.seek(place + 20)
            file.write(b"y")
        whole = {path: open(path, "rb").read() for path in segments[1:]}
        before = tool("repair", self.server.data)
        self.assertEqual(before.returncode, 1)
        self.assertIn(os.path.basename(segments[1]), before.stderr)
        self.assertIn("nothing was changed", before.stdout)
        self.assertEqual(sorted(glob.glob(os.path.join(self.server.data, "*.seg"))), segments)
        result = tool("repair", "--cut", self.server.data)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        aside = glob.glob(os.path.join(self.server.data, "damaged-*"))[0]
        for path, content in whole.items():
            with open(os.path.join(aside, os.path.basename(path)), "rb") as file:
                self.assertEqual(file.read(), content, path)
        self.assertIn("nothing to repair", tool("repair", self.server.data).stdout)
        self.server.start()
        kept = self.all_numbers()
        self.assertEqual(kept, list(range(len(kept))))
        self.assertGreater(len(kept), 30)
        self.assertLess(len(kept), count)

    def test_repair_of_a_missing_segment(self):
        self.large()
        self.server.kill()
        segments = sorted(glob.glob(os.path.join(self.server.data, "*.seg")))
        os.unlink(segments[1])
        result = tool("repair", "--cut", self.server.data)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("is missing", result.stderr)
        self.assertEqual(sorted(glob.glob(os.path.join(self.server.data, "*.seg"))), segments[:1])
        self.server.start()
        self.assertGreater(len(self.all_numbers()), 25)

    def test_repair_of_a_journal_in_use(self):
        self.entities(1)
        result = tool("repair", self.server.data)
        self.assertEqual(result.returncode, 2)
        self.assertIn("in use", result.stderr)

    def backup(self, name):
        target = os.path.join(self.server.directory, name)
        result = tool("backup", self.server.data, target)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertIn("ok: ", result.stdout)
        return target

    def restore(self, target):
        self.server.kill()
        shutil.rmtree(self.server.data)
        shutil.copytree(target, self.server.data)
        self.server.start()

    def test_a_backup_of_a_running_server(self):
        """Everything acknowledged before the command began is in it, and what is in it is a prefix."""
        stop = threading.Event()
        acknowledged = []

        def write():
            while not stop.is_set():
                number = len(acknowledged)
                self.created("/Shop.Message", {"No": number, "Text": "x" * 5000})
                acknowledged.append(number)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            backups = []
            for name in ("a", "b", "c"):
                harness.wait_until(lambda: len(acknowledged) > 200 * (len(backups) + 1), "writes")
                before = len(acknowledged)
                backups.append((self.backup(name), before))
        finally:
            stop.set()
            writer.join()
        for target, before in backups:
            self.assertEqual(tool("verify", target).returncode, 0)
            self.restore(target)
            kept = self.all_numbers()
            self.assertEqual(kept, list(range(len(kept))))
            self.assertGreaterEqual(len(kept), before)

    def test_a_backup_does_not_overwrite(self):
        self.entities(3)
        target = self.backup("a")
        again = tool("backup", self.server.data, target)
        self.assertEqual(again.returncode, 2)
        self.assertIn("already", again.stderr)

    def test_output_that_cannot_be_written(self):
        self.entities(5)
        with open("/dev/full", "w", encoding="utf-8") as full:
            result = subprocess.run([TOOL, "dump", self.server.data], stdout=full,
                                    stderr=subprocess.PIPE, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(result.returncode, 2)

    def test_usage(self):
        self.assertEqual(tool().returncode, 2)
        self.assertEqual(tool("verify", "/does/not/exist").returncode, 2)
        self.assertEqual(tool("nonsense", self.server.data).returncode, 2)


if __name__ == "__main__":
    unittest.main()

"""A disk that is full, on a small file system of its own: changes are 507, reads and deletions go on, and deletions
make room again without a restart."""
import os
import subprocess
import unittest

import harness

MIB = 1 << 20


def try_mount(directory, size):
    """Needs the right to mount, as a container may not have it."""
    return subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", directory],
                          capture_output=True, check=False).returncode == 0


class SmallDisk(harness.ServerCase):
    disk = 64 * MIB
    segment = None
    note = "x" * 20000

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        if self.segment:
            config["SegmentBytes"] = self.segment
        return config

    def prepare(self):
        os.mkdir(self.server.data, 0o700)
        if not try_mount(self.server.data, self.disk):
            self.skipTest("no right to mount a file system")
        self.addCleanup(self.unmount, self.server.data)

    def unmount(self, directory):
        if self.server.process and self.server.process.poll() is None:
            self.server.kill()
        subprocess.run(["umount", directory], check=True)

    def fill(self, first=0):
        """Until there is no room for another. Returns how many there were."""
        for count in range(1000000):
            answer = self.post("/Shop.Message", {"No": first + count, "Text": self.note})
            if answer.status == 507:
                self.assertEqual(answer.json()["ErrorCode"], "StorageFailure")
                return count
            self.assertEqual(answer.status, 201, answer)
        raise AssertionError("the disk is never full")

    def delete(self, conditions, count):
        answer = self.server.request("DELETE", f"/Shop.Message/{conditions}")
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Svc-info"].split()[0], str(count))

    def finds_room(self, what=None):
        return harness.wait_until(
            lambda: self.post("/Shop.Message", what or {"No": -1, "Text": self.note}).status == 201,
            "there is room again")

    def health(self):
        answer = self.get("/Svc.Health")
        return answer.status, answer.json().get("Reasons")


class OldestSegment(SmallDisk):
    disk = 16 * MIB
    segment = 4 * MIB

    def test_all_of_it_and_more_is_deleted(self):
        count = self.fill()
        self.assertEqual(self.health(), (503, ["the disk is full"]))
        self.assertEqual(self.get("/Shop.Message/No=0/select=No").json(), [{"No": 0}])
        self.delete("No<250/unsafe=true", 250)
        harness.wait_until(lambda: self.health()[0] == 200, "it is well again")
        self.finds_room()
        kept = self.get(f"/Shop.Message/No>=250&No<{count}/select=No,Text&order_asc=No").json()
        self.assertEqual([note["No"] for note in kept], list(range(250, count)))
        self.assertEqual({note["Text"] for note in kept}, {self.note})
        self.assertGreater(self.fill(), 225)


class OneByOne(SmallDisk):
    disk = 8 * MIB
    segment = MIB

    def test_each_deletion_makes_room(self):
        """Anywhere in the journal: what is deleted is soon free again, many times over."""
        count = self.fill()
        for number in range(3, count, 7):
            self.delete(f"No={number}", 1)
            self.delete(f"No={number - 1}", 1)
            self.finds_room({"No": number, "Text": self.note[:15000]})
        self.assertEqual(self.server.request("REPORT", "/Shop.Message").status, 200)

    def test_all_are_deleted_one_after_the_other(self):
        count = self.fill()
        for number in range(count):
            self.delete(f"No={number}", 1)
        self.finds_room()
        self.assertGreater(self.fill(), count * 8 // 10)

    def test_a_restart_finds_it_full(self):
        count = self.fill()
        self.server.kill()
        self.server.start()
        self.assertLess(self.fill(first=1000000), count // 10)
        self.delete(f"No<{count // 3}/unsafe=true", count // 3)
        self.finds_room()

    def test_killed_while_it_cleans(self):
        count = self.fill()
        for round_ in range(6):
            first, last = count * round_ // 8, count * (round_ + 1) // 8
            self.delete(f"No>={first}&No<{last}/unsafe=true", last - first)
            self.server.kill()
            self.server.start()
            kept = self.server.request("REPORT", f"/Shop.Message/No>={last}").json()
            self.assertEqual(kept, [{"Count": count - last}])
        self.finds_room()


class Deliveries(SmallDisk):
    disk = 6 * MIB
    segment = MIB

    def make_config(self):
        return dict(super().make_config(), Retention={"WebhookLogEntries": 50, "Errors": 20})

    def test_outcomes_errors_and_retention_go_on(self):
        """Nothing of it stops the process: what has no room waits, what failed is tried again."""
        is_open = False
        receiver = self.receiver(lambda request: 200 if is_open else 503)
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     Delivery={"RetrySchedule": [0.05] * 8 + [1] * 24})
        for number in range(30):
            answer = self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": number}})
            self.assertEqual(answer.status, 201, answer)
        count = self.fill()
        for _ in range(30):
            self.assertEqual(self.get("/Shop.Nothing").status, 404)
        is_open = True
        self.delete(f"No<{count // 2}/unsafe=true", count // 2)
        self.finds_room()
        harness.wait_until(lambda: self.server.request(
            "REPORT", "/Svc.Admin.Delivery/State=Delivered").json() == [{"Count": 30}], "all are delivered")
        harness.wait_until(lambda: self.server.request(
            "REPORT", "/Svc.Admin.WebhookLog").json()[0]["Count"] <= 50, "the log is cut")


if __name__ == "__main__":
    unittest.main()

"""Requests whose conditions no index settles: they give way to others, and answer as if they did
not."""
import json
import random
import signal
import socket
import struct
import threading
import unittest

import harness

MESSAGE = "/Shop.Message"
ENTITIES = 20000
HEAD = b"%s %s HTTP/1.1\r\nHost: x\r\n\r\n"


class ScanCase(harness.ServerCase):
    keeps_connections = False
    entities = ENTITIES
    scan_entities = 20
    shutdown_seconds = 20
    client_seconds = 1  # a scan may take longer than a client may: that is not the client's time

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"ScanEntities": self.scan_entities, "ShutdownSeconds": self.shutdown_seconds,
                            "IdleSeconds": self.client_seconds, "HeaderSeconds": self.client_seconds}
        return config

    def populate(self):
        for first in range(0, self.entities, 5000):
            answer = self.post(MESSAGE, [{"N": n, "Mark": n % 7} for n in range(first, min(first + 5000, self.entities))],
                               {"Prefer": "return=minimal"})
            self.assertEqual(answer.status, 201, answer)

    def metric(self, name):
        for line in self.get("/Svc.Metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(f"no {name}")

    def connect(self):
        connection = socket.create_connection(("127.0.0.1", self.server.port),
                                              timeout=harness.DEADLINE_S)
        self.addCleanup(connection.close)
        return connection

    def ask(self, target, method=b"GET"):
        connection = self.connect()
        connection.sendall(HEAD % (method, target.encode()))
        return connection

    def until_open(self, least, most):
        harness.wait_until(lambda: least <= self.metric("svc_scans_open") <= most, "open scans")


class BesideWriters(ScanCase):
    """Somebody gives entities marks from 3 to 6, one at a time, while those with other marks are all
    changed, and then some with 3 deleted: whoever comes first, the outcome is the same."""
    scan_entities = 2
    scans = 4

    def scan(self):
        for mark in range(3):
            self.patched.append(self.server.request(
                "PATCH", f"{MESSAGE}/Mark={mark}/unsafe=true", {"Mark": -1 - mark}))
        self.deletion_is_sent = True
        self.deleted = self.server.request("DELETE", f"{MESSAGE}/Mark=3&N<9000/unsafe=true")

    def write(self, entity_id, mark):
        after = self.deletion_is_sent
        answer = self.server.request("PATCH", f"{MESSAGE}/Id={entity_id}", {"Mark": mark})
        if answer.status == 200:
            self.written[entity_id] = (mark, after or self.deletion_is_sent)
        else:
            self.assertEqual(answer.status, 404)
            self.assertTrue(self.deletion_is_sent)

    def check_patched(self, before):
        for mark, answer in enumerate(self.patched):
            self.assertEqual(answer.status, 200)
            self.assertEqual({entity["Mark"] for entity in answer.json()}, {-1 - mark})
            had_it = {i for i, entity in before.items() if entity["Mark"] == mark}
            changed = {entity["Id"] for entity in answer.json()}
            self.assertLessEqual(changed, had_it)
            self.assertLessEqual(had_it - changed, set(self.written))

    def check_deleted(self, before, expected, after):
        gone = set(before) - set(after)
        self.assertEqual(self.deleted.json(), [{"Count": len(gone)}])
        for i in gone:
            self.assertTrue(expected[i] == 3 and before[i]["N"] < 9000, before[i])
        for i, entity in after.items():
            if entity["Mark"] == 3 and entity["N"] < 9000:
                self.assertTrue(self.written[i][1], "it has got the mark later")

    def test_it_is_as_if_one_came_after_the_other(self):
        before = {entity["Id"]: entity for entity in self.get(MESSAGE).json()}
        ids, draw = list(before), random.Random(5)
        self.written, self.patched, self.deletion_is_sent = {}, [], False
        scanner = threading.Thread(target=self.scan)
        scanner.start()
        while scanner.is_alive():
            self.write(draw.choice(ids), draw.randrange(3, 7))
        scanner.join()
        # One would be served in front of each scan, even if none gave way.
        self.assertGreater(len(self.written), self.scans + 1, "others are served in between")
        after = {entity["Id"]: entity for entity in self.get(MESSAGE).json()}
        expected = {i: self.written[i][0] if i in self.written else
                    entity["Mark"] if entity["Mark"] >= 3 else -1 - entity["Mark"]
                    for i, entity in before.items()}
        self.assertEqual({i: entity["Mark"] for i, entity in after.items()},
                         {i: expected[i] for i in after})
        self.check_patched(before)
        self.check_deleted(before, expected, after)
        self.assertGreater(self.metric("svc_scan_slices_total"), 1000)


class Answers(ScanCase):
    shares_server = True

    def test_what_no_one_changes_is_exact(self):
        entities = self.get(MESSAGE).json()

        def shown(condition):
            return [entity for entity in entities if condition(entity)]

        for target, expected in (
                ("/Mark=3", shown(lambda e: e["Mark"] == 3)),
                ("/Mark=3/limit=7", shown(lambda e: e["Mark"] == 3)[:7]),
                ("/Mark=3/offset=-7", shown(lambda e: e["Mark"] == 3)[-7:]),
                ("/Mark=3/order_desc=N&limit=9", shown(lambda e: e["Mark"] == 3)[:-10:-1]),
                ("/N>19990&Mark!=3", shown(lambda e: e["N"] > 19990 and e["Mark"] != 3)),
                ("/_/search=1234", shown(lambda e: "1234" in json.dumps(e, separators=(",", ":"))))):
            answer = self.get(MESSAGE + target)
            self.assertEqual(answer.json(), expected, target)
            self.assertEqual(answer.headers["Svc-count"], str(len(expected)))
            report = self.server.request("REPORT", MESSAGE + target)
            self.assertEqual(report.json(), [{"Count": len(expected)}], target)

    def test_the_last_ones_are_looked_at_first(self):
        """Where few are looked at, none of these gives way."""
        entities = self.get(MESSAGE).json()
        self.look_at_few(entities)
        before = self.metric("svc_requests_given_way_total")
        # And those that do.
        for target, expected in (
                ("/Mark=1/offset=-90", [e for e in entities if e["Mark"] == 1][-90:]),
                ("/N<30&Mark=1/offset=-2", [e for e in entities if e["N"] < 30 and e["Mark"] == 1][-2:]),
                (f"/ObjectNo>{entities[-9]['ObjectNo']}&Mark=1/offset=-9",
                 [e for e in entities[-8:] if e["Mark"] == 1])):
            self.assertEqual(self.get(MESSAGE + target).json(), expected, target)
        self.assertGreater(self.metric("svc_requests_given_way_total"), before)

    def look_at_few(self, entities):
        """On a busy machine one that has looked at none may have had its time: then all are asked again."""
        few = (("/_/offset=-3", entities[-3:]), ("/_/offset=-3&limit=1", entities[-3:-2]),
               ("/Mark!=9/offset=-2", entities[-2:]),
               (f"/ObjectNo>{entities[-3]['ObjectNo']}/offset=-9", entities[-2:]),
               ("/_/offset=-2&search=Mark", entities[-2:]),
               ("/Mark=1/offset=-2&select=N", [{"N": e["N"]} for e in entities if e["Mark"] == 1][-2:]))
        gave_way = []
        for _ in range(10):
            before = self.metric("svc_requests_given_way_total")
            for target, expected in few:
                self.assertEqual(self.get(MESSAGE + target).json(), expected, target)
            gave_way.append(self.metric("svc_requests_given_way_total") - before)
            if gave_way[-1] == 0:
                return
        self.fail(f"of few entities requests gave way: {gave_way}")

    def test_answers_come_in_order(self):
        requests = [b"/N=19999", b"/_/limit=1", b"/Mark=1/limit=3000&select=N", b"/N=0", b"/N=19998"]
        connection = self.connect()
        connection.sendall(b"".join(HEAD % (b"GET", MESSAGE.encode() + part) for part in requests[:4])
                           + b"GET " + MESSAGE.encode() + requests[4]
                           + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        with connection.makefile("rb") as stream:
            answers = stream.read().split(b"HTTP/1.1 ")[1:]
        self.assertEqual([answer[:3] for answer in answers], [b"200"] * 5)
        self.assertEqual([json.loads(answer.partition(b"\r\n\r\n")[2])[0]["N"] for answer in answers],
                         [19999, 0, 1, 0, 19998])

    def test_a_request_counts_once(self):
        errors = self.server.request("REPORT", "/Svc.Admin.Error").json()[0]["Count"]
        self.assertEqual(self.server.request("PATCH", MESSAGE + "/N=-1", {"N": 1}).status, 404)
        self.assertEqual(self.server.request("REPORT", "/Svc.Admin.Error").json(),
                         [{"Count": errors + 1}])
        self.assertEqual(self.metric('svc_requests_total{method="PATCH",status="404"}'), 1)


class Ends(ScanCase):
    scan_entities = 1

    def test_a_client_that_goes_away_ends_its_scan(self):
        connections = [self.ask(MESSAGE + "/N=-1") for _ in range(40)]
        self.until_open(30, 40)
        staying = connections[:4]
        for connection in staying[:2]:
            connection.shutdown(socket.SHUT_WR)  # says no more, but is answered
        for connection in connections[4:]:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()
        self.until_open(0, 4)
        # A slice looks at two.
        self.assertLess(self.metric("svc_scan_slices_total"), 36 * ENTITIES / 2, "they went to no end")
        for connection in staying:
            with connection.makefile("rb") as stream:
                self.assertTrue(stream.readline().startswith(b"HTTP/1.1 204 "))
        self.until_open(0, 0)


class Drained(ScanCase):
    entities = 1000
    scan_entities = 1
    shutdown_seconds = 600  # all of the scans, on a slow machine
    client_seconds = 600  # all connections, until the last one's request

    def test_a_drain_answers_what_is_under_way(self):
        """What a server finds when it goes on is first the requests, then the signal."""
        connections = [self.connect() for _ in range(30)]
        for connection in connections:
            connection.sendall(HEAD % (b"GET", b"/Svc.Echo"))
            self.assertTrue(connection.recv(65536).startswith(b"HTTP/1.1 20"))
        self.server.process.send_signal(signal.SIGSTOP)
        for connection in connections:
            connection.sendall(HEAD % (b"GET", MESSAGE.encode() + b"/N=999"))
        self.server.process.terminate()
        self.server.process.send_signal(signal.SIGCONT)
        for connection in connections:
            with connection.makefile("rb") as stream:
                answer = stream.read()
            self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), answer[:200])
            self.assertIn(b"Connection: close", answer)
        self.assertEqual(self.server.process.wait(harness.DEADLINE_S), 0)


class Late(ScanCase):
    scan_entities = 1
    shutdown_seconds = 1

    def test_a_drain_ends_when_its_time_is_over(self):
        connections = [self.ask(MESSAGE + "/N=-1") for _ in range(200)]
        self.until_open(100, 200)
        self.server.process.terminate()
        self.assertEqual(self.server.process.wait(harness.DEADLINE_S), 0)
        for connection in connections:
            with connection.makefile("rb") as stream:
                stream.read()


if __name__ == "__main__":
    unittest.main()

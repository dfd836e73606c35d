"""Svc.Admin.Backup, and what `svc-journal restore` makes of it."""
import hashlib
import http.client
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import threading
import time

import harness

TOOL = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
TARGET = "/Svc.Admin.Backup"


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)


def dumped(directory):
    """The records of a journal, as they are, by serial."""
    result = tool("dump", directory)
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return {line["serial"]: line["record"] for line in lines}


class Backup(harness.ServerCase):
    def setUp(self):
        super().setUp()
        self.file = os.path.join(self.server.directory, "backup")
        self.restored = os.path.join(self.server.directory, "restored")

    def write(self, body):
        with open(self.file, "wb") as file:
            file.write(body)

    def take(self, headers=None):
        answer = self.get(TARGET, headers)
        self.assertEqual(answer.status, 200, answer)
        self.write(answer.body)
        return answer

    def restore(self):
        result = tool("restore", self.file, self.restored)
        self.assertEqual(result.returncode, 0, result.stderr)
        return int(re.search(r"up to serial (\d+)", result.stdout).group(1))

    def refused(self, *says, status=1):
        """Restoring is refused by name, and leaves nothing."""
        result = tool("restore", self.file, self.restored)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        for text in (self.file, *says):
            self.assertIn(text, result.stderr)
        self.assertFalse(os.path.exists(self.restored))
        self.assertFalse(os.path.exists(self.restored + ".restoring"))
        return result.stderr

    def digest_of_restored(self):
        other = harness.Server(self.server.config)
        self.addCleanup(other.remove)
        shutil.copytree(self.restored, other.data)
        other.start()
        digest = other.digest()
        self.assertEqual(other.stop(), 0)
        return digest

    def metric(self, name):
        text = self.get("/Svc.Metrics").body.decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE).group(1))

    def wait_for_backups(self, count):
        harness.wait_until(lambda: self.metric("svc_backups_open") == count, f"{count} backups are open")

    def slow_client(self, headers=""):
        """Has asked, reads nothing, and takes little at once."""
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(harness.DEADLINE_S)
        connection.connect(("127.0.0.1", self.server.port))
        self.addCleanup(connection.close)
        connection.sendall(f"GET {TARGET} HTTP/1.1\r\nHost: x\r\n{headers}\r\n".encode())
        return connection

    @staticmethod
    def rest_of(connection):
        """The body, or what came of it."""
        response = http.client.HTTPResponse(connection)
        response.begin()
        length = int(response.headers["Content-Length"])
        try:
            return length, response.read()
        except http.client.IncompleteRead as cut:
            return length, cut.partial
        except ConnectionResetError:
            return length, b""

    def large(self, count, size=500000):
        """Returns their ids."""
        for number in range(count):
            answer = self.post("/Shop.Message", {"No": number, "Text": "x" * size}, {"Prefer": "return=minimal"})
            self.assertEqual(answer.status, 201, answer)
        return [entity["Id"] for entity in self.get("/Shop.Message/_/select=Id").json()]


class Whole(Backup):
    def test_what_is_restored_is_the_state(self):
        self.webhook(Destination="http://127.0.0.1:9/", EventSelector="/PersonCreated/Name=nobody", Signing={})
        self.created("/Shop.Person", {"Name": "Ada", "Email": "ada@example.com"})
        self.large(8)  # of which a segment takes two
        self.settle()
        answer = self.take()
        self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
        self.assertEqual(answer.headers["Cache-Control"], "no-store")
        self.assertEqual(int(answer.headers["Content-Length"]), len(answer.body))
        result = tool("verify", self.file)
        self.assertEqual(result.returncode, 0, result.stderr)
        serial = self.restore()
        self.assertIn(f"svcd-{serial}.backup", answer.headers["Content-Disposition"])
        self.assertEqual(os.stat(self.restored).st_mode & 0o777, 0o700)
        for name in os.listdir(self.restored):
            self.assertEqual(os.stat(os.path.join(self.restored, name)).st_mode & 0o777, 0o600)
        self.assertGreaterEqual(len(os.listdir(self.restored)), 4)
        self.assertEqual(dumped(self.restored), dumped(self.server.data))
        digest = self.server.digest()
        self.assertEqual(self.digest_of_restored(), digest)

    def test_the_file_is_what_the_documents_say(self):
        """Read by docs/operations/backup.md alone."""
        self.large(3)
        body = self.take().body
        magic, version, count, _, number, serial, size, _ = struct.unpack_from("<8sII16sQQQQ", body)
        self.assertEqual((magic, version, size), (b"SVCBKUP\n", 1, len(body)))
        at = 64
        for _ in range(count):
            found, length = struct.unpack_from("<QQ", body, at)
            self.assertEqual(found, number)
            path = os.path.join(self.server.data, f"journal-{number:016x}.seg")
            with open(path, "rb") as file:
                self.assertEqual(body[at + 16:at + 16 + length], file.read(length))
            at += 16 + length
            number += 1
        self.assertEqual(body[at:at + 8], b"SVCBKEN\n")
        self.assertEqual(body[at + 8:], hashlib.sha256(body[:at]).digest())
        self.assertEqual(max(dumped(self.server.data)), serial)

    def test_during_writes_it_is_the_state_at_one_serial(self):
        stop, writes, acknowledged = threading.Event(), threading.Event(), []

        def insert():
            while writes.wait() and not stop.is_set():
                entity = self.created("/Shop.Message", {"No": len(acknowledged), "Text": "x" * 20000})
                acknowledged.append(entity["ObjectNo"])
        writer = threading.Thread(target=insert)
        writer.start()
        try:
            for _ in range(5):
                before = len(acknowledged)
                writes.set()
                harness.wait_until(lambda: len(acknowledged) > before + 5, "the writer goes on")
                shutil.rmtree(self.restored, ignore_errors=True)
                before = len(acknowledged)
                self.take()
                writes.clear()  # the slower the machine, the more there would be to compare
                serial = self.restore()
                if before:
                    self.assertGreaterEqual(serial, acknowledged[before - 1], "what was acknowledged is in it")
                restored = dumped(self.restored)
                everything = dumped(self.server.data)
                self.assertEqual(restored, {n: record for n, record in everything.items() if n <= serial})
        finally:
            stop.set()
            writes.set()
            writer.join()
        self.digest_of_restored()  # it starts

    def test_head_says_how_long_it_is(self):
        self.large(1)
        answer = self.server.request("HEAD", TARGET)
        self.assertEqual((answer.status, answer.body), (200, b""))
        self.assertEqual(answer.headers["Content-Length"], self.take().headers["Content-Length"])
        self.wait_for_backups(0)

    def test_http10_and_a_client_that_sends_no_more(self):
        self.large(4)
        for request in (b"GET " + TARGET.encode() + b" HTTP/1.0\r\n\r\n",
                        b"GET " + TARGET.encode() + b" HTTP/1.1\r\nHost: x\r\n\r\n"):
            answer = self.server.raw(request, half_close=True)
            self.write(answer.split(b"\r\n\r\n", 1)[1])
            self.restore()
            shutil.rmtree(self.restored)

    def test_a_journal_without_records(self):
        body = self.take().body
        if struct.unpack_from("<I", body, 12)[0] > 0:
            return  # something was stored when it started
        self.restore()
        self.assertEqual(os.listdir(self.restored), [])

    def test_the_restored_can_be_backed_up(self):
        self.large(2)
        self.take()
        self.restore()
        first = dumped(self.restored)
        digest = self.server.digest()
        self.server.kill()
        shutil.rmtree(self.server.data)
        os.rename(self.restored, self.server.data)
        self.server.start()
        self.assertEqual(self.server.digest(), digest)
        self.take()
        self.restore()
        self.assertEqual(dumped(self.restored), first)


class Refused(Backup):
    def test_cut_off(self):
        self.large(40)
        connection = self.slow_client()
        part = connection.recv(65536).split(b"\r\n\r\n", 1)[1]
        while len(part) < 500000:
            part += connection.recv(65536)
        connection.close()
        self.wait_for_backups(0)
        self.server.wait_for_line("closed by its client")
        self.write(part)
        self.assertIn(f"{len(part)} bytes of", self.refused("cut off"))
        for n in (64, 100):
            self.write(part[:n])
            self.refused("cut off")
        for n in (0, 5, 63):
            self.write(part[:n])
            self.refused(status=2)

    def test_damaged(self):
        self.large(1)
        whole = self.take().body
        places = {0: "no backup file", 9: "version 513", 12: "SHA-256", 48: "bytes of", 70: "SHA-256",
                  64 + 16 + 5000: "SHA-256", len(whole) - 40: "SHA-256", len(whole) - 1: "SHA-256"}
        for place, says in places.items():
            damaged = bytearray(whole)
            damaged[place] ^= 2
            self.write(damaged)
            self.refused(says, status=2 if place < 12 else 1)
            self.assertNotEqual(tool("verify", self.file).returncode, 0)
        self.write(whole + b"x")
        self.refused("damaged", f"{len(whole) + 1} bytes of {len(whole)}")

    def test_records_that_are_damaged_under_a_good_digest(self):
        """As if the disk of the server had been damaged before."""
        self.created("/Shop.Message", {"Text": "needle"})
        self.large(3, 1000)
        damaged = bytearray(self.take().body[:-40])
        damaged[damaged.index(b"needle")] ^= 1
        self.write(damaged + b"SVCBKEN\n" + hashlib.sha256(damaged).digest())
        result = tool("restore", self.file, self.restored)
        self.assertNotEqual(result.returncode, 0)
        self.assertRegex(result.stderr, r"\.seg.*offset \d+")
        self.assertFalse(os.path.exists(self.restored) or os.path.exists(self.restored + ".restoring"))

    def test_a_target_that_is_not_empty(self):
        self.take()
        os.mkdir(self.restored)
        with open(os.path.join(self.restored, "mine"), "w", encoding="ascii"):
            pass
        result = tool("restore", self.file, self.restored)
        self.assertEqual(result.returncode, 2)
        self.assertIn("not empty", result.stderr)
        self.assertEqual(os.listdir(self.restored), ["mine"])
        os.unlink(os.path.join(self.restored, "mine"))
        os.mkdir(self.restored + ".restoring")
        result = tool("restore", self.file, self.restored)
        self.assertEqual(result.returncode, 2)
        self.assertIn(".restoring", result.stderr)
        os.rmdir(self.restored + ".restoring")
        self.restore()

    def test_methods_and_conditions(self):
        self.assertEqual(self.server.request("REPORT", TARGET).status, 405)
        self.assertEqual(self.server.request("DELETE", TARGET).status, 405)
        self.assertEqual(self.get(TARGET + "/Id=1").status, 400)
        self.assertEqual(self.get(TARGET + "/_/limit=1").status, 400)
        self.assertEqual(self.post("/Svc.Aggregator", {"Copy": f"GET {TARGET}"}).status, 400)

    def test_the_service_does_not_send_it_to_itself(self):
        for member, asks in {"Destination": {"Destination": TARGET, "Method": "GET"},
                             "CustomPayloadRequest": {"CustomPayloadRequest": {"URI": TARGET}}}.items():
            answer = self.post("/Svc.Admin.Webhook", {"Destination": "http://127.0.0.1:1/",
                                                      "EventSelector": "/PersonCreated", **asks})
            self.assertEqual(answer.status, 400, answer)
            self.assertIn(f"{member}: 'Svc.Admin.Backup' is sent to clients only, over HTTP", answer.json()["detail"])


class Rights(Backup):
    def make_config(self):
        def key(name, resources, tenant=None, methods=("*",)):
            return {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(), "Tenant": tenant,
                    "AllowAccess": [{"Resources": resources, "Methods": list(methods)}]}
        return {"RequireApiKey": True,
                "ApiKeys": [key("all", ["*"]), key("backup", ["Svc.Admin.Backup"]), key("other", ["Svc.Event"]),
                            key("acme", ["*"], "acme"), key("acme-backup", ["Svc.Admin.Backup"], "acme"),
                            key("reads-all", ["*"], methods=["GET"]), key("admin", ["Svc.Admin.*"]),
                            key("reads-backup", ["svc.admin.backup"], methods=["GET"])]}

    def settle(self):
        pass

    def test_who_may(self):
        for name, status in {"all": 200, "backup": 200, "other": 403, "acme": 403, "acme-backup": 403,
                             "reads-all": 403, "admin": 403, "reads-backup": 200, "nobody": 401}.items():
            for method in ("GET", "HEAD"):
                answer = self.server.request(method, TARGET, headers={"Authorization": f"apikey {name}"})
                self.assertEqual(answer.status, status, f"{name}: {answer}")
        self.assertEqual(self.get(TARGET).status, 401)
        answer = self.get(TARGET, {"Authorization": "apikey acme"})
        self.assertIn("tenant", answer.json()["detail"])
        self.server.wait_for_line("for the key backup")


class Slow(Backup):
    """Clients that take what they are sent slowly, or not at all."""

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {**config.get("Limits", {}), "Backups": 2}
        return config

    def test_they_hold_nobody_up_and_take_no_memory(self):
        self.large(32)  # 16 MB for each; a socket takes four
        resident = self.metric("svc_resident_bytes")
        clients = [self.slow_client(), self.slow_client()]
        self.wait_for_backups(2)
        refused = self.get(TARGET)
        self.assertEqual(refused.status, 503)
        self.assertIn("Backups (2)", refused.json()["detail"])
        self.assertTrue(refused.headers["Retry-After"])
        for number in range(100):
            self.created("/Shop.Message", {"No": number})
        self.assertLess(self.metric("svc_resident_bytes") - resident, 8 << 20)
        self.assertLess(self.metric("svc_unread_bytes"), 1 << 20)
        for client in clients:
            length, body = self.rest_of(client)
            self.assertEqual(len(body), length)
            self.write(body)
            self.restore()
            shutil.rmtree(self.restored)
        self.wait_for_backups(0)
        self.assertLess(self.metric("svc_resident_bytes") - resident, 16 << 20)
        self.assertEqual(self.metric('svc_limit_hits_total{limit="Backups"}'), 1)
        self.take()

    def test_one_that_goes_makes_room(self):
        self.large(32)
        clients = [self.slow_client(), self.slow_client()]
        self.wait_for_backups(2)
        clients[0].close()
        self.wait_for_backups(1)
        self.take()

    def test_one_that_takes_a_little_now_and_then_gives_its_place_back(self):
        self.server.stop()
        self.server.config["Limits"].update(BackupBytesPerSecond=1 << 30, BackupPaceSeconds=1)
        self.server.start()
        self.large(32)
        began = time.monotonic()
        client = self.slow_client()
        self.wait_for_backups(1)
        taken = []

        def takes_little():
            try:
                taken.append(client.recv(512))
            except ConnectionResetError:
                pass
            return self.metric("svc_backups_open") == 0
        harness.wait_until(takes_little, "it is closed, though it has always taken something")
        self.assertGreater(time.monotonic() - began, 0.9)
        self.assertTrue(taken[0])
        self.server.wait_for_line("less than BackupBytesPerSecond")
        self.assertEqual(self.metric('svc_limit_hits_total{limit="BackupBytesPerSecond"}'), 1)

    def test_the_server_can_stop(self):
        self.server.stop()
        self.server.config["Limits"]["ShutdownSeconds"] = 1
        self.server.start()
        self.large(32)
        self.slow_client()
        self.wait_for_backups(1)
        self.assertEqual(self.server.stop(), 0)


class Held(Backup):
    """What cleaning would delete, and a backup still has to read."""
    held_bytes = 1 << 30
    compares_digest = False

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["SegmentBytes"] = 1 << 20
        config["Limits"] = {**config.get("Limits", {}), "BackupHeldBytes": self.held_bytes}
        return config

    def segments(self):
        return sorted(name for name in os.listdir(self.server.data) if name.endswith(".seg"))

    def rewrite(self, entities, times):
        for number in range(times):
            answer = self.server.request("PATCH", f"/Shop.Message/Id={entities[0]}", {"Text": str(number) * 90000})
            self.assertEqual(answer.status, 200, answer)

    def test_it_stays_until_it_is_read(self):
        entities = self.large(80, 100000)
        behind = self.segments()[4:7]  # what the socket has taken already need not stay
        client = self.slow_client()
        self.wait_for_backups(1)
        for entity in entities[1:]:
            self.server.request("DELETE", f"/Shop.Message/Id={entity}")
        self.rewrite(entities, 60)
        self.assertLess(self.metric("svc_journal_bytes"), 6 << 20)
        self.assertLessEqual(set(behind), set(self.segments()))
        length, body = self.rest_of(client)
        self.assertEqual(len(body), length)
        self.write(body)
        self.restore()
        harness.wait_until(lambda: self.rewrite(entities, 1) or not set(behind) & set(self.segments()),
                           "what was held is deleted")

    def test_a_backup_that_holds_too_much_ends(self):
        self.server.stop()
        self.held_bytes = 2 << 20
        self.server.config = self.make_config()
        self.server.start()
        entities = self.large(80, 100000)
        first = self.segments()[0]
        client = self.slow_client()
        self.wait_for_backups(1)
        for entity in entities[1:]:
            self.server.request("DELETE", f"/Shop.Message/Id={entity}")
        harness.wait_until(lambda: self.rewrite(entities, 1) or self.metric("svc_backups_open") == 0,
                           "the backup has ended")
        length, body = self.rest_of(client)
        self.assertLess(len(body), length)
        self.assertEqual(self.metric('svc_limit_hits_total{limit="BackupHeldBytes"}'), 1)
        self.server.wait_for_line("BackupHeldBytes allows")
        harness.wait_until(lambda: self.rewrite(entities, 1) or first not in self.segments(), "what was held is deleted")

"""Journals of earlier formats, and of this one, are opened: each folder of tests/formats is a sample of one. A newer
format is refused with its number."""
import base64
import errno
import hashlib
import hmac
import json
import os
import shutil
import struct
import subprocess
import sys
import tarfile
import unittest
import zlib

import harness

FORMATS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "formats")
sys.path.insert(0, FORMATS)
import make  # pylint: disable=wrong-import-position,import-error

TOOL = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
MASK = "*******"
HEADER = 4096
VERSION_AT = 8
PRESENT = 3
NEXT = PRESENT + 1
# What an older version stored, and nobody touches.
LASTING = ["Shop.Person", "Shop.Message", "Svc.Event", "Svc.Admin.Webhook"]


def load(sample, name):
    with open(os.path.join(FORMATS, sample, name), encoding="utf-8") as file:
        return json.load(file)


def tool(*arguments):
    return subprocess.run([TOOL, *arguments], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def receiver_of_samples():
    """At the address that they were made with, once no other run of this test has it."""
    found = []

    def take():
        try:
            found.append(harness.Receiver(None, make.HOST, make.PORT))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        return found

    harness.wait_until(take, "the address of the samples is free")
    return found[0]


class Opened:
    """A server over a sample, at the time when it was made, so that retention leaves it alone."""

    def __init__(self, case, sample):
        self.expected = load(sample, "expected.json")
        self.server = harness.Server(load(sample, "config.json"))
        case.addCleanup(self.server.remove)
        os.mkdir(self.server.data, 0o700)
        with tarfile.open(os.path.join(FORMATS, sample, "data.tar.xz")) as tar:
            for member in tar:
                with open(os.path.join(self.server.data, member.name), "wb") as file:
                    shutil.copyfileobj(tar.extractfile(member), file)
        case.assertTrue(harness.FAKETIME, "libfaketime is missing")
        self.server.env.update(LD_PRELOAD=harness.FAKETIME[0], FAKETIME_DONT_FAKE_MONOTONIC="1", TZ="UTC",
                               FAKETIME=make.faketime(self.expected["Time"]))
        self.server.env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + self.server.env.get("ASAN_OPTIONS", "")

    def last_segment(self):
        return os.path.join(self.server.data, sorted(
            name for name in os.listdir(self.server.data) if name.endswith(".seg"))[-1])


class Samples(unittest.TestCase):
    def same(self, expected, found, where):
        """What was stored is there. Members may have been added since; secrets may be masked."""
        if found == MASK:
            return
        if isinstance(expected, dict) and isinstance(found, dict):
            for name, value in expected.items():
                self.assertIn(name, found, where)
                self.same(value, found[name], f"{where}.{name}")
        elif isinstance(expected, list) and isinstance(found, list):
            self.assertEqual(len(expected), len(found), where)
            for number, value in enumerate(expected):
                self.same(value, found[number], f"{where}[{number}]")
        else:
            self.assertEqual(expected, found, where)

    def holds_all(self, opened):
        self.assertEqual(make.counts(opened.server), opened.expected["Counts"])
        for target, answer in make.answers(opened.server, opened.expected["Answers"]).items():
            self.same(opened.expected["Answers"][target], answer, target)

    def answers_as_the_first_time(self, opened):
        once = opened.expected["Once"]
        again = opened.server.request("POST", "/Svc.Event", {
            "Resource": "Shop.OrderPlaced", "Payload": {"No": 100, "Total": 12.50}}, {"Idempotency-Key": once["Key"]})
        self.assertEqual(again.json()[0]["Id"], once["Id"], again)

    def signs_with_its_secret(self, opened):
        receiver = receiver_of_samples()
        self.addCleanup(receiver.close)
        opened.server.request("POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})
        sent = receiver.take()
        receiver.close()
        key = base64.b64decode(opened.expected["Secret"].removeprefix("whsec_"))
        signed = f"{sent.headers['webhook-id']}.{sent.headers['webhook-timestamp']}.".encode() + sent.body
        signature = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
        self.assertIn(f"v1,{signature}", sent.headers["webhook-signature"].split())
        self.assertEqual(sent.headers["Authorization"], "apikey x")

    def can_be_changed(self, opened):
        server = opened.server
        self.assertEqual(server.request("PATCH", "/Shop.Person/Age=20", {"Weight": 2.20}).status, 200)
        self.assertEqual(server.request("DELETE", "/Shop.Message/No=20").status, 200)
        self.assertEqual(server.request("POST", "/Shop.Late", {"New": True}).status, 201)
        self.assertEqual(server.request("PATCH", "/Svc.Admin.Delivery/State=Aborted",
                                        {"State": "Pending"}).status, 200)
        harness.wait_until(lambda: server.request("REPORT", "/Svc.Admin.Delivery/State=Aborted").json() ==
                           [{"Count": 1}], "it is aborted again")
        person = server.request("GET", "/Shop.Person/Age=20").json()
        before = make.counts(server), server.digest()
        for _ in range(2):
            server.kill()
            server.start()
            self.assertEqual((make.counts(server), server.digest()), before)
        self.assertEqual(server.request("GET", "/Shop.Person/Age=20").json(), person)
        self.assertEqual(server.stop(), 0)

    def test_each_is_read_and_written(self):
        samples = sorted(name for name in os.listdir(FORMATS) if os.path.isdir(os.path.join(FORMATS, name))
                         and name.startswith("v"))
        self.assertTrue(samples)
        for sample in samples:
            with self.subTest(sample):
                opened = Opened(self, sample)
                self.assertEqual(tool("verify", opened.server.data).returncode, 0)
                opened.server.start()
                self.holds_all(opened)
                self.answers_as_the_first_time(opened)
                self.holds_all(opened)
                self.signs_with_its_secret(opened)
                self.can_be_changed(opened)
                self.assertEqual(tool("verify", opened.server.data).returncode, 0)

    def test_an_older_one_is_cleaned_over(self):
        """What is appended goes to segments of the present format, until none of the older ones is left; nothing of
        what was stored changes on the way."""
        for sample in ("v1b", "v2"):
            with self.subTest(sample):
                self.is_cleaned_over(Opened(self, sample).server)

    def is_cleaned_over(self, server):
        server.start()
        before = {target: server.request("GET", "/" + target).json() for target in LASTING}
        passing = [{"Goes": True, "Text": "x" * 5000}] * 20
        while self.versions(server) - {PRESENT}:
            for _ in range(20):
                self.assertEqual(server.request("POST", "/Shop.Late", passing).status, 201)
                self.assertEqual(server.request("DELETE", "/Shop.Late/Goes=true/unsafe=true").json(), [{"Count": 20}])
        self.assertEqual(self.versions(server), {PRESENT})
        digest = server.digest()
        server.kill()
        server.start()
        self.assertEqual(server.digest(), digest)
        self.assertEqual({target: server.request("GET", "/" + target).json() for target in LASTING}, before)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(tool("verify", server.data).returncode, 0)

    def versions(self, server):
        found = set()
        for name in os.listdir(server.data):
            try:
                with open(os.path.join(server.data, name), "rb") as file:
                    if name.endswith(".seg"):
                        found.add(struct.unpack_from("<I", file.read(HEADER), VERSION_AT)[0])
            except FileNotFoundError:
                pass  # cleaned away meanwhile
        return found

    def test_the_present_format_has_one(self):
        """Otherwise nobody would notice when it changes."""
        server = harness.Server()
        self.addCleanup(server.remove)
        server.start()
        server.request("POST", "/Shop.Message", {})
        server.kill()
        name = sorted(name for name in os.listdir(server.data) if name.endswith(".seg"))[0]
        with open(os.path.join(server.data, name), "rb") as file:
            version = struct.unpack_from("<I", file.read(HEADER), VERSION_AT)[0]
        self.assertTrue(os.path.isdir(os.path.join(FORMATS, f"v{version}")), "see tests/formats/make.py")


class Newer(unittest.TestCase):
    def setUp(self):
        """The last segment is as the next version would write it, checksum and all."""
        self.server = Opened(self, f"v{PRESENT}").server
        self.path = sorted(os.path.join(self.server.data, name) for name in os.listdir(self.server.data))[-1]
        with open(self.path, "r+b") as file:
            header = bytearray(file.read(HEADER))
            struct.pack_into("<I", header, VERSION_AT, NEXT)
            struct.pack_into("<I", header, HEADER - 4, crc32c(header[:HEADER - 4]))
            file.seek(0)
            file.write(header)
            file.seek(0)
            self.before = zlib.crc32(file.read())

    def names_it(self, text):
        self.assertIn(os.path.basename(self.path), text)
        self.assertRegex(text, rf"version {NEXT}\b")
        self.assertRegex(text, rf"knows versions 1 to {NEXT - 1}\b")

    def test_the_server_refuses_it(self):
        with self.assertRaises(AssertionError) as refused:
            self.server.start()
        self.assertEqual(self.server.process.wait(timeout=harness.DEADLINE_S), 2)
        self.names_it(str(refused.exception))
        with open(self.path, "rb") as file:
            self.assertEqual(zlib.crc32(file.read()), self.before, "it was changed")

    def test_the_tool_refuses_it(self):
        for command in (["verify"], ["dump"], ["repair", "--cut"], ["backup"]):
            with self.subTest(command[0]):
                target = [self.server.data + ".copy"] if command[0] == "backup" else []
                result = tool(*command, self.server.data, *target)
                self.assertIn(result.returncode, (1, 2), result)
                self.names_it(result.stderr)
        with open(self.path, "rb") as file:
            self.assertEqual(zlib.crc32(file.read()), self.before, "it was changed")


if __name__ == "__main__":
    unittest.main()

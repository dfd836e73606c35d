"""Reads a journal by docs/design/journal.md alone, in other words than the server's, and compares."""
import glob
import json
import os
import re
import struct
import subprocess
import unittest
import uuid

import harness

TOOL = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
BLOCK = 4096
DOC = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "design", "journal.md")


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 255]
    return crc ^ 0xFFFFFFFF


class Body:
    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, count):
        part = self.data[self.at:self.at + count]
        assert len(part) == count
        self.at += count
        return part

    def number(self, count, signed=False):
        return int.from_bytes(self.take(count), "little", signed=signed)

    def text16(self):
        return self.take(self.number(2)).decode()

    def bytes32(self):
        return self.take(self.number(4))

    def uuid(self):
        return str(uuid.UUID(bytes=self.take(16)))


def entity(b):
    return {"resource": b.text16(), "id": b.uuid(), "object_no": b.number(8), "version": b.number(8),
            "json": json.loads(b.bytes32())}


def event(b):
    result = {"id": b.uuid(), "object_no": b.number(8), "time": b.number(8, True), "flags": b.number(1),
              "depth": b.number(1), "matched": b.number(4), "resource": b.text16(),
              "content_type": b.text16()}
    result["webhooks"] = [b.uuid() for _ in range(b.number(4))]
    result["payload"] = b.bytes32()
    if result["flags"] & 4:
        result["tenant"] = b.text16()
    if result["flags"] & 8:
        result["client_id"] = b.text16()
    if result["flags"] & 16:
        result["ce"] = b.text16()
    return result


def delivery(b):
    return {"object_no": b.number(8), "event_no": b.number(8), "webhook": b.uuid(), "state": b.number(1),
            "attempts": b.number(2), "last_status": b.number(2), "next": b.number(8, True),
            "version": b.number(8), "error": b.text16()}


KINDS = {1: entity, 2: lambda b: {"resource": b.text16(), "id": b.uuid()}, 3: event, 5: delivery,
         8: lambda b: {"key": b.take(16), "body": b.take(32), "time": b.number(8), "event_no": b.number(8),
                       "event": b.uuid(), "webhooks": b.number(4), "resource": b.text16()}}


def read_segment(data, expected):
    """Yields (offset, serial, serials, more, kind, body); returns what the header of the next one says. `expected`:
    what this one's does; None: it is the first that is there."""
    magic, version, zero, journal, number, serial, _, before = struct.unpack("<8sII16sQQQQ", data[:64])
    assert (magic, version, zero) == (b"SVCJRNL\n", 3, 0) and not any(data[64:4092])
    assert struct.unpack("<I", data[4092:4096])[0] == crc32c(data[:4092])
    assert (journal, number, serial, before) == expected or (expected is None and (before == 0 or number > 1))
    at = BLOCK
    used = 0
    while at < len(data) and any(data[at:at + 8]):
        length, check, record, kind, flags, serials = struct.unpack("<IIQHHI", data[at:at + 24])
        body = data[at + 24:at + 24 + length]
        assert check == (crc32c(journal + data[at:at + 4] + data[at + 8:at + 24] + body) or 1)
        assert record == serial and flags < 8
        assert (flags & 1) <= (at % BLOCK == 0)
        yield at, serial, serials, bool(flags & 2), kind, body
        serial += serials
        end = at + 24 + length
        at = (end + 7) // 8 * 8
        assert not any(data[end:at])
        used += at - end + 24 + length
        if not any(data[at:at + 8]):
            block = (at + BLOCK - 1) // BLOCK * BLOCK
            assert not any(data[at:block])
            at = block
    assert not any(data[at:])
    return journal, number + 1, serial, used


def read_journal(directory):
    paths = sorted(glob.glob(os.path.join(directory, "*.seg")))
    assert len(paths) > 2, paths
    expected = None
    for path in paths:
        with open(path, "rb") as file:
            expected = yield from read_segment(file.read(), expected)


class Format(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), SegmentBytes=65536)

    def fill(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/OrderPlaced")
        for number in range(5):
            self.created("/Shop.Message", {"No": number, "Text": "x" * 30000})
        self.created("/Svc.Event", {"ClientId": "once", "Resource": "Shop.OrderPlaced", "Payload": {"A": 1}})
        self.created("/Svc.Event", b"{}", {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x", "ce-type": "OrderPlaced"})
        receiver.take()
        self.settle()
        self.server.request("DELETE", "/Shop.Message/No=3")  # last: nothing of it is cleaned away

    def test_the_page_is_enough(self):
        self.fill()
        self.server.kill()
        dumped = [json.loads(line) for line in subprocess.run(
            [TOOL, "dump", self.server.data], capture_output=True, text=True, timeout=harness.DEADLINE_S,
            check=True).stdout.splitlines()]
        found = list(read_journal(self.server.data))
        self.assertGreater(len(found), 12)
        self.assertEqual([(d["offset"], d["serial"], d["serials"], d["more"]) for d in dumped],
                         [record[:4] for record in found])
        kinds = set()
        for (_, _, _, _, kind, body), dump in zip(found, dumped):
            kinds.add(kind)
            if kind not in KINDS:
                continue
            b = Body(body)
            decoded = KINDS[kind](b)
            self.assertEqual(b.at, len(body), dump)
            record = dump["record"]
            for name in ("resource", "id", "object_no", "version", "json", "matched", "webhook"):
                if name in decoded and name in record:
                    self.assertEqual(decoded[name], record[name], dump)
        self.assertLessEqual({1, 2, 3, 5, 8}, kinds)
        self.server.start()

    def test_the_kinds_are_those_of_the_source(self):
        header = os.path.join(os.path.dirname(DOC), "..", "..", "include", "store", "record.h")
        with open(header, encoding="utf-8") as file:
            source = re.findall(r'X\(RECORD_\w+, (\d+), "([\w-]+)"\)', file.read())
        with open(DOC, encoding="utf-8") as file:
            page = re.findall(r"^\| (\d+) \| `([\w-]+)` \|", file.read(), re.M)
        self.assertGreater(len(source), 8)
        self.assertEqual(source, page)


if __name__ == "__main__":
    unittest.main()

"""The journal with a million entities: how fast it is read at a start, whether cleaning it holds up
the loop, and whether a look at all of them does."""
import array
import glob
import json
import operator
import os
import re
import shutil
import time

from . import load, machine, peers, writing
from .measure import Goal, Row, Scenario, say

PATCHING = 8  # connections
# Sealed segments are cleaned when more than a third of them is garbage.
PATCHES_AN_ENTITY = 3


def checksum_ms(context, data):
    """Reading and checksumming the files of a journal: what a replay cannot do without."""
    files = sorted(glob.glob(os.path.join(data, "*.seg")))
    return float(load.run(machine.pinned(machine.SERVER_CORE, [
        context.place.program("checksum"), *files])).split('"ms": ')[1].split(",")[0])


def _fill(context, binary, data):
    server = peers.Svcd("fill", binary, context.place, data=data, Fsync="no")
    try:
        file = context.place.file("post", writing.request("/Bench.Item", writing.body()))
        load.load(context.place, server.port, file, 600, count=context.count)
    finally:
        server.stop()


def replay(context):
    """The first build only."""
    name, binary = context.builds[0]
    data = os.path.join(context.place.directory, "entities")
    rows = [Row(f"{name}, {context.count:,} entities", "ms"),
            Row("reading and checksumming the same files", "ms")]
    try:
        _fill(context, binary, data)
        for number in range(context.runs):
            server = peers.Svcd(name, binary, context.place, data=data)
            rows[0].add(server.replay_ms)
            server.stop()
            rows[1].add(checksum_ms(context, data))
            say(f"{number + 1}/{context.runs} " +
                ", ".join(f"{row.name}: {row.values[-1]:.0f} ms" for row in rows))
    finally:
        shutil.rmtree(data, ignore_errors=True)
    rows[1].compare_to(rows[0])
    return Scenario("replay", f"Start with {context.count:,} entities of {writing.BODY_BYTES} bytes",
                    rows, [Goal("speed of reading and checksumming",
                                rows[1].median / rows[0].median, 0.5)])


def _patch(context, server, seconds, count=0):
    entity = server.post("/Bench.Item", json.loads(writing.body()))[0]["Id"]
    content = writing.body()
    file = context.place.file("patch", writing.request(f"/Bench.Item/Id={entity}", content).replace(
        "POST", "PATCH", 1))
    return load.load(context.place, server.port, file, seconds, connections=PATCHING, count=count)


class Turns:
    """How long the loop's turns are, in processor time; counted by the library `turns`."""

    def __init__(self, context):
        self.path = os.path.join(context.place.directory, "turns")
        self.env = {"LD_PRELOAD": context.place.library("turns"), "BENCH_TURNS": self.path}
        self.before = None

    def _counts(self):
        counts = array.array("I")
        with open(self.path, "rb") as file:
            counts.frombytes(file.read())
        return counts

    def begin(self):
        """What has been counted until now, by the start, is not meant."""
        self.before = self._counts()

    def read(self):
        """The longest, and the 99.9th percentile, in microseconds."""
        counts = self._counts()
        if self.before is not None:
            counts = array.array("I", map(operator.sub, counts, self.before))
        left = sum(counts) - sum(counts) // 1000
        longest = max(us for us, count in enumerate(counts) if count)
        for us, count in enumerate(counts):
            left -= count
            if left <= 0:
                return longest, us
        return longest, longest


def _oldest_segment(data):
    oldest = min(glob.glob(os.path.join(data, "*.seg")))
    return int(re.search(r"([0-9a-f]+)\.seg", oldest).group(1), 16)


def _measured(context, data, what, count):
    """One entity changed over and over: the longest turn of the loop, in processor time."""
    name, binary = context.builds[0]
    turns = Turns(context)
    before = _oldest_segment(data)
    server = peers.Svcd(name, binary, context.place, data=data, env=turns.env)
    try:
        result = _patch(context, server, 600, count)
        longest, usual = turns.read()
    finally:
        server.stop()
    row = Row(f"{name}, {what}: longest turn", "µs").add(longest, result)
    row.note = (f"99.9 % within {usual} µs; {result.ops:,} changes, "
                f"{_oldest_segment(data) - before} segments cleaned")
    return row


def cleaning(context):
    """The first build only. Every live entity is moved at least once."""
    _, binary = context.builds[0]
    data = os.path.join(context.place.directory, "entities")
    try:
        _fill(context, binary, data)
        rows = [_measured(context, data, "no garbage yet", context.count // 10),
                _measured(context, data, "cleaning", PATCHES_AN_ENTITY * context.count)]
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return Scenario("cleaning", f"One entity changed over and over, {context.count:,} beside it", rows,
                    [Goal("longest turn while cleaning, µs", rows[1].median, 2000, at_least=False)])


def scanning(context):
    """The first build only. No index tells who has the value: each entity has to be looked at."""
    name, binary = context.builds[0]
    data = os.path.join(context.place.directory, "entities")
    rows = [Row(f"{name}: GET of one by a member", "ms"), Row("longest turn meanwhile", "µs")]
    try:
        _fill(context, binary, data)
        turns = Turns(context)
        server = peers.Svcd(name, binary, context.place, data=data, env=turns.env)
        server.request("GET", "/Bench.Item/_/limit=1")
        turns.begin()
        for _ in range(context.runs):
            began = time.perf_counter()
            server.request("GET", "/Bench.Item/Label=none")
            rows[0].add((time.perf_counter() - began) * 1000)
        rows[1].add(turns.read()[0])
        server.stop()
    finally:
        shutil.rmtree(data, ignore_errors=True)
    return Scenario("scanning", f"A condition without an index on {context.count:,} entities", rows,
                    [Goal("longest turn while scanning, µs", rows[1].median, 2000, at_least=False)])


SCENARIOS = {"replay": replay, "cleaning": cleaning, "scanning": scanning}

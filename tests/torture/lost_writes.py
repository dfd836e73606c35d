#!/usr/bin/env python3
"""Recovers the journal from every state that a loss of power may leave.

shim_trace.c records what a run does to its files and when it acknowledges. The crash is put after each
recorded operation. What was synced before it is there; of what was not, anything may be there: writes in
512-byte sectors, sizes, names made, changed and removed, each by itself and in any order. Where that makes
too many states, these are taken: every prefix of the operations, all but one, one alone, torn forms of each
write (every sector from the beginning, from the end, random ones), and random choices from --seed.

Each distinct state is recovered by journal_states.c, and must open, hold a run of whole changes exactly as
they were appended, all that was acknowledged before the crash and was not dropped since. Of some states the
recovery is recorded too, and crashes in the same way (one level).

Runs: the journal alone, small segments, with roll-over and dropping, by kernel AIO and by the helper
process, with and without syncs; then the server itself (one without sanitizers; TORTURE_TOOLS is where the
helpers are when they are of another build). --all takes more of each (minutes). The last line
counts the states that held and those that did not."""
import argparse
import http.client
import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))
import harness  # pylint: disable=wrong-import-position

BUILT = os.environ.get("TORTURE_TOOLS",
                       os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "tests/torture"))
TOOL = os.path.join(BUILT, "journal_states")
SHIM = os.path.join(BUILT, "libshim_trace.so")
SECTOR = 512
ZEROS = bytes(SECTOR)
ENTRY = struct.Struct("=IIQQQqQQ")
CREATE, WRITE, SYNC, DONE, SIZE, TRUNCATE, RENAME, UNLINK, MKDIR, SAY = range(10)
SUBSETS_ALL = 5  # so many pending operations are tried in all combinations


def trace_env(trace, directory):
    env = dict(os.environ, LD_PRELOAD=SHIM, TORTURE_TRACE=trace, TORTURE_DIRECTORY=directory)
    env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + env.get("ASAN_OPTIONS", "")
    return env


def read_trace(path):
    """Yields (op, name, file, offset, data, result, job, durable)."""
    with open(path, "rb") as file:
        while head := file.read(ENTRY.size):
            op, name_bytes, inode, offset, n, result, job, durable = ENTRY.unpack(head)
            name = file.read(name_bytes).decode()
            yield op, name, inode, offset, file.read(n), result, job, durable


class File:
    """What is surely on the disk of one file: its sectors that are not zero, and its size."""

    def __init__(self, data=b""):
        self.sectors = {}
        self.size = len(data)
        self.write(sectors_of(0, data))

    def write(self, sectors):
        for at, data in sectors.items():
            if data == ZEROS:
                self.sectors.pop(at, None)
            else:
                self.sectors[at] = data
            self.size = max(self.size, (at + 1) * SECTOR)

    def truncate(self, size):
        self.size = size
        self.sectors = {at: data for at, data in self.sectors.items() if at * SECTOR < size}

    def copy(self):
        other = File()
        other.sectors, other.size = dict(self.sectors), self.size
        return other


def sectors_of(offset, data):
    return {(offset + i) // SECTOR: data[i:i + SECTOR].ljust(SECTOR, b"\0")
            for i in range(0, len(data), SECTOR)}


class Pending:
    """An operation that is not surely on the disk."""

    def __init__(self, op, file=None, sectors=None, size=0, name="", to=""):
        self.op, self.file, self.sectors, self.size = op, file, sectors, size
        self.name, self.to = name, to
        self.is_done = op != WRITE

    def apply(self, names, files, keep=None):
        """Only the sectors in `keep`, when that is not None."""
        if self.op == WRITE:
            files[self.file].write({at: data for at, data in self.sectors.items()
                                    if keep is None or at in keep})
        elif self.op == SIZE:
            files[self.file].size = max(files[self.file].size, self.size)
        elif self.op == TRUNCATE:
            files[self.file].truncate(self.size)
        elif self.op == CREATE:
            names[self.name] = self.file
        elif self.op == UNLINK:
            names.pop(self.name, None)
        elif self.op == RENAME:
            names.pop(self.name, None)
            names[self.to] = self.file


class Disk:
    """Follows a trace: what is durable, and what may be."""

    def __init__(self, directory, start=None):
        self.directory = directory + "/"
        self.inodes = {}   # inode number -> file
        self.files = []    # by file
        self.names = {}    # durable
        self.seen = {}     # name -> file, as the program sees it
        self.pending = []
        self.jobs = {}     # job -> Pending, or the list of what a sync covers
        for name, (inode, data) in (start or {}).items():
            self.names[name] = self.seen[name] = self.add_file(inode, File(data))

    def add_file(self, inode, file):
        self.inodes[inode] = len(self.files)
        self.files.append(file)
        return self.inodes[inode]

    def relative(self, path):
        return os.path.normpath(path)[len(self.directory):]

    def settle(self, pending):
        """It is durable now; older pending writes below it can no longer show."""
        if pending not in self.pending:
            return
        at = self.pending.index(pending)
        for older in self.pending[:at]:
            if pending.op == older.op == WRITE and older.file == pending.file:
                for sector in pending.sectors:
                    older.sectors.pop(sector, None)
        pending.apply(self.names, self.files)
        del self.pending[at]

    def covered(self, inode):
        """What a sync that begins now covers: a file's operations, or the directory's names."""
        if inode not in self.inodes:
            return [p for p in self.pending if p.op in (CREATE, RENAME, UNLINK)]
        file = self.inodes[inode]
        return [p for p in self.pending
                if p.op in (WRITE, SIZE, TRUNCATE) and p.file == file and p.is_done]

    def take(self, entry):
        op, name, inode, offset, data, result, job, durable = entry
        name = self.relative(name) if name else ""
        if op == CREATE:
            self.seen[name] = self.add_file(inode, File())
            self.pending.append(Pending(CREATE, self.seen[name], name=name))
        elif op == WRITE:
            self.pending.append(Pending(WRITE, self.inodes[inode], sectors_of(offset, data)))
            self.jobs[job] = (self.pending[-1], durable)
        elif op == SYNC:
            self.jobs[job] = (self.covered(inode), True)
        elif op == DONE and job in self.jobs:
            what, durable = self.jobs.pop(job)
            if isinstance(what, Pending):
                what.is_done = True
                what = [what] if durable and result >= 0 else []
            for pending in what if result >= 0 else []:
                self.settle(pending)
        elif op in (SIZE, TRUNCATE):
            self.pending.append(Pending(op, self.inodes[inode], size=offset))
        elif op == RENAME:
            to = self.relative(data.decode())
            self.seen[to] = self.seen.pop(name)
            self.pending.append(Pending(RENAME, self.seen[to], name=name, to=to))
        elif op == UNLINK and name in self.seen:
            self.pending.append(Pending(UNLINK, self.seen.pop(name), name=name))

    def state(self, choice):
        """The directory when only these happened: pairs of a pending operation and its sectors."""
        files = [file.copy() for file in self.files]
        names = dict(self.names)
        for pending, keep in choice:
            pending.apply(names, files, keep)
        return {name: files[file] for name, file in names.items()}


def torn(pending, rng):
    """Sets of sectors of one write that may be there without the others."""
    all_sectors = sorted(pending.sectors)
    n = len(all_sectors)
    cuts = range(1, n) if n <= 32 else sorted(set(range(1, 16)) | set(rng.sample(range(1, n), 16)))
    for cut in cuts:
        yield set(all_sectors[:cut])
        yield set(all_sectors[cut:])
    for _ in range(4 if n > 2 else 0):
        yield {at for at in all_sectors if rng.random() < 0.5}


def choices(pending, rng):
    """Which of the pending operations happened: lists of (operation, sectors or None for all)."""
    whole = [(p, None) for p in pending]
    if len(pending) <= SUBSETS_ALL:
        for bits in range(1 << len(pending)):
            yield [unit for i, unit in enumerate(whole) if bits >> i & 1]
    else:
        for i in range(len(pending)):
            yield whole[:i]
            yield whole[:i] + whole[i + 1:]
            yield [whole[i]]
        yield whole
        for _ in range(16):
            yield [unit for unit in whole if rng.random() < 0.5]
    for i, p in enumerate(pending):
        if p.op == WRITE and any(data != ZEROS for data in p.sectors.values()):
            for keep in torn(p, rng):
                yield whole[:i] + [(p, keep)] + whole[i + 1:]
                yield [(p, keep)]


def key_of(state):
    return frozenset((name, file.size, frozenset(file.sectors.items())) for name, file in state.items())


class Recoverer:
    """journal_states recover, kept running."""

    def __init__(self):
        self.process = subprocess.Popen([TOOL, "recover"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.place = tempfile.mkdtemp(prefix="svcd-states-",
                                      dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.directory = os.path.join(self.place, "data")

    def lay_out(self, state):
        shutil.rmtree(self.directory, ignore_errors=True)
        os.mkdir(self.directory)
        for name, file in state.items():
            with open(os.path.join(self.directory, name), "wb") as out:
                for at in sorted(file.sectors):
                    out.seek(at * SECTOR)
                    out.write(file.sectors[at])
                out.truncate(file.size)

    def recover(self, state):
        """What a recovery of this state finds, and a second one after it."""
        self.lay_out(state)
        first, second = self.ask(), self.ask()
        return first if first == second else f"!recovered, it has another content: {second[:200]}"

    def ask(self):
        self.process.stdin.write(self.directory + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip("\n") or "" if self.process.poll() is None else "!gone"

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        shutil.rmtree(self.place, ignore_errors=True)


def last_serial(record):
    """The last one that was taken, when it was written."""
    serial, serials = map(int, record.split(":")[:2])
    return serial if serials else serial - 1


class Ledger:
    """What was appended, acknowledged, dropped, as the trace goes on."""

    def __init__(self):
        self.records = []   # in order; each as journal_states.c writes it
        self.places = {}    # a record -> where it stands: one that takes no serial may be there twice
        self.markers = {}   # of the server's answers -> serial
        self.acknowledged = 0   # serial
        self.committed = 0      # so many records
        self.keep = 0           # the first so many may be gone

    def add(self, records):
        for record in records:
            self.places.setdefault(record, []).append(len(self.records))
            self.records.append(record)

    def take(self, data):
        for word, rest in re.findall(rb"^(REC|ACK|KEEP) (.*)$", data, re.M):
            if word == b"REC":
                self.add(rest.decode().split())
            elif word == b"ACK":
                self.acknowledged, self.committed = map(int, rest.split())
            else:
                self.keep = int(rest)
        for marker in re.findall(rb"torture-\d{6}", data):
            self.acknowledged = max(self.acknowledged, self.markers.get(marker, 0))

    def judge(self, found, is_synced=True):
        """What is wrong with a recovered journal, or None."""
        if found.startswith("!"):
            return found[1:]
        records = found.split()
        last = last_serial(records[-1]) if records else 0
        if last < self.acknowledged and is_synced:
            return f"serial {self.acknowledged} was acknowledged, {last} is the last one there"
        if not records:
            return None
        at = next((at for at in self.places.get(records[0], []) if self.records[at:at + len(records)] == records), None)
        if at is None:
            return "the records are not those that were appended"
        if at > self.keep:
            return f"it begins with record {at}, {self.keep} was still wanted"
        if at + len(records) < self.committed and is_synced:
            return f"{self.committed} records were committed, {at + len(records)} are there"
        return "a change is half there" if records[-1].endswith("+") else None


class Counts:
    def __init__(self):
        self.points = self.generated = self.recovered = self.passed = self.failed = 0


class Run:
    def __init__(self, name, directory, recoverer, rng, options, is_synced=True):
        self.name, self.directory, self.recoverer = name, directory, recoverer
        self.rng, self.options, self.is_synced = rng, options, is_synced
        self.found = {}      # key of a state -> what its recovery found
        self.nested = set()
        self.counts = Counts()

    def judge(self, state, ledger, may_nest):
        key = key_of(state)
        self.counts.generated += 1
        is_new = key not in self.found
        if is_new:
            self.found[key] = self.recoverer.recover(state)
            self.counts.recovered += 1
        problem = ledger.judge(self.found[key], self.is_synced)
        if problem is None:
            self.counts.passed += is_new
        else:
            self.report(state, problem)
        if is_new and problem is None and may_nest and self.rng.random() < self.options.nest:
            self.crash_recovery(state, ledger)

    def report(self, state, problem):
        self.counts.failed += 1
        if self.counts.failed > 5:
            return
        kept = tempfile.mkdtemp(prefix="svcd-failed-")
        self.recoverer.lay_out(state)
        shutil.copytree(self.recoverer.directory, os.path.join(kept, "data"))
        print(f"{self.name}, after operation {self.counts.points}: {problem}; the state: {kept}/data")

    def crash(self, entries, ledger, disk, may_nest=True):
        for entry in entries:
            if entry[0] == SAY:
                ledger.take(entry[4])
                continue
            disk.take(entry)
            self.counts.points += 1
            for choice in choices(disk.pending, self.rng):
                self.judge(disk.state(choice), ledger, may_nest)

    def crash_recovery(self, state, ledger):
        place = tempfile.mkdtemp(prefix="svcd-nested-", dir=self.recoverer.place)
        directory, trace = os.path.join(place, "data"), os.path.join(place, "trace")
        self.recoverer.lay_out(state)
        os.rename(self.recoverer.directory, directory)
        start = {}
        for name in os.listdir(directory):
            with open(os.path.join(directory, name), "rb") as file:
                start[name] = (os.fstat(file.fileno()).st_ino, file.read())
        subprocess.run([TOOL, "recover"], input=directory + "\n", text=True, check=True,
                       stdout=subprocess.DEVNULL, env=trace_env(trace, directory))
        entries = [entry for entry in read_trace(trace) if entry[0] != SAY]
        shutil.rmtree(place)
        self.crash(entries, ledger, Disk(directory, start), may_nest=False)

    def finish(self):
        c = self.counts
        print(f"{self.name}: {c.points} crash points, {c.generated} states, {c.recovered} different, "
              f"{c.failed} failed", flush=True)
        return c


def journal_run(engine, fsync, seed, recoverer, options):
    with tempfile.TemporaryDirectory(prefix="svcd-torture-") as place:
        directory, trace = os.path.join(place, "data"), os.path.join(place, "trace")
        subprocess.run([TOOL, "record", engine, fsync, directory, str(seed)], check=True,
                       stdout=subprocess.DEVNULL, env=trace_env(trace, directory))
        run = Run(f"journal, {engine}, Fsync {fsync}, seed {seed}", directory, recoverer,
                  random.Random(seed), options, fsync == "always")
        entries = list(read_trace(trace))
        if options.operations:
            entries = entries[:options.operations]
        run.crash(entries, Ledger(), Disk(directory))
        return run.finish()


def drive_server(server, steps):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    for step in range(steps):
        event = {"Resource": "Shop.OrderPlaced", "Payload": {"No": f"torture-{step:06}"}}
        body = {"No": f"torture-{step:06}"}
        target, body = ("/Svc.Event", event) if step % 3 == 1 else ("/Shop.Message", body)
        connection.request("POST", target, harness.json.dumps(body))
        answer = connection.getresponse()
        assert answer.status == 201, answer.read()
        answer.read()
    connection.close()


def markers_of(directory):
    """Which serial carries which marker, read from the segments: a record's header is before its body."""
    markers = {}
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".seg"):
            continue
        with open(os.path.join(directory, name), "rb") as file:
            data, at = file.read(), 4096
        while at < len(data):
            n, _, serial = struct.unpack_from("<IIQ", data, at)
            if serial == 0:
                at = (at // 4096 + 1) * 4096
                continue
            for marker in re.findall(rb"torture-\d{6}", data[at + 24:at + 24 + n]):
                markers.setdefault(marker, serial)
            at += (24 + n + 7) // 8 * 8
    return markers


def server_run(seed, recoverer, options):
    server = harness.Server()
    trace = os.path.join(server.directory, "trace")
    server.env = trace_env(trace, os.path.realpath(server.data))
    try:
        server.start()
        drive_server(server, options.requests)
        server.stop()
        ledger = Ledger()
        journal = server.data
        shutil.rmtree(recoverer.directory, ignore_errors=True)
        shutil.copytree(journal, recoverer.directory)
        ledger.add(recoverer.ask().split())  # the reference is what the stopped server left
        ledger.markers = markers_of(journal)
        run = Run("server", journal, recoverer, random.Random(seed), options)
        run.crash(list(read_trace(trace)), ledger, Disk(os.path.realpath(journal)))
        if len(ledger.markers) != options.requests or ledger.acknowledged != max(ledger.markers.values()):
            run.counts.failed += 1
            print(f"server: {len(ledger.markers)} of {options.requests} requests are in the journal, "
                  f"serial {ledger.acknowledged} was seen acknowledged")
        return run.finish()
    finally:
        server.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.operations = 0 if options.all else 260
    options.requests = 40 if options.all else 6
    options.nest = 0.02 if options.all else 0.004
    recoverer = Recoverer()
    results = []
    try:
        for seed in range(options.seed, options.seed + (3 if options.all else 1)):
            for engine, fsync in (("aio", "always"), ("helper", "always"), ("aio", "no")):
                results.append(journal_run(engine, fsync, seed, recoverer, options))
        results.append(server_run(options.seed, recoverer, options))
    finally:
        recoverer.close()
    print(f"{sum(c.passed for c in results)} passed, {sum(c.failed for c in results)} failed")
    return 1 if any(c.failed for c in results) else 0


if __name__ == "__main__":
    sys.exit(main())

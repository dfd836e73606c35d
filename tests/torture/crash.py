#!/usr/bin/env python3
"""Loses what was not synced: `crash.py [--requests N] [--states N] [--seed N]`. SVCD names the binary.

A server is run under strace while clients change it over four connections. From its file operations
every state is derived that a crash, or a loss of power, may have left on the disk at any moment:

- a write is safe when it has returned from a descriptor with O_DSYNC, or when a sync of its file that
  began later has; until then it may be there, be missing, or be torn at sectors of 512 bytes, each
  write by itself and in any order;
- a file's size is safe with a sync of the file; until then it may be as short as what was written;
- names (made, renamed, deleted) are safe with a sync of the directory; until then any number of the
  first ones may have taken effect.

With more than LIMIT such states at one moment, all combinations of up to three writes are taken, and
as many others at random. Each state is read by svc-journal, which must find it good, and some are
started by a real server. What was acknowledged before that moment must be there, what was acknowledged
as deleted must not, two entities of one request must be there both or not at all."""
import argparse
import glob
import http.client
import itertools
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402

SECTOR = 512
LIMIT = 40  # states of one moment
NEVER = float("inf")
CALLS = ("openat,close,pwrite64,write,writev,read,io_submit,io_getevents,fdatasync,fsync,fallocate,"
         "ftruncate,rename,renameat,renameat2,unlink,unlinkat,mkdir")


class Write:
    def __init__(self, offset, data, time):
        self.offset, self.data, self.issued, self.done, self.safe = offset, data, time, NEVER, NEVER


class File:
    def __init__(self):
        self.writes = []
        self.sizes = []  # [size, issued, safe]


class Name:
    """A change to the directory's names."""

    def __init__(self, change, time):
        self.change, self.issued, self.safe = change, time, NEVER


class Trace:
    """The file operations of one process on one directory, and what it acknowledged."""

    def __init__(self, directory):
        self.directory = directory
        self.time = 0
        self.files, self.names = [], []
        self.by_name = {}
        self.descriptors = {}   # fd -> (File or None for the directory, is O_DSYNC)
        self.jobs = {}          # aio_data -> (Write, or File of a sync, or None)
        self.requests = {}      # fd -> what was asked last
        self.acknowledged = []  # (time, request)
        self.moments = []       # times after which a crash may find something new

    def path_of(self, path, base):
        if base is not None and self.descriptors.get(base, (0,))[0] is None:
            path = os.path.join(self.directory, path)
        return path if os.path.dirname(path) == self.directory else None

    def moment(self):
        self.moments.append(self.time)

    def sync(self, file, began):
        """A sync that has returned makes safe what had returned before it began."""
        for write in file.writes if file else []:
            if write.done <= began:
                write.safe = min(write.safe, self.time)
        for size in file.sizes if file else []:
            if size[1] <= began:
                size[2] = min(size[2], self.time)
        if file is None:
            for name in self.names:
                if name.issued <= began:
                    name.safe = min(name.safe, self.time)
        self.moment()

    def change_name(self, change):
        self.names.append(Name(change, self.time))
        self.moment()

    def opened(self, path, flags, fd):
        if path == self.directory:
            self.descriptors[fd] = (None, False)
            return
        if path is None:
            self.descriptors.pop(fd, None)
            return
        name = os.path.basename(path)
        if name not in self.by_name:
            self.by_name[name] = File()
            self.files.append(self.by_name[name])
            self.change_name(("make", name, self.by_name[name]))
        self.descriptors[fd] = (self.by_name[name], "O_DSYNC" in flags)

    def written(self, fd, offset, data):
        file, is_sync = self.descriptors[fd]
        write = Write(offset, data, self.time)
        file.writes.append(write)
        self.moment()
        return file, write, is_sync

    def write_done(self, file, write, is_sync):
        write.done = self.time
        if is_sync:
            write.safe = self.time
            for size in file.sizes:  # as much of the size as the data needs; here it is set before
                size[2] = min(size[2], self.time)
        self.moment()

    def read_line(self, line):
        self.time += 1
        found = re.match(r"(?:\d+ +)?(\w+)\((.*)\) += (-?\d+)", line)
        if not found or found.group(3) == "-1":
            return
        handler = getattr(self, "do_" + found.group(1), None)
        if handler:
            handler(found.group(2), int(found.group(3)))

    @staticmethod
    def bytes_of(text):
        return bytes.fromhex(text.replace("\\x", ""))

    def strings(self, text):
        return [self.bytes_of(part).decode("latin-1") for part in re.findall(r'"((?:\\x..)*)"', text)]

    def do_openat(self, text, fd):
        base, rest = text.split(", ", 1)
        base = None if base == "AT_FDCWD" else int(base)
        path = self.strings(rest)[0]
        if path in (".", ".."):
            self.descriptors.pop(fd, None)
            return
        if path != self.directory:
            path = self.path_of(path, base)
        self.opened(path, rest, fd)

    def do_close(self, text, _):
        self.descriptors.pop(int(text), None)
        self.requests.pop(int(text), None)

    def do_pwrite64(self, text, count):
        fd = int(text.split(",", 1)[0])
        if fd in self.descriptors:
            data = self.bytes_of(re.search(r'"((?:\\x..)*)"', text).group(1))
            file, write, is_sync = self.written(fd, int(text.rsplit(", ", 1)[1]), data[:count])
            self.write_done(file, write, is_sync)

    def do_io_submit(self, text, _):
        for job in re.findall(r"\{([^}]*)\}", text):
            fields = dict(re.findall(r'(aio_\w+)=("[^"]*"|[^,]+)', job))
            fd = int(fields["aio_fildes"])
            if fd not in self.descriptors:
                self.jobs[fields["aio_data"]] = None
            elif "SYNC" in fields["aio_lio_opcode"]:
                self.jobs[fields["aio_data"]] = ("sync", self.descriptors[fd][0], self.time)
            else:
                data = self.bytes_of(fields["aio_buf"].strip('"'))
                assert len(data) == int(fields["aio_nbytes"])
                self.jobs[fields["aio_data"]] = self.written(fd, int(fields["aio_offset"]), data)

    def do_io_getevents(self, text, _):
        for data in re.findall(r"\{data=(0x\w+)", text):
            job = self.jobs.pop(data, None)
            if job and job[0] == "sync":
                self.sync(job[1], job[2])
            elif job:
                self.write_done(*job)

    def do_fdatasync(self, text, _):
        if int(text) in self.descriptors:
            self.sync(self.descriptors[int(text)][0], self.time)

    do_fsync = do_fdatasync

    def do_fallocate(self, text, _):
        fd, _, offset, size = (int(part, 0) for part in text.split(", "))
        if fd in self.descriptors:
            self.descriptors[fd][0].sizes.append([offset + size, self.time, NEVER])
            self.moment()

    def do_ftruncate(self, text, _):
        fd, size = (int(part) for part in text.split(", "))
        if fd in self.descriptors:
            self.descriptors[fd][0].sizes.append([size, self.time, NEVER])
            self.moment()

    def do_renameat(self, text, _):
        old, new = self.strings(text)
        self.by_name[new] = self.by_name.pop(old)
        self.change_name(("rename", old, new))

    do_renameat2 = do_renameat

    def do_unlinkat(self, text, _):
        name = os.path.basename(self.strings(text)[0])
        if name in self.by_name:
            del self.by_name[name]
            self.change_name(("unlink", name))

    do_unlink = do_unlinkat

    def do_read(self, text, _):
        fd = int(text.split(",", 1)[0])
        for string in self.strings(text):
            if re.match(r"(POST|DELETE) ", string):
                self.requests[fd] = string
            elif fd in self.requests:
                self.requests[fd] += string  # the body comes by itself

    def do_write(self, text, _):
        fd = int(text.split(",", 1)[0])
        for string in self.strings(text):
            if re.match(r"HTTP/1.1 20[01]", string) and fd in self.requests:
                self.acknowledged.append((self.time, self.requests[fd]))

    do_writev = do_write


class State:
    """One state of the disk. `lost` tells what became of each write that was not safe."""

    def __init__(self, trace, time, names, lost, short):
        self.trace, self.time, self.names, self.lost, self.short = trace, time, names, lost, short

    def image(self, file):
        image = bytearray()
        for write in file.writes:
            fate = self.lost.get(write, "there") if write.issued <= self.time else "lost"
            if fate == "lost":
                continue
            end = write.offset + len(write.data)
            image.extend(bytes(max(0, end - len(image))))
            for at in range(0, len(write.data), SECTOR):
                if fate == "there" or at // SECTOR in fate:
                    image[write.offset + at:write.offset + at + SECTOR] = write.data[at:at + SECTOR]
        sizes = [size for size in file.sizes if size[1] <= self.time]
        if sizes and (sizes[-1][2] <= self.time or not self.short):
            size = sizes[-1][0]
            image = image[:size] + bytes(max(0, size - len(image)))
        return bytes(image)

    def write_to(self, directory):
        present = {}
        for change in self.names:
            if change[0] == "make":
                present[change[1]] = change[2]
            elif change[0] == "rename":
                present[change[2]] = present.pop(change[1])
            else:
                present.pop(change[1])
        os.mkdir(directory)
        for name, file in present.items():
            with open(os.path.join(directory, name), "wb") as out:
                out.write(self.image(file))

    def key(self):
        return (len(self.names), self.short, frozenset(
            (id(w), fate if isinstance(fate, str) else frozenset(fate)) for w, fate in self.lost.items()),
            sum(w.issued <= self.time for f in self.trace.files for w in f.writes))


def fates(write, rng):
    """What may become of a write that is not safe."""
    sectors = len(write.data) // SECTOR
    result = ["there", "lost"]
    if sectors > 1:
        half = sectors // 2
        result += [set(range(half)), set(range(half, sectors)), {0}, {sectors - 1},
                   {s for s in range(sectors) if rng.random() < 0.5}]
    return result


def states_at(trace, time, rng):
    pending = [w for f in trace.files for w in f.writes if w.issued <= time < w.safe]
    made = [n for n in trace.names if n.issued <= time]
    safe = sum(n.safe <= time for n in made)
    changes = [n.change for n in made]
    choices = [fates(w, rng) for w in pending]
    if len(pending) <= 3:
        combinations = list(itertools.product(*choices))
    else:
        combinations = [[rng.choice(c) for c in choices] for _ in range(LIMIT)]
    rng.shuffle(combinations)
    for count in range(safe, len(changes) + 1):
        for combination in combinations[:LIMIT]:
            for short in (False, True):
                yield State(trace, time, changes[:count], dict(zip(pending, combination)), short)


def entities_in(directory, tool):
    """What svc-journal finds; None when there is no journal yet."""
    if not glob.glob(os.path.join(directory, "*.seg")):
        return {}
    result = subprocess.run([tool, "dump", directory], capture_output=True, text=True, timeout=60,
                            check=False)
    if result.returncode != 0:
        raise AssertionError(result.stderr.strip())
    entities = {}
    for line in result.stdout.splitlines():
        record = json.loads(line)["record"]
        if record["kind"] == "entity":
            entities[record["id"]] = record["json"]
        elif record["kind"] == "entity-gone":
            entities.pop(record["id"], None)
    return {(e["C"], e["N"], e["P"]): e for e in entities.values() if "C" in e}


def check(entities, acknowledged, asked_to_delete, time):
    for when, request in acknowledged:
        if when > time:
            break
        number = tuple(int(n) for n in re.search(r'"?C"?[:=](\d+),?&?"?N"?[:=](\d+)', request).groups())
        for part in (0, 1):
            key = number + (part,)
            if request.startswith("DELETE"):
                assert key not in entities, f"{key} was deleted, which was acknowledged"
            elif number not in asked_to_delete:
                assert key in entities, f"{key} was acknowledged and is not there"
    for client, number, part in entities:
        assert (client, number, 1 - part) in entities, f"half of {client}, {number} is there"


class Client(threading.Thread):
    """Inserts two entities a request, and deletes every third pair again."""

    def __init__(self, server, client, requests):
        super().__init__()
        self.server, self.client, self.requests, self.deleted = server, client, requests, set()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        for number in range(self.requests):
            body = [{"C": self.client, "N": number, "P": part, "T": "x" * (37 * number % 900)}
                    for part in (0, 1)]
            self.send(connection, "POST", "/Shop.Message", json.dumps(body, separators=(",", ":")))
            if number % 3 == 2:
                self.deleted.add((self.client, number - 1))
                self.send(connection, "DELETE",
                          f"/Shop.Message/C={self.client}&N={number - 1}/unsafe=true", None)
        connection.close()

    @staticmethod
    def send(connection, method, target, body):
        connection.putrequest(method, target, skip_accept_encoding=True)
        connection.putheader("Prefer", "return=minimal")
        data = body.encode() if body else b""
        connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        response = connection.getresponse()
        response.read()
        assert response.status in (200, 201), response.status


def record(requests, fsync):
    """Runs the server under strace. Returns the trace and the pairs that were asked to be deleted."""
    config = dict(harness.load_config(harness.SHOP), SegmentBytes=65536, Fsync=fsync)
    server = harness.Server(config)
    path = os.path.join(server.directory, "trace")
    wrapper = os.path.join(server.directory, "svcd")
    with open(wrapper, "w", encoding="utf-8") as out:
        out.write(f'#!/bin/sh\nexec strace -f -xx -s 400000 -e trace={CALLS} -o {path} {harness.SVCD} "$@"\n')
    os.chmod(wrapper, 0o755)
    binary, harness.SVCD = harness.SVCD, wrapper
    try:
        server.start()
    finally:
        harness.SVCD = binary
    clients = [Client(server, number, requests) for number in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    subprocess.run(["pkill", "-TERM", "-P", str(server.process.pid)], check=False)
    server.process.wait(timeout=60)
    trace = Trace(server.data)
    with open(path, encoding="latin-1") as lines:
        for line in lines:
            trace.read_line(line)
    server.remove()
    return trace, set().union(*(client.deleted for client in clients))


def start_real(directory):
    """What a server that starts on this state shows."""
    server = harness.Server(dict(harness.load_config(harness.SHOP), SegmentBytes=65536))
    shutil.copytree(directory, server.data)
    try:
        server.start()
        answer = server.request("GET", "/Shop.Message")
        found = answer.json() if answer.status == 200 else []
        assert server.stop() == 0
        return {(e["C"], e["N"], e["P"]): e for e in found}
    finally:
        server.remove()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=12, help="of each of the four clients")
    parser.add_argument("--states", type=int, default=1500, help="at most; 0: all of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fsync", default="always", help="with `no`, which promises less, this must fail")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tool = os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "svc-journal")
    trace, deleted = record(options.requests, options.fsync)
    assert len(trace.acknowledged) >= 4 * options.requests, "the trace lacks acknowledgements"
    distinct = {}
    for time in trace.moments:
        for state in states_at(trace, time, rng):
            distinct.setdefault(state.key(), state)
    states = sorted(distinct.values(), key=lambda state: state.time)
    if options.states and len(states) > options.states:
        states = sorted(rng.sample(states, options.states), key=lambda state: state.time)
    print(f"{len(trace.moments)} moments, {len(distinct)} distinct states, {len(states)} tried")
    failed = real = 0
    segments = set()
    with tempfile.TemporaryDirectory(prefix="svcd-crash-") as scratch:
        for number, state in enumerate(states):
            segments.update(change[2] for change in state.names if change[0] == "rename")
            directory = os.path.join(scratch, str(number))
            state.write_to(directory)
            try:
                entities = entities_in(directory, tool)
                check(entities, trace.acknowledged, deleted, state.time)
                if number % 100 == 50:
                    real += 1
                    assert start_real(directory) == entities, "a server finds something else"
            except AssertionError as problem:
                failed += 1
                print(f"FAILED at moment {state.time}, {len(state.names)} names, short {state.short}: {problem}")
            shutil.rmtree(directory)
    print(f"{len(segments)} segments; {real} states were started by a server as well")
    print(f"{len(states) - failed} passed, {failed} failed")
    return 1 if failed or not states else 0


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    sys.exit(main())

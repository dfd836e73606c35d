#!/usr/bin/env python3
"""A server that may have 256 MiB, counted by the kernel (a memory cgroup: needs the right to make one), under
everything that takes memory at once: entities until they are refused, bodies that never end, answers that
nobody reads, events for a receiver that hangs. It must never be killed, refuse with 503 and Retry-After,
answer reads and deletions meanwhile, and take new entities again when there is room.

    SVCD=... tests/torture/memory.py [--seconds N]"""
import argparse
import http.client
import json
import os
import random
import resource
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))
import harness  # pylint: disable=wrong-import-position

LIMIT_BYTES = 256 << 20
CONFIG = {
    "Limits": {"MemoryBytes": 128 << 20, "IncomingBytes": 24 << 20, "UnreadBytes": 24 << 20, "PayloadBytes": 8 << 20,
               "Connections": 8000, "ConnectionsPerAddress": 8000, "BodySeconds": 60, "PendingDeliveries": 200000},
    "SegmentBytes": 4 << 20,
}


class Cgroup:
    """Of version 1 or 2, whichever is there."""

    def __init__(self):
        is_second = os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        self.path = f"/sys/fs/cgroup/{'' if is_second else 'memory/'}svcd-{os.getpid()}"
        self.limit, self.events = (("memory.max", "memory.events") if is_second else
                                   ("memory.limit_in_bytes", "memory.oom_control"))
        os.mkdir(self.path)
        with open(os.path.join(self.path, self.limit), "w", encoding="ascii") as file:
            file.write(str(LIMIT_BYTES))

    def wrapper(self):
        return ["sh", "-c", f'echo $$ > {self.path}/cgroup.procs && exec "$@"', "sh"]

    def kills(self):
        with open(os.path.join(self.path, self.events), encoding="ascii") as file:
            return int(dict(line.split() for line in file).get("oom_kill", 0))

    def remove(self):
        harness.wait_until(self.is_removed, "the cgroup is empty")

    def is_removed(self):
        try:
            os.rmdir(self.path)
            return True
        except OSError:
            return False


class Load:
    """Threads that go on until they are told, and count what they are answered."""

    def __init__(self, server):
        self.server, self.stopped, self.statuses = server, threading.Event(), {}
        self.threads = []

    def run(self, work, count):
        for seed in range(count):
            thread = threading.Thread(target=self._loop, args=(work, random.Random(seed)), daemon=True)
            thread.start()
            self.threads.append(thread)

    def _loop(self, work, rng):
        while not self.stopped.is_set():
            try:
                for status in work(self.server.port, rng):
                    self.statuses[work.__name__, status] = self.statuses.get((work.__name__, status), 0) + 1
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(30)


def entities(port, rng):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    body = json.dumps([{"No": rng.randrange(10**9), "Text": "x" * 350} for _ in range(500)])
    connection.request("POST", "/Shop.Message", body)
    answer = connection.getresponse()
    answer.read()
    assert answer.status != 503 or answer.getheader("Retry-After")
    yield answer.status
    connection.close()


def events(port, rng):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    for _ in range(50):
        connection.request("POST", "/Svc.Event", json.dumps({"Resource": "Shop.OrderPlaced", "Payload": {
            "Text": "y" * rng.randrange(4000)}}))
        answer = connection.getresponse()
        answer.read()
        yield answer.status
    connection.close()


def unfinished(port, rng):
    """Bodies that are announced, half sent, and held."""
    held = []
    for _ in range(50):
        s = socket.create_connection(("127.0.0.1", port), timeout=5)
        s.sendall(b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"z" * 65536)
        held.append(s)
    time.sleep(rng.random())
    for s in held:
        s.close()
    yield "sent"


def unread(port, rng):
    """Large answers, asked for several times, that are never read."""
    held = []
    for _ in range(50):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        s.settimeout(5)
        s.connect(("127.0.0.1", port))
        s.sendall(b"GET /Shop.Message/_/limit=2000 HTTP/1.1\r\nHost: x\r\n\r\n" * 8)
        held.append(s)
    time.sleep(rng.random())
    for s in held:
        s.close()
    yield "asked"


def hanging_receiver():
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    held = []

    def accept():
        while True:
            try:
                held.append(listener.accept())
            except OSError:
                return
    threading.Thread(target=accept, daemon=True).start()
    return listener


def recovers(server):
    """Deletes everything, and stores something."""
    for name in ("Shop.Message", "Svc.Event", "Svc.Admin.Delivery", "Svc.Admin.WebhookLog"):
        server.request("DELETE", f"/{name}")
    return harness.wait_until(lambda: server.request("POST", "/Shop.Message", {"No": 1}).status == 201,
                              "new work is taken again", 30)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    cgroup, problems, most = Cgroup(), [], 0
    server = harness.Server(dict(harness.load_config(harness.SHOP), **CONFIG))
    server.wrapper = cgroup.wrapper()
    receiver = hanging_receiver()
    try:
        server.start()
        load = Load(server)
        server.request("POST", "/Svc.Admin.Webhook", {
            "Destination": f"http://127.0.0.1:{receiver.getsockname()[1]}/", "EventSelector": "/Shop.OrderPlaced"})
        for work, count in ((entities, 4), (events, 4), (unfinished, 4), (unread, 4)):
            load.run(work, count)
        end = time.monotonic() + options.seconds
        while time.monotonic() < end and server.process.poll() is None:
            with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
                most = max(most, *(int(line.split()[1]) for line in file if line.startswith("VmRSS")))
            time.sleep(0.2)
        load.stop()
        if server.process.poll() is not None or cgroup.kills() > 0:
            problems.append(f"it was killed: status {server.process.poll()}, {cgroup.kills()} kills")
        elif not recovers(server):
            problems.append("it does not take new work again")
        if not load.statuses.get(("entities", 503)):
            problems.append("nothing was refused: the load is too small")
        for (what, status), count in sorted(load.statuses.items(), key=str):
            print(f"{what}: {count} × {status}")
        print(f"resident at most {most / 1024:.0f} MiB of {LIMIT_BYTES >> 20}")
    except AssertionError as problem:
        problems.append(str(problem))
    finally:
        receiver.close()
        server.remove()
        cgroup.remove()
    for problem in problems:
        print(problem)
    print(f"{int(not problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())

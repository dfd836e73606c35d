#!/usr/bin/env python3
"""Makes the Nth call of a function fail in a scripted run of the server, and checks that nothing was a lie.

shim_fail.c fails one call of one function with one error (or a short count) per run. The script makes a
webhook for http:// and one for https://, inserts, changes, deletes, reads and raises events,
each request on a ledger. In every run: the
server ends neither by a signal (a lack of memory of its own excepted, with its message) nor without a
message; nothing takes longer than it may; after a restart without faults everything acknowledged is there,
nothing refused is, acknowledged events arrive, and a server that went on has the same digest as before.

A sanitized server has its allocations left alone, and must leak nothing; one without has them fail too
(TORTURE_TOOLS is where the preloaded libraries of another build are). `--tries` is how many N are taken per
function and error, drawn by --seed; --all takes every N; --calls names functions. The last line counts the
runs that held and those that did not."""
import argparse
import concurrent.futures
import errno
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))
import harness  # pylint: disable=wrong-import-position
import tls  # pylint: disable=wrong-import-position

TOOLS = os.environ.get("TORTURE_TOOLS",
                       os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "tests/torture"))
with open(harness.SVCD, "rb") as program:
    IS_SANITIZED = b"__asan_init" in program.read()
SHIM = os.path.join(TOOLS, "libshim_fail.so" if IS_SANITIZED else "libshim_fail_heap.so")
DISK = ["EIO", "ENOSPC"]
# Left out is what does not fail for a descriptor that is open: close, fcntl, getsockname, ioctl. The columns:
# function, where the journal's helper process takes the place of kernel AIO, errors.
CASES = [
    ("io_setup", False, ["EAGAIN"]), ("io_submit", False, ["EIO", "ENOSPC", "EAGAIN"]),
    ("io_result", False, ["EIO", "ENOSPC", "short"]),
    ("write", False, ["EIO", "EAGAIN", "EPIPE", "short"]), ("pwrite", True, DISK + ["short"]),
    ("fdatasync", True, DISK), ("fdatasync", False, DISK), ("fsync", True, DISK), ("fsync", False, DISK),
    ("openat", False, ["EIO", "EMFILE", "ENOSPC"]), ("fallocate", False, DISK),
    ("ftruncate", False, DISK), ("renameat", False, DISK), ("unlinkat", False, DISK),
    ("mmap", False, ["ENOMEM"]), ("mmap", True, ["ENOMEM"]),
    ("malloc", False, ["ENOMEM"]), ("calloc", False, ["ENOMEM"]), ("realloc", False, ["ENOMEM"]),
    ("accept4", False, ["EMFILE", "ENFILE", "ECONNABORTED"]),
    ("read", False, ["EINTR", "EAGAIN", "ECONNRESET", "short"]), ("recv", False, ["EAGAIN", "ECONNRESET", "short"]),
    ("recv", True, ["EINTR", "EIO"]), ("sendmsg", True, ["EAGAIN", "EPIPE"]),
    ("sendmsg", False, ["EINTR", "EAGAIN", "ECONNRESET", "EPIPE"]),
    ("send", False, ["EINTR", "EAGAIN", "ECONNRESET", "EPIPE", "short"]),
    ("socket", False, ["EMFILE", "ENOMEM"]), ("connect", False, ["ECONNREFUSED", "ENETUNREACH"]),
    ("epoll_ctl", False, ["ENOMEM"]), ("epoll_wait", False, ["EINTR"]),
    ("epoll_create1", False, ["EMFILE"]), ("eventfd", False, ["EMFILE"]), ("pipe2", False, ["EMFILE"]),
    ("socketpair", False, ["EMFILE"]), ("socketpair", True, ["EMFILE"]), ("memfd_create", True, ["EMFILE"]),
    ("bind", False, ["EADDRINUSE"]), ("listen", False, ["EADDRINUSE"]),
    ("getpeername", False, ["ENOTCONN"]), ("setsockopt", False, ["ENOBUFS"]), ("getsockopt", False, ["ENOBUFS"]),
    ("flock", False, ["ENOLCK"]), ("mkdir", False, ["ENOSPC"]),
]
HEAP = {"malloc", "calloc", "realloc"}
# What ends the process: base/mem and MUST with a message, libuv without one (docs/operations/security.md) when epoll_ctl
# fails, or the pipe for signals that it makes at the start.
ABORTING = {"malloc": "svcd: ", "calloc": "svcd: ", "realloc": "svcd: ", "mmap": "svcd: ", "epoll_ctl": "", "pipe2": ""}
REQUEST_S = harness.DEADLINE_S
TWO_PARTS_BYTES = 20000  # more than are copied behind the head of a request (fetch_channel.c)


class Script:
    """One run's requests and what came of them."""

    def __init__(self, server, receivers):
        self.server, self.receivers = server, receivers
        self.present, self.absent, self.refused = {}, set(), set()
        self.events, self.has_webhooks = set(), False
        self.connection = None

    def request(self, method, target, body=None, fresh=False):
        """(status, JSON), or (None, None) when there was no answer."""
        if self.connection is None or fresh:
            self.close()
            self.connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=REQUEST_S)
        try:
            self.connection.request(method, target, None if body is None else json.dumps(body))
            answer = self.connection.getresponse()
            data = answer.read()
            return answer.status, json.loads(data) if data else None
        except (OSError, http.client.HTTPException) as problem:
            self.close()
            if isinstance(problem, TimeoutError) and self.server.process.poll() is None:
                raise AssertionError(f"{method} {target}: no answer in {REQUEST_S} s") from problem
            return None, None

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def insert(self, number, fresh=False):
        status, body = self.request("POST", "/Shop.Message", {"No": number}, fresh)
        if status == 201:
            self.present[body[0]["Id"]] = number
        elif status is not None:
            self.refused.add(number)

    def change(self, ident, number):
        self.present.pop(ident)
        status, _ = self.request("PATCH", f"/Shop.Message/Id={ident}", {"No": number})
        if status == 200:
            self.present[ident] = number

    def delete(self, ident):
        self.present.pop(ident)
        status, body = self.request("DELETE", f"/Shop.Message/Id={ident}")
        if status == 200 and body == [{"Count": 1}]:
            self.absent.add(ident)

    def event(self, number, note=""):
        payload = {"No": number, "Note": note}
        status, body = self.request("POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": payload})
        if status == 201:
            self.events.add(body[0]["Id"])

    def run(self):
        statuses = [self.request("POST", "/Svc.Admin.Webhook", {
            "Destination": receiver.url(), "EventSelector": "/Shop.OrderPlaced",
            "Delivery": {"RetrySchedule": [0.1] * 30}})[0] for receiver in self.receivers.both]
        self.has_webhooks = statuses == [201, 201]
        for number in range(4):
            self.insert(number)
        for number, ident in enumerate(list(self.present)[:2], 10):
            self.change(ident, number)
        for ident in list(self.present)[2:3]:
            self.delete(ident)
        if self.has_webhooks:
            self.event(20)
            self.event(21, "x" * TWO_PARTS_BYTES)
        self.request("GET", "/Shop.Message/No<100/orderby=No")
        self.request("GET", "/Shop.Nothing")
        self.insert(5, fresh=True)
        self.insert(6, fresh=True)
        self.close()

    def have_arrived(self):
        return all(self.events <= arrived for arrived in self.receivers.arrived)

    def check(self):
        """Yields what is wrong after a restart."""
        answer = self.server.request("GET", "/Shop.Message")
        found = {e["Id"]: e["No"] for e in (answer.json() if answer.status == 200 else [])}
        for ident, number in self.present.items():
            if found.get(ident) != number:
                yield f"entity {ident} was acknowledged with {number}, there is {found.get(ident)}"
        for ident in self.absent & set(found):
            yield f"entity {ident} is back"
        for number in self.refused & set(found.values()):
            yield f"insert {number} was refused, but is there"
        try:
            harness.wait_until(self.have_arrived, "events")
        except AssertionError:
            missing = [len(self.events - arrived) for arrived in self.receivers.arrived]
            yield f"{missing} acknowledged events did not arrive"


class Receivers:
    """One for each way out, and what has arrived there."""
    authority = certificate = None

    def __init__(self):
        self.arrived = [set(), set()]
        self.both = [harness.Receiver(self.taker(0)), tls.TlsReceiver(self.certificate, self.taker(1))]

    def taker(self, which):
        return lambda request: self.arrived[which].add(request.headers["webhook-id"])

    def close(self):
        for receiver in self.both:
            receiver.close()


def set_up(fault, helper):
    server = harness.Server(dict(harness.load_config(harness.SHOP),
                                 Delivery={"CaFile": Receivers.authority.file}))
    server.env.update(TORTURE_FAIL=fault, LD_PRELOAD=SHIM)
    server.env["ASAN_OPTIONS"] = "verify_asan_link_order=0:" + server.env.get("ASAN_OPTIONS", "")
    if helper:
        server.env["TORTURE_HELPER"] = "1"
    return server


def start(server):
    """False when it ended instead."""
    try:
        server.start()
        return True
    except AssertionError as problem:
        if "the server ended" not in str(problem):
            raise
        return False


def end_of(server, call):
    """Yields what is wrong with how the server ended."""
    try:
        status = server.process.wait(timeout=harness.DEADLINE_S)
    except subprocess.TimeoutExpired:
        server.kill()
        yield "it hangs"
        return
    server.read_rest()
    log = "\n".join(server.log)
    if status < 0:
        if status != -signal.SIGABRT or ABORTING.get(call, "\0") not in log:
            yield f"it ended by signal {-status}: {log[-600:]}"
    elif status != 0 and len(server.log) == 0:
        yield f"it ended with status {status} without a message"
    if "Sanitizer" in log:
        yield log[-1500:]


def wait_settled(script):
    """False when it goes on delivering, or has ended. A request without an answer tells nothing."""
    def has_ended():
        return script.server.process.poll() is not None

    def is_settled():
        status, found = script.request("GET", "/Svc.Admin.Delivery/_/select=State")
        return has_ended() or status == 204 or (status == 200 and all(
            delivery["State"] in ("Delivered", "Dead") for delivery in found))
    try:
        harness.wait_until(is_settled, "every delivery is made", 3)
    except AssertionError:
        return False
    time.sleep(0.1)
    return not has_ended()


def settled_digest(script):
    """The state's digest, or None: events are still on their way, or the server has ended."""
    is_settled = wait_settled(script) and script.have_arrived()
    script.close()
    try:
        return script.server.digest() if is_settled else None
    except (AssertionError, ProcessLookupError):
        return None


def one_run(call, helper, error, number):
    """What is wrong in a run with this fault."""
    value = error if error == "short" else getattr(errno, error)
    problems, receivers = [], Receivers()
    server = set_up(f"{call}:{number}:{value}", helper)
    script = Script(server, receivers)
    digest = None
    try:
        if start(server):
            script.run()
            if server.process.poll() is None:
                digest = settled_digest(script)
                server.process.send_signal(signal.SIGTERM)
        problems += end_of(server, call)
        server.log = []
        server.env = dict(os.environ)
        server.start()
        if digest is not None and server.digest() != digest:
            problems.append("the state differs after a restart")
        problems += script.check()
        if server.stop() != 0:
            problems.append("the server without faults did not stop cleanly")
    except (AssertionError, OSError, http.client.HTTPException, subprocess.TimeoutExpired) as problem:
        problems.append(repr(problem))
    finally:
        receivers.close()
        server.remove()
    return problems


def count_calls(call, helper):
    receivers = Receivers()
    server = set_up(f"{call}:0:short", helper)
    server.env["TORTURE_COUNT"] = os.path.join(server.directory, "count")
    try:
        server.start()
        script = Script(server, receivers)
        script.run()
        wait_settled(script)
        script.close()
        server.stop()
        with open(server.env["TORTURE_COUNT"], encoding="ascii") as file:
            return max(int(line) for line in file)
    except FileNotFoundError:
        return 0
    finally:
        receivers.close()
        server.remove()


def numbers(count, tries, rng):
    if tries == 0 or count <= tries:
        return list(range(1, count + 1))
    return sorted(rng.sample(range(1, count + 1), tries))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="every N (hours for the allocations)")
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("--calls", help="only these functions, separated by commas")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=4)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    tries = 0 if options.all else options.tries
    wanted = options.calls.split(",") if options.calls else None
    cases = [case for case in CASES if (wanted is None or case[0] in wanted)
             and not (IS_SANITIZED and case[0] in HEAP)]
    passed = failed = 0
    directory = tempfile.TemporaryDirectory(prefix="svcd-test-")
    Receivers.authority = tls.Authority(directory.name, "authority")
    Receivers.certificate = Receivers.authority.sign("127.0.0.1")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        counts = list(pool.map(lambda case: count_calls(case[0], case[1]), cases))
        runs = [(call, helper, error, number) for (call, helper, errors), count in zip(cases, counts)
                for error in errors for number in numbers(count, tries, rng)]
        for run, problems in zip(runs, pool.map(lambda run: one_run(*run), runs)):
            passed += not problems
            failed += bool(problems)
            for problem in problems:
                print(f"{run[0]}:{run[3]}:{run[2]}{' (helper)' if run[1] else ''}: {problem}", flush=True)
    for (call, helper, errors), count in zip(cases, counts):
        print(f"{call}{' (helper)' if helper else ''}: {count} calls, "
              f"{len(numbers(count, tries, rng))} numbers, {len(errors)} errors")
    directory.cleanup()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

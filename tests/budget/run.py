#!/usr/bin/env python3
"""Counts what a request costs and compares it with what it may cost.

Instructions are counted by callgrind and are the same on any day and under any load; system calls are
counted in a log of strace. Each path has a server of its own, is warmed up, and then sends requests one
at a time, each when the server has nothing left to do from the one before: the cost of a request alone,
which no batching hides. On a busy machine more timers run between two requests, and what is ready together is not
always the same: a path over its budget is measured again, and the least figures count. Requests are those of a client with a key that comes through a proxy: each has an
Authorization, and an X-Forwarded-For that is another than the one before. The budgets are in instructions.txt
and calls.txt beside this file. A figure over its budget by more than the tolerance fails; `--write` makes what
was counted the new budget.

    SVCD=build/optimized/svcd tests/budget/run.py [--write] [PATH...]"""
import argparse
import collections
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SVCD = os.environ.get("SVCD", "build/optimized/svcd")
HERE = os.path.dirname(os.path.abspath(__file__))
TOLERANCE = 0.03
# What one wait finds ready together is a matter of timing.
TOLERANCES = {"epoll_wait": 0.2}
# Of calls a request; a rare one (a timer, the log) is not a change.
CALLS_SLACK = 0.05
WARM_UP = 100
REQUESTS = 200
START_S = 60
TRIES = 4
FILL_S = 1.5  # an idle server first fills journal segments
# After each request. The outcome of a delivery is written when the server next wakes for something,
# at the latest for retention, 20 ms later: each event is to pay for its own.
QUIET_S = {"event": 0.035}
QUIET_OTHERS_S = 0.002
KEY = "a key for the budget"
CONFIG = {"Listen": ["127.0.0.1:0"], "RequireApiKey": True, "ApiKeys": [
    {"Name": "budget", "KeySha256": hashlib.sha256(KEY.encode()).hexdigest(),
     "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}], "Resources": [
    {"Name": "Budget.Item", "Kind": "EntityResource", "Description": "Any object"},
    {"Name": "Budget.Placed", "Kind": "EventResource", "Description": "Any object"}]}
ITEM = {"Label": "order", "Customer": "someone@example.com", "Amount": 1250.5, "Text": "x" * 300}
PAYLOAD = {"OrderNo": 1, "Customer": "someone@example.com", "Amount": 1250.5, "Country": "NO"}
EVENT = {"Resource": "Budget.Placed", "Payload": PAYLOAD}
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Receiver:
    """Answers 200 to each delivery, and says when one was answered."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.answered = threading.Semaphore(0)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        client = Client(connection)
        while client.message() is not None:
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            self.answered.release()


class Client:
    """Whole HTTP messages over a connection that stays open."""

    def __init__(self, connection):
        self.socket = connection
        self.stream = connection.makefile("rb")
        self.sent = 0

    def message(self):
        """(first line, body), or None at the end."""
        first = self.stream.readline()
        length = 0
        while True:
            line = self.stream.readline()
            if not line:
                return None
            if line == b"\r\n":
                return first, self.stream.read(length)
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])

    def send(self, method, target, body=None):
        content = b"" if body is None else json.dumps(body, separators=(",", ":")).encode()
        self.sent += 1
        head = (f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: apikey {KEY}\r\n"
                f"X-Forwarded-For: 192.0.2.{self.sent % 250}\r\n")
        if body is not None:
            head += f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n"
        self.socket.sendall(head.encode() + b"\r\n" + content)
        first, answer = self.message()
        if b" 20" not in first:
            raise RuntimeError(f"{method} {target}: {first!r} {answer!r}")
        return json.loads(answer)


class Server:
    """The server under a tool that watches it."""

    def __init__(self, tool):
        self.directory = tempfile.mkdtemp(prefix="svcd-budget-")
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            os.chmod(path, 0o600)
            json.dump(dict(CONFIG, DataDirectory=os.path.join(self.directory, "data")), file)
        self.output = os.path.join(self.directory, "counts")
        self.log = open(os.path.join(self.directory, "log"), "w+b")
        self.process = subprocess.Popen([*tool(self.output), SVCD, "--config", path],
                                        stdout=subprocess.DEVNULL, stderr=self.log)
        self.client = Client(socket.create_connection(("127.0.0.1", self._port())))
        time.sleep(FILL_S)

    def _port(self):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.process.poll() is None:
            found = re.search(rb"listening on \S+, port (\d+)", self._read_log())
            if found:
                return int(found.group(1))
            time.sleep(0.05)
        raise RuntimeError("the server does not start:\n" + self._read_log().decode())

    def _read_log(self):
        with open(self.log.name, "rb") as file:
            return file.read()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.directory)


    def wait_asleep(self):
        """Until it waits for something, and not for a processor."""
        for _ in range(10000):
            with open(f"/proc/{self.process.pid}/stat", encoding="ascii", errors="replace") as file:
                if file.read().rpartition(")")[2].split()[0] == "S":
                    return
            time.sleep(0.001)
        raise RuntimeError("the server is never idle")


class Instructions:
    """Counted between two commands to callgrind."""
    name = "instructions"

    @staticmethod
    def tool(output):
        return ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={output}"]

    def __init__(self, server):
        self.server = server
        self._control("--zero")

    def _control(self, what):
        subprocess.run(["callgrind_control", what, str(self.server.process.pid)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def stop(self, requests):
        self._control("--dump")
        total = 0
        for path in glob.glob(self.server.output + ".1*"):
            with open(path, encoding="utf-8") as file:
                total += int(re.search(r"^totals: (\d+)", file.read(), re.M).group(1))
        return {"total": total / requests}


class Calls:
    """Counted in the part of the log that the requests added. strace gets the server's signals."""
    name = "calls"

    @staticmethod
    def tool(output):
        return ["strace", "-D", "-qq", "-f", "-o", output, "-e", "signal=none"]

    def __init__(self, server):
        self.server = server
        self.start = len(self._lines())

    def _lines(self):
        with open(self.server.output, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()

    def stop(self, requests):
        time.sleep(0.2)
        found = collections.Counter()
        for line in self._lines()[self.start:]:
            call = re.match(r"\d+ +(\w+)\(", line)
            if call:
                found[call.group(1)] += 1
        return {call: count / requests for call, count in found.items()}


def prepare_get(server, receiver):
    del receiver
    made = server.client.send("POST", "/Svc.Admin.Webhook",
                              {"Destination": "http://127.0.0.1:9/hook", "IsPaused": True,
                               "EventSelector": "/Budget.Placed/Amount>100"})
    return lambda: server.client.send("GET", f"/Svc.Admin.Webhook/Id={made[0]['Id']}")


def prepare_list(server, receiver):
    prepare_get(server, receiver)
    return lambda: server.client.send("GET", "/Svc.Admin.Webhook")


def prepare_post(server, receiver):
    del receiver
    return lambda: server.client.send("POST", "/Budget.Item", ITEM)


def prepare_event(server, receiver):
    """One webhook matches; the delivery is signed, received and logged."""
    server.client.send("POST", "/Svc.Admin.Webhook",
                       {"Destination": f"http://127.0.0.1:{receiver.port}/hook",
                        "EventSelector": "/Budget.Placed/Amount>100",
                        "Signing": {"Secrets": [SECRET]}})

    def send():
        server.client.send("POST", "/Svc.Event", EVENT)
        if not receiver.answered.acquire(timeout=30):
            raise RuntimeError("a delivery did not arrive")
    return send


PATHS = {"get": prepare_get, "list": prepare_list, "post": prepare_post, "event": prepare_event}


def measure(path, counter):
    server = Server(counter.tool)
    try:
        send = PATHS[path](server, Receiver())
        for number in range(WARM_UP + REQUESTS):
            if number == WARM_UP:
                counting = counter(server)
            send()
            time.sleep(QUIET_S.get(path, QUIET_OTHERS_S))
            server.wait_asleep()
        return counting.stop(REQUESTS)
    finally:
        server.stop()


def measure_least(path, counter, allowed):
    """The least of each count, of as many measurements as it takes until none is over its budget."""
    counts = measure(path, counter)
    for _ in range(TRIES - 1):
        if not over_budget(path, counts, allowed):
            break
        again = measure(path, counter)
        counts = {what: min(counts.get(what, 0), again.get(what, 0)) for what in {*counts, *again}}
    return counts


def budget_file(counter):
    return os.path.join(HERE, counter.name + ".txt")


def read_budget(counter):
    """{path: {what: count}} of lines `path what count`."""
    budget = collections.defaultdict(dict)
    with open(budget_file(counter), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                path, what, count = line.split()
                budget[path][what] = float(count)
    return budget


def write_budget(counter, counted):
    with open(budget_file(counter), encoding="utf-8") as file:
        lines = [line for line in file
                 if line.startswith("#") or line.split()[:1] and line.split()[0] not in counted]
    for path, counts in counted.items():
        for what, count in sorted(counts.items()):
            if count >= CALLS_SLACK:
                digits = 0 if count > 100 else 2
                lines.append(f"{path} {what} {count:.{digits}f}\n")
    with open(budget_file(counter), "w", encoding="utf-8") as file:
        file.writelines(lines)


def over_budget(path, counts, allowed):
    """As text."""
    over = []
    for what in sorted({*counts, *allowed}):
        count, budget = counts.get(what, 0), allowed.get(what, 0)
        tolerance = TOLERANCES.get(what, TOLERANCE)
        if count > budget * (1 + tolerance) + CALLS_SLACK:
            over.append(f"{path}: {count:,.2f} {what}, budget {budget:,.2f}")
    return over


def tell_lower(path, counts, allowed):
    for what, budget in sorted(allowed.items()):
        count, tolerance = counts.get(what, 0), TOLERANCES.get(what, TOLERANCE)
        if count < budget * (1 - tolerance) - CALLS_SLACK:
            print(f"  {path}: {count:,.2f} {what} is less than the budget of {budget:,.2f}: lower it")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make the counts the budget")
    parser.add_argument("path", nargs="*", help=" ".join(PATHS))
    options = parser.parse_args()
    passed = failed = 0
    for counter in (Instructions, Calls):
        budget = read_budget(counter)
        counted = {path: measure_least(path, counter, budget[path])
                   for path in options.path or PATHS}
        if options.write:
            write_budget(counter, counted)
            continue
        for path, counts in counted.items():
            print(f"{path}: {sum(counts.values()):,.2f} {counter.name}")
            tell_lower(path, counts, budget[path])
            over = over_budget(path, counts, budget[path])
            print("".join(f"  OVER {line}\n" for line in over), end="")
            passed, failed = passed + (not over), failed + bool(over)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

"""What the black-box tests share: the real server as a process, a plain HTTP client, a receiver for
its deliveries, and a base class whose every test ends with digest, restart, compare."""
import fcntl
import functools
import glob
import hashlib
import http.client
import json
import os
import queue
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

SVCD = os.environ.get("SVCD", "build/svcd")
SHOP = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "examples", "example.json")
# A slow machine, or one that a tool makes slow, needs more.
PATIENCE = int(os.environ.get("SVCD_PATIENCE", "1"))
DEADLINE_S = 300 * PATIENCE  # only what fails takes as long
# The sanitizer keeps freed memory aside, by default more than tests of the server's memory allow it.
SMALL_QUARANTINE = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"}
# One at a time: until its own packages are built, each of several at once would build them all.
GO = ["flock", os.path.dirname(SHOP), "go"]
GO_ENV = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": ""}
FAKETIME = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")
# What tests fetch, for all checkouts: as in tools/lib/packages.sh.
FETCHED = os.environ.get("SVCD_FETCHED") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "svcd-tests")


def fetched(name, versions, install):
    """A directory, where install(directory) was run once for these versions (a text) and this Python: by whoever comes
    first."""
    versions += sys.executable + sys.version
    directory = os.path.join(FETCHED, f"{name}-{hashlib.sha256(versions.encode()).hexdigest()[:12]}")
    mark = os.path.join(directory, "installed")
    os.makedirs(FETCHED, exist_ok=True)
    with open(directory + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(mark):
            shutil.rmtree(directory, ignore_errors=True)
            os.makedirs(directory)
            install(directory)
            with open(mark, "w", encoding="ascii"):
                pass
    return directory


@functools.cache
def taken_port():
    """Bound, so that nobody else gets it, and never listened at."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken


def nobody():
    """An address at which nobody listens, for as long as this process lives."""
    return "http://127.0.0.1:%d" % taken_port().getsockname()[1]


@functools.cache
def is_sanitized():
    with open(os.environ.get("SVCD_PROGRAM", SVCD), "rb") as file:
        return b"__asan_init" in file.read()


def load_config(path):
    with open(path, encoding="utf-8") as file:
        return json.loads("".join(line for line in file if not line.lstrip().startswith("//")))


def wait_until(condition, what, seconds=DEADLINE_S, pause_s=0.05):
    """Waits for a condition that the server brings about; fails with `what` when it does not. It is looked at less often
    the longer it takes, with `pause_s` at last between two looks: a request a look would take more of the processors than
    what is waited for, and a program a look far more."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < seconds:
        result = condition()
        if result:
            return result
        time.sleep(min(pause_s / 5 + waited / 20, pause_s))
    raise AssertionError(f"not within {seconds} s: {what}")


def end(sock):
    """Closes a socket that a thread may wait at: without the shutdown that one would go on, at what is given the number
    next if a signal has it ask again, and the address would stay taken."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is not connected, or was closed before
    sock.close()


def is_readable(sock):
    """Is there something, or the end?"""
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def state_of(pid):
    """The letter that ps shows."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
        return file.read().rpartition(")")[2].split()[0]


class Fields(http.client.HTTPMessage):
    """Header fields; as text, one a line."""

    def __str__(self):
        return "".join(f"{name}: {value}\n" for name, value in self.items())


def read_fields(stream, _class=Fields):
    """Instead of the parser of mails that http.client has, for which most of a request's time would go. What is no
    field is an error here."""
    fields, count = _class(), 0
    while line := stream.readline(65537).decode("latin-1").rstrip("\r\n"):
        name, colon, value = line.partition(":")
        count += 1
        if not colon or line[0] in " \t" or len(line) > 65536 or count > http.client._MAXHEADERS:
            raise http.client.HTTPException(f"no header field, or too much of them: {line[:400]}")
        fields[name] = value.lstrip(" \t")
    return fields


http.client.parse_headers = read_fields


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {dict(self.headers)} {self.body[:400]!r}"


def read_answer(stream):
    """The next one on a connection; not of a HEAD, whose body does not come."""
    status = int(stream.readline().split()[1])
    fields = read_fields(stream)
    return Answer(status, fields, stream.read(int(fields.get("Content-Length") or 0)))


class Server:
    """One svcd process over one data directory, which outlives it."""

    def __init__(self, config=None, env=None):
        self.directory = tempfile.mkdtemp(prefix="svcd-test-")
        self.data = os.path.join(self.directory, "data")
        self.config = load_config(SHOP) if config is None else config
        self.config_mode = 0o600  # it may hold keys
        self.listen = ["127.0.0.1:0"]
        self.wrapper = []  # a command that becomes the server
        self.env = dict(os.environ, **(env or {}))
        self.keeps_connections = False
        self.kept = threading.local()
        self.process = None
        self.reader = None
        self.port = None
        self.log = []

    def write_config(self, copy_terms=True):
        """The configuration as a file, with what belongs beside it. Returns its path."""
        config = dict(self.config)
        config["Listen"] = self.listen
        config["DataDirectory"] = self.data
        config.setdefault("Hosts", ["x"])  # as tests that write requests byte by byte call it
        config.setdefault("SegmentBytes", 1 << 20)  # three are made at each first start
        # A test's own client may stand still on a loaded machine: what is too slow is not the machine's to say.
        config["Limits"] = {"BodyGraceSeconds": 30, **config.get("Limits", {})}
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(json.dumps(config))  # json.dump would make it without the encoder in C
        os.chmod(path, self.config_mode)
        if copy_terms:
            shutil.copy(os.path.join(os.path.dirname(SHOP), "terms.txt"), self.directory)
        return path

    def start(self):
        path = self.write_config()
        self.process = subprocess.Popen([*self.wrapper, SVCD, "--config", path],
                                        stderr=subprocess.PIPE, env=self.env)
        self.port = None
        self.reader = threading.Thread(target=self._read_log, args=(self.process,), daemon=True)
        self.reader.start()
        wait_until(lambda: self.port or self.process.poll() is not None, "the server listens")
        if self.port is None:
            self.read_rest()
            raise AssertionError("the server ended:\n" + "\n".join(self.log))
        return self

    def _read_log(self, process):
        for line in process.stderr:
            text = line.decode("utf-8", "replace").rstrip("\n")
            self.log.append(text)
            found = re.search(r"listening on \S+(?:, port |:)(\d+)$", text)
            if found:
                self.port = int(found.group(1))

    def read_rest(self):
        """Of a process that has ended: then all that it said is in the log."""
        self.reader.join(DEADLINE_S)

    def wait_for_line(self, text):
        """The first line of the log with this text, when it is there."""
        return wait_until(lambda: next((line for line in self.log if text in line), None), f"the log says: {text}")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """SIGTERM; returns the exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=DEADLINE_S)

    def digest(self):
        """The state's digest, as the server logs it on SIGUSR1."""
        return self.digest_and_serial()[0]

    def digest_and_serial(self):
        """With the serial of the last record that it is of."""
        seen = len(self.log)
        self.process.send_signal(signal.SIGUSR1)

        def find():
            has_ended = self.process.poll() is not None
            if has_ended:
                self.read_rest()
            for line in self.log[seen:]:
                found = re.search(r"digest (\w+) of (\d+) objects, serial (\d+)", line)
                if found:
                    return found.groups()[:2], int(found.group(3))
            assert not has_ended, "the server ended without a digest"
            return None
        return wait_until(find, "a digest in the log")

    def remove(self):
        if self.process and self.process.poll() is None:
            self.kill()
        if self.process:
            # What a child of the server may hold open has no end: then the stream is left to its reader, which
            # reads on while another closes it.
            self.reader.join(5)
            if not self.reader.is_alive():
                self.process.stderr.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def request(self, method, target, body=None, headers=None, raw=False):
        """One request on a connection of its own, or on that of the thread when the server keeps them. A body that is not
        bytes is sent as JSON."""
        data = body
        if body is not None and not isinstance(body, bytes):
            data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        connection = self.connection()
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        except BaseException:
            connection.close()  # nobody knows what comes on it next
            raise
        finally:
            if not self.keeps_connections:
                connection.close()

    def connection(self):
        """A new one, or the thread's own to this process, unless the server has closed that since."""
        kept = getattr(self.kept, "connection", None)
        if kept and kept.port == self.port and not (kept.sock and is_readable(kept.sock)):
            return kept
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE_S)
        if self.keeps_connections:
            self.kept.connection = connection
        return connection

    def raw(self, data, half_close=False, seconds=DEADLINE_S):
        """Sends bytes as they are and returns all that comes back until the server closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=seconds) as s:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            received = b""
            while True:
                try:
                    part = s.recv(65536)
                except (ConnectionResetError, socket.timeout):
                    break
                if not part:
                    break
                received += part
            return received

    def at_once(self, target, headers):
        """GETs that come in one piece, one with each of the header fields. Returns what is answered to them."""
        data = ""
        for fields in headers:
            lines = [f"GET {target} HTTP/1.1", "Host: x", *(f"{name}: {text}" for name, text in fields.items())]
            data += "\r\n".join(lines) + "\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE_S) as s, s.makefile("rb") as stream:
            s.sendall(data.encode())
            return [read_answer(stream) for _ in headers]

    def tasks(self):
        return os.listdir(f"/proc/{self.process.pid}/task")


class Received:
    def __init__(self, method, path, headers, body):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.time = time.monotonic()

    def json(self):
        return json.loads(self.body)


class Receiver:
    """Takes the server's deliveries on a loopback address. `script` is called with each request and
    returns the status to answer, or (status, headers, body); None answers 200. Raising Drop closes
    without an answer."""

    class Drop(Exception):
        pass

    def __init__(self, script=None, address="127.0.0.1", port=0):
        self.script = script
        self.address = address
        self.requests = queue.Queue()
        self.socket = socket.create_server((address, port), backlog=512)
        self.port = self.socket.getsockname()[1]
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path="/hook"):
        return f"http://{self.address}:{self.port}{path}"

    def _accept(self):
        while not self.closed:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, connection.makefile("rb") as stream:
            while not self.closed:
                try:
                    request = self._read(stream)
                    if request is None:
                        return
                    answer = self.script(request) if self.script else None
                    self.requests.put(request)
                    connection.sendall(self._format(answer))
                except (Receiver.Drop, OSError):
                    return

    @staticmethod
    def _read(stream):
        line = stream.readline(65536).decode("latin-1").split()
        if len(line) < 3:
            return None
        headers = read_fields(stream)
        body = stream.read(int(headers.get("Content-Length") or 0))
        return Received(line[0], line[1], headers, body)

    @staticmethod
    def _format(answer):
        status, headers, body = answer if isinstance(answer, tuple) else (answer or 200, {}, b"")
        lines = [f"HTTP/1.1 {status} Answer", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + body

    def take(self, seconds=DEADLINE_S):
        """The next request that arrived."""
        return self.requests.get(timeout=seconds)

    def nothing(self, seconds=0.3):
        """True when nothing arrives for so long."""
        try:
            self.requests.get(timeout=seconds)
            return False
        except queue.Empty:
            return True

    def forget(self):
        """What has arrived until now."""
        while not self.requests.empty():
            self.requests.get()

    def close(self):
        """The address is free at once."""
        self.closed = True
        end(self.socket)


def apart(test):
    """Marks a test that needs a server of its own, of a class whose others share one: it looks at all that there is, or
    leaves what others would see."""
    test.is_apart = True
    return test


class ServerCase(unittest.TestCase):
    """A test with a server of its own, or one of a class whose tests share one, in any order, as they look at nothing but
    what they made. When it has passed, or all that share one have, the state's digest is compared with that of a
    server restarted over the same journal after kill -9, and that one must stop cleanly. After a test that has failed the
    next has another server."""

    config = None
    env = None
    wrapper = []
    compares_digest = True
    keeps_connections = True  # to connect takes most of a small request's time; False where connections are looked at
    shares_server = False
    leaves_webhooks = False  # with a shared server: those of one test are paused when the next one comes
    last = None  # of those that share, the test that ran last, with their server

    def __init__(self, name="runTest"):
        super().__init__(name)
        if getattr(getattr(self, name, None), "is_apart", False):
            self.shares_server = False

    def setUp(self):
        last = self.shares_server and vars(type(self)).get("last")
        if last:
            self.server, type(self).last = last.server, self
            if self.leaves_webhooks:
                self.server.request("PATCH", "/Svc.Admin.Webhook/_/unsafe=true", {"IsPaused": True})
            return
        self.server = Server(self.make_config(), self.env)
        self.addCleanup(self.leave)
        self.server.wrapper = self.wrapper
        self.server.keeps_connections = self.keeps_connections
        self.prepare()
        self.server.start()
        if self.shares_server:
            type(self).last = self
        self.populate()

    def prepare(self):
        """What a test does before its server is started for the first time."""

    def populate(self):
        """What a server that has just been started for the first time is given, by the first of those that share it."""

    def make_config(self):
        return self.config

    def receiver(self, script=None, address="127.0.0.1"):
        receiver = Receiver(script, address)
        self.addCleanup(receiver.close)
        return receiver

    def leave(self):
        """The server, unless the next test has it too."""
        if vars(type(self)).get("last") is not self:
            self.server.remove()

    def tearDown(self):
        if self._failed() or self.server.process.poll() is not None:
            if self.shares_server:
                type(self).last = None
                self.leave()
        elif not self.shares_server:
            self.compare()

    @classmethod
    def tearDownClass(cls):
        last = vars(cls).get("last")
        if last:
            cls.last = None
            try:
                last.compare()
            finally:
                last.leave()

    def compare(self):
        if not self.compares_digest:
            return
        self.settle()
        for _ in range(20):
            if self.is_restored():
                break
        else:
            self.fail("each time the state changed while it was looked at")
        self.assertEqual(self.server.stop(), 0, "\n".join(self.server.log[-20:]))

    def is_restored(self):
        """Does a restart bring the state back? It cannot be told when something is recorded between the two
        digests: a delivery that waited is attempted again, say."""
        before, last = self.server.digest_and_serial()
        self.server.kill()
        self.server.start()
        after, now = self.server.digest_and_serial()
        if after != before and now > last:
            return False
        self.assertEqual(after, before, "the state differs after a restart")
        return True

    def settle(self):
        """Waits until no delivery is in flight, and what was answered last is on disk."""
        def is_settled():
            answer = self.server.request("REPORT", "/Svc.Admin.Delivery/State=InFlight")
            return answer.status != 200 or answer.json() == [{"Count": 0}]
        wait_until(is_settled, "no delivery is in flight")
        # The answer of a failed request does not wait for its error record, but one that counts them does.
        if self.server.request("REPORT", "/Svc.Admin.Error").status != 200:
            time.sleep(0.05)  # it needs a key

    def _failed(self):
        outcome = self._outcome
        errors = getattr(outcome, "errors", None)
        if errors is None:
            errors = outcome.result.failures + outcome.result.errors
            return any(test is self for test, _ in errors)
        return any(error for _, error in errors)

    def get(self, target, headers=None):
        return self.server.request("GET", target, headers=headers)

    def post(self, target, body, headers=None):
        return self.server.request("POST", target, body, headers)

    def created(self, target, body, headers=None):
        """POSTs and returns the first inserted entity."""
        answer = self.post(target, body, headers)
        self.assertEqual(answer.status, 201, answer)
        return answer.json()[0]

    def webhook(self, **members):
        return self.created("/Svc.Admin.Webhook", members)


# Whoever presents this may do everything, in KeyedCase.
ADMIN = {"Authorization": "apikey admin-key"}


def key(name, *allow, **more):
    """A key of the configuration, whose text is `<name>-key`; `allow` are pairs of resources and methods."""
    return {"Name": name, "KeySha256": hashlib.sha256(f"{name}-key".encode()).hexdigest(),
            "AllowAccess": [{"Resources": resources, "Methods": methods} for resources, methods in allow], **more}


class KeyedCase(ServerCase):
    """Keys are required; the configuration has the key `admin` with all rights."""

    def count(self, target, headers=None):
        answer = self.server.request("REPORT", target, headers=headers or ADMIN)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()[0]["Count"]

    def settle(self):
        for state in ("Pending", "InFlight"):
            wait_until(lambda: self.count(f"/Svc.Admin.Delivery/State={state}") == 0, "no delivery is under way")
        self.get("/Svc.Admin.Error", ADMIN)  # what was answered last is on disk

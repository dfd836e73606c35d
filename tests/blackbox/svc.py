"""What the tests of svc, the command line, share: running it, and a relay between it and the server
that can break streams, and speaks them for a server that does not."""
import fcntl
import http.client
import http.server
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

import harness

SVC = os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "svc")
DONE, REFUSED, MISUSE, NOT_REACHED = 0, 1, 2, 3


def read_to_end(terminal):
    """Of a terminal: its end is an error once nobody has it open."""
    received = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            return received
        if not part:
            return received
        received += part


class Background:
    """A command that goes on: its lines as they come."""

    def __init__(self, *words, env=None):
        self.process = subprocess.Popen([SVC, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=env)
        self.lines, self.errors = [], []
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.decode().rstrip("\n"))

    def wait_lines(self, count):
        harness.wait_until(lambda: len(self.lines) >= count or self.process.poll() is not None,
                           f"{count} lines")
        assert len(self.lines) >= count, (self.lines, self.errors)
        return self.lines

    def wait_error(self, part):
        harness.wait_until(lambda: any(part in line for line in self.errors), f"{part} is said")

    def interrupt(self):
        """Ctrl-C; returns the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self):
        status = self.process.wait(timeout=harness.DEADLINE_S)
        for reader in self.readers:
            reader.join(harness.DEADLINE_S)
        return status

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        self.process.stdout.close()
        self.process.stderr.close()


class CommandCase(unittest.TestCase):
    """A home of its own for svc. `url()` is the server's."""

    def setUp(self):
        super().setUp()
        self.commands = []
        home = tempfile.TemporaryDirectory(prefix="svc-home-")
        self.addCleanup(home.cleanup)
        self.home = home.name

    def environment(self, **more):
        known = {name: value for name, value in os.environ.items()
                 if not name.startswith(("SVC_", "XDG_")) and name not in ("NO_COLOR", "http_proxy")}
        return {**known, "HOME": self.home, "TZ": "UTC", "SVC_URL": self.url(), **more}

    def svc(self, *words, status=DONE, stdin=b"", **environment):
        """Runs a command to its end; returns what it printed, standard output and standard error."""
        result = subprocess.run([SVC, *words], input=stdin, capture_output=True, check=False,
                                timeout=harness.DEADLINE_S, env=self.environment(**environment))
        out, errors = result.stdout.decode(), result.stderr.decode()
        self.assertEqual(result.returncode, status, (words, out, errors))
        return out, errors

    def svc_json(self, *words, **options):
        return json.loads(self.svc(*words, "--json", **options)[0])

    def background(self, *words, **environment):
        command = Background(*words, env=self.environment(**environment))
        self.addCleanup(command.close)
        self.commands.append(command)
        return command

    def on_terminal(self, *words, columns=80, status=DONE, typed=None, **environment):
        """What a terminal is shown. With `typed` a person sits there: what is asked is on it too."""
        controller, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        env = self.environment(**{"TERM": "xterm", **environment})
        others = {"stderr": subprocess.PIPE} if typed is None else {"stdin": terminal, "stderr": terminal}
        with subprocess.Popen([SVC, *words], stdout=terminal, env=env, **others) as process:
            os.close(terminal)
            if typed is not None:
                os.write(controller, typed.encode())
            received = read_to_end(controller)
            os.close(controller)
            self.assertEqual(process.wait(timeout=harness.DEADLINE_S), status, received)
        return received.decode().replace("\r\n", "\n")

    def path(self, name, text, mode=0o600):
        """A file in the home."""
        path = os.path.join(self.home, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)
        return path


class SvcCase(CommandCase, harness.ServerCase):
    """With a server."""

    def tearDown(self):
        """What goes on would ask the server for something while its state is looked at."""
        for command in self.commands:
            command.close()
        super().tearDown()

    def url(self):
        return f"http://127.0.0.1:{self.server.port}"


class Relay:
    """Passes requests on to the server, wherever it listens now. `cut()` breaks the streams that are
    open, `down` refuses everything."""

    def __init__(self, case):
        relay = self
        self.case = case
        self.down = False
        self.epoch = 0
        self.streams = 0    # open now
        self.opened = []    # Last-Event-ID of each
        self.gap = None     # told at the beginning of the next stream

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self):
                relay.handle(self)

            do_GET = do_POST = do_PATCH = do_DELETE = do_REPORT = handle_any

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.down = True
        self.server.shutdown()
        self.server.server_close()

    def cut(self):
        self.epoch += 1
        harness.wait_until(lambda: self.streams == 0, "streams are cut")

    def handle(self, handler):
        handler.close_connection = True
        if self.down:
            return
        length = int(handler.headers.get("Content-Length") or 0)
        body = handler.rfile.read(length) if length else None
        if handler.headers.get("Accept") == "text/event-stream":
            self.stream(handler)
            return
        headers = {name: handler.headers[name] for name in ("Content-Type", "Authorization", "Prefer")
                   if handler.headers[name]}
        answer = self.case.server.request(handler.command, handler.path, body, headers)
        handler.send_response(answer.status)
        for name, value in answer.headers.items():
            if name not in ("Connection", "Date", "Transfer-Encoding"):
                handler.send_header(name, value)
        if "Content-Length" not in answer.headers:
            handler.send_header("Content-Length", "0")
        handler.end_headers()
        handler.wfile.write(answer.body)

    def events_after(self, handler, number):
        """Those that are kept, in order; None while the server is away."""
        path = handler.path + ("&" if handler.path.count("/") > 1 else "/") + f"ObjectNo%3E{number}"
        headers = {name: handler.headers[name] for name in ("Authorization",) if handler.headers[name]}
        try:
            answer = self.case.server.request("GET", path, None, headers)
        except (OSError, http.client.HTTPException):
            return None
        if answer.status not in (200, 204):
            return None
        return answer.json() if answer.status == 200 else []

    def stream(self, handler):
        """The server's own, byte by byte, or one put together from what it keeps."""
        self.opened.append(handler.headers.get("Last-Event-ID"))
        lines = [f"GET {handler.path} HTTP/1.1", "Host: x"]
        lines += [f"{name}: {handler.headers[name]}" for name in ("Accept", "Authorization", "Last-Event-ID")
                  if handler.headers[name]]
        try:
            with socket.create_connection(("127.0.0.1", self.case.server.port), harness.DEADLINE_S) as upstream:
                upstream.sendall("\r\n".join([*lines, "", ""]).encode())
                head = b""
                while b"\r\n\r\n" not in head:
                    part = upstream.recv(4096)
                    if not part:
                        return
                    head += part
                if head.startswith(b"HTTP/1.1 406 "):
                    own = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
                    self.serve(handler, own, self.make_pieces(handler))
                else:
                    end = head.index(b"\r\n\r\n") + 4
                    self.serve(handler, head[:end], self.read_pieces(upstream, head[end:]))
        except OSError:
            pass  # the server is away: so is the relay

    def serve(self, handler, head, pieces):
        epoch = self.epoch
        self.streams += 1
        try:
            handler.wfile.write(head)
            if self.gap:
                text = f"event: gap\ndata: {json.dumps(self.gap)}\n\n"
                is_chunked = b"transfer-encoding: chunked" in head.lower()
                handler.wfile.write((f"{len(text):x}\r\n{text}\r\n" if is_chunked else text).encode())
            for piece in pieces:
                handler.wfile.write(piece)
                if epoch != self.epoch or self.down:
                    break
        finally:
            self.streams -= 1

    @staticmethod
    def read_pieces(upstream, first):
        """What the server sends, and b"" while that is nothing."""
        yield first
        while True:
            ready, _, _ = select.select([upstream], [], [], 0.02)
            part = upstream.recv(65536) if ready else b""
            if ready and not part:
                return
            yield part

    def make_pieces(self, handler):
        last = handler.headers.get("Last-Event-ID")
        if last is None:  # what is new from now on
            last = ([{"ObjectNo": 0}] + (self.events_after(handler, 0) or []))[-1]["ObjectNo"]
        while True:
            found = self.events_after(handler, last)
            if found is None:
                return
            for event in found:
                last = event["ObjectNo"]
                yield f"id: {last}\nevent: {event['Resource']}\ndata: {json.dumps(event)}\n\n".encode()
            yield b""
            time.sleep(0.01)

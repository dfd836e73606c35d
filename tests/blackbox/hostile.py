"""Receivers that misbehave, and name servers that lie. A receiver's script gets each connection and does
with it what no well-meaning server would."""
import os
import random
import socket
import struct
import threading
import time

# The sanitizer keeps freed memory aside, by default more than tests of the server's memory allow it.
ENVIRONMENT = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=4"}
HEAD = b"HTTP/1.1 200 OK\r\n"


class Request:
    def __init__(self, head, body):
        self.head = head
        self.body = body

    def header(self, name):
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.lower().encode():
                return value.strip().decode()
        return None


class Connection:
    """What a script works with. Its methods raise OSError when the server has gone."""

    def __init__(self, receiver, sock, number):
        self.receiver = receiver
        self.socket = sock
        self.number = number
        self.rest = b""

    def more(self):
        part = self.socket.recv(65536)
        if not part:
            raise ConnectionError("the server has closed")
        self.rest += part

    def read_head(self):
        while b"\r\n\r\n" not in self.rest:
            self.more()
        head, _, self.rest = self.rest.partition(b"\r\n\r\n")
        return Request(head, b"")

    def read(self):
        """A whole request."""
        request = self.read_head()
        count = int(request.header("Content-Length") or 0)
        while len(self.rest) < count:
            self.more()
        request.body, self.rest = self.rest[:count], self.rest[count:]
        with self.receiver.lock:
            self.receiver.requests.append(request)
        return request

    def send(self, data):
        self.socket.sendall(data)
        with self.receiver.lock:
            self.receiver.sent += len(data)

    def repeat(self, data):
        """For ever, as fast as the server takes it."""
        while True:
            self.send(data)

    def trickle(self, data):
        """For ever, byte by byte."""
        while not self.receiver.closed:
            for byte in data:
                self.send(bytes([byte]))
                time.sleep(0.05)

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()

    def hang(self):
        """Until the server gives up."""
        while True:
            self.more()


class Hostile:
    """Runs a script for each connection; counts what it saw and sent. A script that returns closes."""

    def __init__(self, script, address="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.script = script
        self.socket = socket.create_server((address, port), family=family, backlog=128)
        self.port = self.socket.getsockname()[1]
        self.lock = threading.Lock()
        self.connections = 0
        self.requests = []
        self.sent = 0
        self.closed = False
        self.open = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, host="127.0.0.1", path="/hook"):
        return f"http://{host}:{self.port}{path}"

    def _accept(self):
        while not self.closed:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open.add(sock)
                number = self.connections
            threading.Thread(target=self._serve, args=(sock, number), daemon=True).start()

    def _serve(self, sock, number):
        try:
            self.script(Connection(self, sock, number))
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(sock)
            sock.close()

    def drop_all(self):
        """Ends all connections, as a receiver that restarts."""
        with self.lock:
            for sock in self.open:
                sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        """Its port is free then: the shutdown ends the accept that would keep it."""
        self.closed = True
        with self.lock:
            for sock in [self.socket, *self.open]:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        self.socket.close()


def on_one_port(scripts):
    """Receivers by address, all on one port that is free on each of them."""
    for _ in range(100):
        made = []
        try:
            for address, script in scripts.items():
                made.append(Hostile(script, address, made[0].port if made else 0))
            return made
        except OSError:
            for receiver in made:
                receiver.close()
    raise AssertionError("no port is free")


class Names:
    """A name server on 127.0.0.1. `answers` maps a name to a list of addresses, or to one of SERVFAIL,
    NXDOMAIN, SILENCE and GARBAGE; it may be changed at any time. Time to live: 0."""

    NXDOMAIN, SERVFAIL, SILENCE, GARBAGE = "nxdomain", "servfail", "silence", "garbage"
    CODES = {NXDOMAIN: 3, SERVFAIL: 2}
    FAMILIES = {1: socket.AF_INET, 28: socket.AF_INET6}

    def __init__(self, answers):
        self.answers = answers
        self.asked = {}
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                question, sender = self.socket.recvfrom(4096)
                answer = self._answer(question)
                if answer:
                    self.socket.sendto(answer, sender)
            except OSError:
                return

    @staticmethod
    def _name(question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1:at + 1 + question[at]].decode())
            at += 1 + question[at]
        return ".".join(labels).lower(), at + 1

    def _answer(self, question):
        name, end = self._name(question)
        kind, = struct.unpack_from("!H", question, end)
        self.asked[name] = self.asked.get(name, 0) + 1
        found = self.answers.get(name, Names.NXDOMAIN)
        if found == Names.SILENCE:
            return None
        if found == Names.GARBAGE:
            return question[:2] + random.randbytes(40)
        records = [] if isinstance(found, str) else self._records(found, kind)
        flags = 0x8180 | Names.CODES.get(found, 0) if isinstance(found, str) else 0x8180
        head = question[:2] + struct.pack("!5H", flags, 1, len(records), 0, 0)
        return head + question[12:end + 4] + b"".join(records)

    @staticmethod
    def _records(addresses, kind):
        family = Names.FAMILIES.get(kind)
        packed = [socket.inet_pton(family, address) for address in addresses
                  if family == (socket.AF_INET6 if ":" in address else socket.AF_INET)]
        return [struct.pack("!HHHIH", 0xc00c, kind, 1, 0, len(data)) + data for data in packed]

    def close(self):
        self.socket.close()


def expect_clean_end(case):
    """Stops the server, which says (with a sanitizer) what it has not given back, and starts it again."""
    case.settle()
    case.assertEqual(case.server.stop(), 0, "\n".join(case.server.log[-20:]))
    case.server.start()


def memory_kib(pid, member):
    """VmRSS or VmHWM."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(member + ":"):
                return int(line.split()[1])
    raise AssertionError(f"no {member}")

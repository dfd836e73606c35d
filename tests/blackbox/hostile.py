"""Receivers that misbehave, and name servers that lie. A receiver's script gets each connection and does
with it what no well-meaning server would."""
import os
import random
import select
import socket
import struct
import threading
import time

import harness
import tls

HEAD = b"HTTP/1.1 200 OK\r\n"
FORGED = b"HTTP/1.1 299 Forged\r\nContent-Length: 0\r\n\r\n"  # to be taken for no answer
# The webhook's time-out: of what lasts until then, and of what ends by itself, on however slow a machine.
TIMEOUT_S = 3 * harness.PATIENCE
PATIENT_S = 600
MEMORY_KIB = 64 * 1024
SENT_MOST = 64 << 20  # what fits into the buffers of many sockets, far from endless
TIMED_OUT = f"{TIMEOUT_S}000 ms were over while "
CONNECT_S = min(PATIENT_S, 300)  # the most there is


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
        self.raw = self.socket = sock
        self.number = number
        self.rest = b""

    def secure(self, context, piece=None):
        """From here on by TLS; with `piece`, no more bytes are sent at a time."""
        self.socket = tls.Secured(self.raw, context)
        if piece:
            self.raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket.piece = piece
        self.socket.shake_hands()

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

    def skip(self, count):
        """So many bytes of a body."""
        while len(self.rest) < count:
            count -= len(self.rest)
            self.rest = b""
            self.more()
        self.rest = self.rest[count:]

    def wait(self):
        """For what comes next, which stays where it is."""
        if not self.rest:
            self.raw.recv(1, socket.MSG_PEEK)

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
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.raw.close()

    def cut(self):
        """As when a process dies: TLS does not say that this is the end."""
        self.raw.close()

    def end(self):
        """As is right."""
        if self.socket is not self.raw:
            self.raw.sendall(self.socket.notify())
        self.raw.close()

    def wait_for_end(self):
        """Reads nothing until the server has closed."""
        poll = select.poll()
        poll.register(self.raw, select.POLLRDHUP)
        poll.poll()

    def hang(self):
        """Until the server gives up."""
        while True:
            self.rest = b""
            self.more()


class Hostile:
    """Runs a script for each connection; counts what it saw and sent. A script that returns closes. With a
    context it speaks TLS; as `https` alone it leaves that to the script."""

    def __init__(self, script, address="127.0.0.1", port=0, context=None, scheme=None):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.script = script
        self.context = context
        self.scheme = scheme or ("https" if context else "http")
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
        return f"{self.scheme}://{host}:{self.port}{path}"

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
        connection = Connection(self, sock, number)
        try:
            if self.context:
                connection.secure(self.context)
            self.script(connection)
            connection.end()
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
        """Its port is free then."""
        self.closed = True
        with self.lock:
            for sock in self.open:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        harness.end(self.socket)


class Mute:
    """Listens, but whoever connects is not answered: its queue is full."""

    def __init__(self, address="127.0.0.1", port=0):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.sockets = [socket.socket(family) for _ in range(4)]
        listener, *waiting = self.sockets
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(0)
        self.port = listener.getsockname()[1]
        for sock in waiting:
            sock.setblocking(False)
            sock.connect_ex(listener.getsockname())

    def close(self):
        for sock in self.sockets:
            sock.close()


def on_one_port(scripts, context=None):
    """Receivers by address, all on one port that is free on each of them."""
    for _ in range(100):
        made = []
        try:
            for address, script in scripts.items():
                made.append(Hostile(script, address, made[0].port if made else 0, context))
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
        self.closed = False
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while not self.closed:
            try:
                question, sender = self.socket.recvfrom(4096)
                answer = self._answer(question)
                if answer:
                    self.socket.sendto(answer, sender)
            except (IndexError, UnicodeDecodeError, struct.error):
                pass  # no question: what another one has sent late, to whoever had this port before
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
        self.closed = True
        harness.end(self.socket)


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


def answering(data, then=None):
    """Answers each request of a connection with bytes; then closes, or does what `then` says."""
    def script(c):
        while True:
            c.read()
            c.send(data)
            if then is None:
                return
            then(c)
    return script


def with_length(status, body=b"", headers=b""):
    return b"HTTP/1.1 %s\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Hostility(harness.ServerCase):
    """Subscriptions to receivers of any kind, and what the server tells of them."""

    env = harness.SMALL_QUARANTINE
    timeout_s = TIMEOUT_S  # of what lasts
    context = None  # of its receivers' TLS; None: they speak plain

    @property
    def timed_out(self):
        return TIMED_OUT.replace(str(TIMEOUT_S), str(self.timeout_s), 1)

    def make_config(self):
        return dict(harness.load_config(harness.SHOP),
                    Delivery={"MaxInFlight": 128, "ConnectSeconds": CONNECT_S})

    @property
    def scheme(self):
        return "https" if self.context else "http"

    def hostile(self, script, **options):
        receiver = Hostile(script, **dict({"context": self.context}, **options))
        self.addCleanup(receiver.close)
        return receiver

    def subscribe(self, url, schedule=(), method="POST", lasts=False, **delivery):
        """`lasts`: an attempt is expected to take all the time it has."""
        return self.webhook(Destination=url, EventSelector="/Shop.OrderPlaced", Method=method,
                            Delivery=dict({"TimeoutSeconds": self.timeout_s if lasts else PATIENT_S,
                                           "RetrySchedule": schedule}, **delivery))

    def raise_event(self, number=0):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number}})

    def raise_events(self, count):
        answer = self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": number}}
                                          for number in range(count)])
        self.assertEqual(answer.status, 201, answer)

    def log_of(self, webhook, count=1):
        """The webhook's log, when it has so many entries."""
        def entries():
            answer = self.get(f"/Svc.Admin.WebhookLog/WebhookId={webhook['Id']}")
            return answer.status == 200 and len(answer.json()) >= count and answer.json()
        return harness.wait_until(entries, f"{count} log entries")

    def delivery_of(self, webhook):
        return self.get(f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}").json()[0]

    def expect_bounded_memory(self, before):
        self.assertLess(memory_kib(self.server.process.pid, "VmHWM") - before, MEMORY_KIB)

    def memory(self):
        return memory_kib(self.server.process.pid, "VmRSS")

    def expect_outcomes(self, cases, **options):
        """All at once: while the worst of them last, a healthy receiver gets what is for it."""
        healthy = self.receiver()
        hanging = {}
        for what, (script, *expected) in cases.items():
            receiver = self.hostile(script, **options)
            hanging[what] = receiver, self.subscribe(receiver.url(), lasts=expected[-1]), expected
        longest = self.hostile(lambda c: c.hang(), **options)
        self.subscribe(longest.url())
        good = self.webhook(Destination=healthy.url(), EventSelector="/Shop.PersonCreated")
        before = self.memory()
        self.raise_event()
        for number in range(20):
            self.created("/Shop.Person", {"Name": f"Person {number}"})
            healthy.take()
        self.assertTrue(self.get("/Svc.Admin.Delivery/State=InFlight").json(), "one hangs still")
        longest.close()
        for what, (receiver, webhook, expected) in hanging.items():
            with self.subTest(what):
                self.expect_outcome(webhook, *expected)
                self.assertLessEqual(len(receiver.requests), 1)
                self.assertEqual(receiver.connections, 1)
                self.assertLess(receiver.sent, SENT_MOST, what)
        self.assertEqual({entry["IsSuccess"] for entry in self.log_of(good, 20)}, {True})
        self.expect_bounded_memory(before)
        expect_clean_end(self)

    def expect_outcome(self, webhook, status, words, lasts):
        entry, = self.log_of(webhook)
        delivery = self.delivery_of(webhook)
        is_success = status == 200
        self.assertEqual(entry["StatusCode"], status, entry)
        self.assertEqual(entry["IsSuccess"], is_success, entry)
        self.assertEqual(delivery["State"], "Delivered" if is_success else "Dead", entry)
        self.assertEqual((delivery["Attempts"], delivery["LastError"]), (1, entry["Error"]))
        if words is None:
            self.assertIsNone(entry["Error"])
        else:
            self.assertRegex(entry["Error"] or "", words.replace(TIMED_OUT, self.timed_out))
        self.assertLessEqual(len((entry["ResponseBody"] or "").encode()), 3 * 4096)
        self.expect_times(entry, lasts)

    def expect_times(self, entry, lasts):
        phases = [ms for ms in (entry[name] for name in
                                ("DnsMs", "ConnectMs", "TlsMs", "FirstByteMs", "DurationMs")) if ms]
        self.assertEqual(phases, sorted(phases), entry)
        if lasts:
            self.assertGreaterEqual(entry["DurationMs"], self.timeout_s * 1000 - 50)
        self.assertLess(entry["DurationMs"], PATIENT_S * 1000, entry)

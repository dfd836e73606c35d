"""Who speaks with the nodes of a cluster: writers with a ledger, clients of registers whose histories are kept, and a
receiver. All of them run in the loop of machines.NETWORK."""
import asyncio
import base64
import itertools
import json
import random
import time

from ledger import ABSENT, Arrivals, Ledger
from linear import Operation

REQUEST_S = 5  # then nobody waits for the answer any more
PAUSE_S = 0.05  # after what could not be done
THINK_S = 0.02


class NotSent(OSError):
    """Nobody took the connection."""


LOST = (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError, EOFError)
FILLED, FILLING_BYTES = 8, 8192
REGISTERS = 4
READERS = 8


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"{self.status} {self.headers.get('svc-info', '')} {self.body[:200]!r}"


class Connection:
    """Kept alive, to one port."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def ask(self, method, target, body=None, headers=None):
        return (await self.ask_all([(method, target, body, headers)]))[0]

    async def ask_all(self, requests, seconds=REQUEST_S):
        """Sent in one piece, so that one process answers all of them. What is lost raises one of LOST."""
        try:
            return await asyncio.wait_for(self.exchange(requests), seconds)
        except (*LOST, asyncio.CancelledError):
            self.close()
            raise

    async def exchange(self, requests):
        if self.writer is None:
            try:
                self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
            except OSError as error:
                raise NotSent(str(error)) from error
        self.writer.write(b"".join(self.text(*request) for request in requests))
        return [await self.read() for _ in requests]

    @staticmethod
    def text(method, target, body=None, headers=None):
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(data)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        return ("\r\n".join(lines) + "\r\n\r\n").encode() + data

    async def read(self):
        if self.reader is None:
            raise EOFError("the answer before was the last one")
        line = await self.reader.readline()
        if not line:
            raise EOFError
        headers = {}
        while (field := await self.reader.readline()) not in (b"\r\n", b""):
            name, _, value = field.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        answer = Answer(int(line.split()[1]), headers, body)
        if headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None


def meaning(answer):
    """What a client knows of its change: done, refused, changed (If-Match), open, or wrong."""
    if answer.status < 300:
        return "done"
    if answer.status == 412:
        return "changed"
    if answer.status == 503 and "may have been done" in answer.headers.get("svc-info", "") + answer.body.decode():
        return "open"
    if answer.status in (429, 503):
        return "refused"
    return "wrong"


class Writer:
    """Its entities are its own: nobody else changes them. What got no answer that tells is asked again, as it was,
    until one does, but for insertions, which nothing protects."""

    def __init__(self, crew, number):
        self.crew, self.number = crew, number
        self.rng = random.Random(f"{crew.seed} writer {number}")
        self.connections = [Connection(port) for port in crew.ports]
        self.place = number % len(self.connections)
        self.count = itertools.count(1)
        self.own = {}         # item -> (Id, ETag)
        self.pending = None   # a step that is open

    async def ask(self, method, target, body, headers=None):
        """(meaning, answer)."""
        try:
            answer = await self.connections[self.place].ask(method, target, body, headers)
        except LOST as error:
            self.turn()
            await asyncio.sleep(PAUSE_S)
            return "refused" if isinstance(error, NotSent) else "open", None
        found = meaning(answer)
        if found in ("open", "refused"):
            self.turn()
            await asyncio.sleep(PAUSE_S)
        if found == "wrong":
            self.crew.problem(f"writer {self.number}: {method} {target} {body}: {answer}")
        if found == "done":
            self.crew.done()
        return found, answer

    def turn(self):
        """To another node."""
        self.place = (self.place + 1) % len(self.connections)

    async def step(self):
        if self.pending is not None:
            await self.pending()
        elif self.rng.random() < 0.3:
            await self.insert()
        elif self.rng.random() < 0.15:
            await self.insert_group()
        elif self.rng.random() < 0.4:
            await self.raise_event()
        elif self.own:
            item = self.rng.choice(list(self.own))
            await (self.delete(item) if self.rng.random() < 0.3 else self.update(item))
        await asyncio.sleep(THINK_S)

    def new(self):
        return f"{self.number}-{next(self.count)}"

    async def insert(self):
        item, value = self.new(), next(self.count)
        found, answer = await self.ask("POST", "/Shop.Message", {"Item": item, "Value": value})
        if found == "done":
            self.crew.ledger.acknowledged(item, (value,))
            self.own[item] = (answer.json()[0]["Id"], answer.headers.get("etag"))
        else:
            self.note(found, item, (value,), answer)

    async def insert_group(self):
        item, value = self.new(), next(self.count)
        found, answer = await self.ask("POST", "/Shop.Message", [{"Item": item, "Value": value}] * 3)
        self.note(found, item, (value,) * 3, answer)

    def note(self, found, item, values, answer):
        if found == "done":
            self.crew.ledger.acknowledged(item, values)
        elif found == "open":
            self.crew.ledger.leave_open(item, values)
        else:
            self.crew.ledger.refuse(item, values, str(answer))

    async def update(self, item, more=None):
        value = next(self.count)
        ident, tag = self.own[item]
        body = {"Value": value, **(more or {})}
        method = self.rng.choice(["PATCH", "PUT"])
        if method == "PUT":
            body["Item"] = item

        async def go(again):
            found, answer = await self.ask(method, f"/Shop.Message/Id={ident}", body, {"If-Match": tag})
            self.pending = None
            if found == "done":
                self.crew.ledger.acknowledged(item, (value,))
                self.own[item] = (ident, answer.headers.get("etag"))
            elif found == "changed" and again:  # by the first try: nobody else does
                self.crew.ledger.acknowledged(item, (value,))
                del self.own[item]
            elif found == "changed":
                self.crew.problem(f"writer {self.number}: {item} was changed by nobody: {answer}")
                del self.own[item]
            elif found == "open" or again:
                self.crew.ledger.leave_open(item, (value,))
                self.pending = lambda: go(True)
            else:
                self.crew.ledger.refuse(item, (value,), str(answer))
        await go(False)

    async def delete(self, item):
        ident, _ = self.own.pop(item)

        async def go(again):
            found, answer = await self.ask("DELETE", f"/Shop.Message/Id={ident}", None)
            self.pending = None
            if found == "done":
                self.crew.ledger.acknowledged(item, ABSENT)
                if answer.json() != [{"Count": 1}] and not again:
                    self.crew.problem(f"writer {self.number}: {item} was acknowledged, and is not there to delete: "
                                      f"{answer}")
            elif found == "open" or again:
                self.crew.ledger.leave_open(item, ABSENT)
                self.pending = lambda: go(True)
            else:
                self.crew.ledger.refuse(item, ABSENT, str(answer))
        await go(False)

    async def raise_event(self):
        number = self.number * 1000000 + next(self.count)
        event = {"ClientId": f"event-{number}", "Resource": "Shop.OrderPlaced", "Payload": {"No": number}}

        async def go(again):
            found, answer = await self.ask("POST", "/Svc.Event", event)
            self.pending = None
            if found == "done":
                wrong = self.crew.ledger.raised(number, answer.json()[0]["Id"])
                if wrong:
                    self.crew.problem(wrong)
            elif found == "open" or again:
                self.crew.ledger.may_be_raised(number)
                self.pending = lambda: go(True)
            else:
                self.crew.ledger.refuse_event(number)
        await go(False)

    def close(self):
        for connection in self.connections:
            connection.close()


class Filler(Writer):
    """Overwrites a few large entities, so that the log grows and is trimmed, and who was away for long, or lost its
    disk, needs a copy."""

    async def step(self):
        if self.pending is not None:
            await self.pending()
        elif len(self.own) < FILLED:
            await self.insert()
        else:
            more = {"Filling": base64.b64encode(self.rng.randbytes(FILLING_BYTES)).decode()}
            await self.update(self.rng.choice(list(self.own)), more)
        await asyncio.sleep(0 if self.crew.fills else THINK_S)


def name_of(register):
    return f"register-{register}"


class RegisterClient:
    """Reads registers on the node that leads, and swaps them by If-Match through any node. What it read counts only
    when the node said before and after, on the same connection, that it leads: a node that has ceased to lead starts
    anew, and its connections end. Values are `N By`: N counts, By is whose."""

    def __init__(self, crew, number):
        self.crew, self.number = crew, number
        self.rng = random.Random(f"{crew.seed} reader {number}")
        self.connections = [Connection(port) for port in crew.ports]
        self.count = itertools.count(1)

    async def step(self):
        register = self.rng.randrange(REGISTERS)
        try:
            value, tag = await self.read(register, self.rng.random() < 0.2)
            if tag is not None and self.rng.random() < 0.5:
                await self.swap(register, value, tag)
            elif tag is None:
                await asyncio.sleep(PAUSE_S)
        except LOST:
            await asyncio.sleep(PAUSE_S)
        await asyncio.sleep(THINK_S)

    async def read(self, register, anywhere):
        """(value, ETag); the ETag is None when it was not read. What is read anywhere is only good to swap from."""
        begin = time.monotonic()
        connection = self.connections[self.rng.randrange(len(self.connections)) if anywhere else self.crew.leading]
        leads = ("GET", "/readyz?leader", None, None)
        get = ("GET", self.crew.target_of(register), None, None)
        before, answer, after = await connection.ask_all([leads, get, leads], 5)
        if answer.status != 200:
            return None, None
        row = answer.json()[0]
        value = f"{row['Value']} {row['By']}"
        if before.status == 200 and after.status == 200:
            self.crew.histories[name_of(register)].append(
                Operation("read", begin, time.monotonic(), value, who=f"reader {self.number}"))
        elif not anywhere:
            self.crew.look_for_leader()
        return value, answer.headers.get("etag")

    async def swap(self, register, old, tag):
        by = f"{self.number}-{next(self.count)}"
        number = int(old.split()[0]) + 1
        connection = self.rng.choice(self.connections)
        begin = time.monotonic()
        try:
            answer = await connection.ask("PATCH", self.crew.target_of(register), {"Value": number, "By": by},
                                          {"If-Match": tag})
            found = meaning(answer)
        except LOST as error:
            found = "refused" if isinstance(error, NotSent) else "open"
        kind = {"done": "swap", "changed": "keep", "open": "maybe"}.get(found)
        if kind:
            self.crew.histories[name_of(register)].append(
                Operation(kind, begin, time.monotonic(), f"{number} {by}", old, f"reader {self.number}"))
        if found == "wrong":
            self.crew.problem(f"register {register}: {answer}")
        if found in ("open", "refused"):
            await asyncio.sleep(PAUSE_S)

    def close(self):
        for connection in self.connections:
            connection.close()


class Receiver:
    """Takes deliveries; refuses some, which are sent again."""

    def __init__(self, seed):
        self.rng = random.Random(f"{seed} receiver")
        self.arrivals = Arrivals()
        self.server = self.port = None

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0, backlog=512)
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self, reader, writer):
        try:
            while await reader.readline():
                headers = {}
                while (field := await reader.readline()) not in (b"\r\n", b""):
                    name, _, value = field.decode("latin-1").partition(":")
                    headers[name.lower()] = value.strip()
                body = json.loads(await reader.readexactly(int(headers["content-length"])))
                taken = self.rng.random() > 0.03
                if taken:
                    row = body[0] if isinstance(body, list) else body
                    self.arrivals.arrive(headers["webhook-id"], row["No"])
                writer.write(f"HTTP/1.1 {200 if taken else 503} Answer\r\nContent-Length: 0\r\n\r\n".encode())
        except LOST:
            pass
        finally:
            writer.close()


class Crew:
    """All of them. `ports` are the nodes'."""

    def __init__(self, ports, writers, seed):
        self.ports, self.seed = ports, seed
        self.ledger, self.problems = Ledger(), []
        self.receiver = Receiver(seed)
        self.histories = {name_of(i): [] for i in range(REGISTERS)}
        self.first = {name: "0 nobody" for name in self.histories}
        self.idents = {}
        self.fills = False  # as fast as it can be done
        self.leading = 0  # the node that leads, as far as it is known
        self.acknowledged = 0
        self.last_done, self.longest = time.monotonic(), 0
        self.clients = [*(Writer(self, i) for i in range(writers)), Filler(self, writers),
                        *(RegisterClient(self, i) for i in range(READERS))]
        self.tasks = []
        self.gate, self.busy, self.ends = None, 0, False

    def problem(self, text):
        if len(self.problems) < 100 and text not in self.problems:
            self.problems.append(text)

    def done(self):
        now = time.monotonic()
        self.acknowledged += 1
        self.longest = max(self.longest, now - self.last_done)
        self.last_done = now

    def watch_gaps(self):
        """From now on `longest` is the longest time without an acknowledged change."""
        self.last_done, self.longest = time.monotonic(), 0

    def look_for_leader(self):
        self.leading = (self.leading + 1) % len(self.ports)

    async def prepare(self):
        """What there is at first: a webhook, and the registers. Asked until it is done."""
        self.gate = asyncio.Event()
        await self.receiver.start()
        webhook = {"Destination": f"http://127.0.0.1:{self.receiver.port}/hook", "EventSelector": "/Shop.OrderPlaced",
                   "Delivery": {"RetrySchedule": [0.2] * 20}}
        await self.make("/Svc.Admin.Webhook", webhook)
        for name in self.histories:
            made = await self.make("/Shop.Message", {"Item": name, "Value": 0, "By": "nobody"})
            self.idents[name] = made.json()[0]["Id"]

    def target_of(self, register):
        return f"/Shop.Message/Id={self.idents[name_of(register)]}"

    async def make(self, target, entity):
        answer = None
        for port in itertools.islice(itertools.cycle(self.ports), 100):
            connection = Connection(port)
            try:
                answer = await connection.ask("POST", target, entity)
                if meaning(answer) == "done":
                    return answer
            except LOST:
                pass
            finally:
                connection.close()
            await asyncio.sleep(0.2)
        raise AssertionError(f"POST {target} {entity}: {answer}")

    async def work(self, client):
        while not self.ends:
            await self.gate.wait()
            self.busy += 1
            try:
                await client.step()
            except Exception as error:  # pylint: disable=broad-except
                self.problem(f"{type(client).__name__} {client.number}: {error!r}")
                await asyncio.sleep(PAUSE_S)
            finally:
                self.busy -= 1

    async def begin(self):
        self.tasks = [asyncio.create_task(self.work(client)) for client in self.clients]
        self.gate.set()

    async def pause(self):
        """Until each has its answer, or waits no more."""
        self.gate.clear()
        while self.busy:
            await asyncio.sleep(0.01)

    async def go_on(self):
        self.gate.set()

    async def end(self):
        self.ends = True
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for client in self.clients:
            client.close()
        if self.receiver.server:
            self.receiver.server.close()

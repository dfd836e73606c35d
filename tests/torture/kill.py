#!/usr/bin/env python3
"""Kills the server at random moments under concurrent writers, and checks after each restart that what it
acknowledged is there, whole, and that every acknowledged event reaches the receiver.

Each writer keeps a ledger: what was acknowledged must be there; what was sent but not answered may be
there, whole, or not. Writers insert single entities, arrays of three (all or none), delete, and raise
events, each with an Id: those that were not answered are raised again after the restart, and some that
were, and there must be one event each. `kill.py --kills 1000` is the long form. The last line counts the
kills that held, with the checks at the end of each fifty, and what did not."""
import argparse
import asyncio
import json
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))
import harness  # pylint: disable=wrong-import-position


KILLS_OF_AN_EPOCH = 50  # then another server, lest the checks take longer than the writes


class Ledger:
    def __init__(self):
        self.present = {}      # Id -> No, acknowledged as inserted
        self.unsure = set()    # Ids whose deletion was sent but not answered
        self.groups = {}       # group number -> True when acknowledged
        self.deleted = set()   # Ids whose deletion was acknowledged
        self.events = {}       # No -> Id of acknowledged events
        self.unanswered = set()  # No of events that were sent
        self.next_no = 0

    def number(self):
        self.next_no += 1
        return self.next_no


class Client:
    """One keep-alive connection."""

    def __init__(self, port):
        self.port = port
        self.reader = self.writer = None

    async def request(self, method, target, body=None):
        if self.writer is None:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        data = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {target} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(data)}\r\n\r\n"
        self.writer.write(head.encode() + data)
        status_line = await self.reader.readline()
        if not status_line:
            raise ConnectionResetError
        length = 0
        while (line := await self.reader.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        text = await self.reader.readexactly(length)
        return int(status_line.split()[1]), json.loads(text) if text else None

    def close(self):
        if self.writer:
            self.writer.close()


def event(number):
    return {"ClientId": f"event-{number}", "Resource": "Shop.OrderPlaced", "Payload": {"No": number}}


async def step(client, ledger, rng):
    choice = rng.random()
    if choice < 0.45:
        status, body = await client.request("POST", "/Shop.Message", {"No": ledger.number()})
        assert status == 201, (status, body)
        ledger.present[body[0]["Id"]] = body[0]["No"]
    elif choice < 0.6:
        group = ledger.number()
        ledger.groups.setdefault(group, False)
        status, body = await client.request("POST", "/Shop.Message", [{"Group": group}] * 3)
        assert status == 201, (status, body)
        ledger.groups[group] = True
    elif choice < 0.75 and ledger.present:
        ident, number = ledger.present.popitem()
        ledger.unsure.add(ident)
        status, body = await client.request("DELETE", f"/Shop.Message/Id={ident}")
        assert (status, body) == (200, [{"Count": 1}]), (status, body, number)
        ledger.unsure.discard(ident)
        ledger.deleted.add(ident)
    else:
        number = ledger.number()
        ledger.unanswered.add(number)
        status, body = await client.request("POST", "/Svc.Event", event(number))
        assert status == 201, (status, body)
        ledger.unanswered.discard(number)
        ledger.events[number] = body[0]["Id"]


async def write(port, ledger, seed, problems):
    rng = random.Random(seed)
    client = Client(port)
    try:
        while True:
            await step(client, ledger, rng)
    except (ConnectionError, asyncio.IncompleteReadError, ValueError):
        pass
    except AssertionError as problem:
        problems.append(f"unexpected answer: {problem}")
    finally:
        client.close()


async def round_of_writes(server, ledger, writers, seconds, seed, problems):
    tasks = [asyncio.create_task(write(server.port, ledger, seed * 1000 + i, problems))
             for i in range(writers)]
    await asyncio.sleep(seconds)
    server.kill()
    await asyncio.gather(*tasks)


def check(server, ledger):
    """Yields what is wrong after a restart."""
    answer = server.request("GET", "/Shop.Message")
    entities = answer.json() if answer.status == 200 else []
    found = {entity["Id"] for entity in entities}
    for ident in ledger.present:
        if ident not in found:
            yield f"acknowledged entity {ident} is lost"
    for ident in ledger.deleted & found:
        yield f"entity {ident} is back after its deletion was acknowledged"
    groups = {}
    for entity in entities:
        if "Group" in entity:
            groups[entity["Group"]] = groups.get(entity["Group"], 0) + 1
    for group, count in groups.items():
        if count != 3:
            yield f"group {group} is half there: {count} of 3"
    for group, acknowledged in ledger.groups.items():
        if acknowledged and group not in groups:
            yield f"acknowledged group {group} is lost"


def repeat(server, ledger, rng):
    """Raises events again after a restart; yields what is wrong."""
    answered = sorted(ledger.events)
    for number in rng.sample(answered, min(20, len(answered))):
        answer = server.request("POST", "/Svc.Event", event(number))
        if answer.status != 201 or answer.json()[0]["Id"] != ledger.events[number]:
            yield f"event {number} was raised as {ledger.events[number]}, then {answer}"
    while ledger.unanswered:
        number = ledger.unanswered.pop()
        answer = server.request("POST", "/Svc.Event", event(number))
        if answer.status != 201:
            yield f"event {number} is refused when it is raised again: {answer}"
        else:
            ledger.events[number] = answer.json()[0]["Id"]


def check_events(server, ledger):
    """Yields what is wrong with the events as a whole."""
    found = {}
    for kept in server.request("GET", "/Svc.Event/_/select=Id,Payload").json():
        number = kept["Payload"][0]["No"]
        if number in found:
            yield f"event {number} is there twice"
        found[number] = kept["Id"]
    if found != ledger.events:
        yield f"{len(found)} events are there, {len(ledger.events)} were acknowledged"


class Epoch:
    """Some kills of one server, over one journal."""

    def __init__(self, options, number):
        self.options, self.seed = options, options.seed + number * KILLS_OF_AN_EPOCH
        self.rng = random.Random(self.seed)
        self.ledger, self.arrived = Ledger(), set()
        self.held = self.failed = 0

    def note(self, what, problems):
        self.held += not problems
        self.failed += bool(problems)
        for problem in problems[:10]:
            print(f"seed {self.seed}, {what}: {problem}")

    def kill_once(self, server, kill):
        problems = []
        asyncio.run(round_of_writes(server, self.ledger, self.options.writers, self.rng.uniform(0.02, 0.4),
                                    self.seed + kill, problems))
        server.start()
        problems += check(server, self.ledger)
        problems += repeat(server, self.ledger, self.rng)
        self.note(f"kill {kill}", problems)

    def check_end(self, server):
        try:
            harness.wait_until(lambda: self.arrived.issuperset(self.ledger.events.values()),
                               "every event arrives", 120)
            self.note("deliveries", [])
        except AssertionError:
            missing = set(self.ledger.events.values()) - self.arrived
            self.note("deliveries", [f"{len(missing)} of {len(self.ledger.events)} events did not arrive"])
        self.note("events", list(check_events(server, self.ledger)))

    def run(self, kills):
        receiver = harness.Receiver(lambda request: self.arrived.add(request.headers["webhook-id"]))
        config = harness.load_config(harness.SHOP)
        config["Retention"] = {"Events": 1000000, "WebhookLogEntries": 1000}
        server = harness.Server(config)
        try:
            server.start()
            server.request("POST", "/Svc.Admin.Webhook", {
                "Destination": receiver.url(), "EventSelector": "/Shop.OrderPlaced",
                "Delivery": {"RetrySchedule": [0.1] * 30}})
            for kill in range(kills):
                self.kill_once(server, kill)
            self.check_end(server)
        except AssertionError as problem:
            self.note("the run", [f"{problem}; the last lines of its log: {server.log[-5:]}"])
        finally:
            receiver.close()
            server.remove()
        ledger = self.ledger
        print(f"{kills} kills: {len(ledger.present)} entities, {len(ledger.deleted)} deleted, "
              f"{len(ledger.groups)} groups, {len(ledger.events)} events acknowledged", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    held = failed = 0
    for number, first in enumerate(range(0, options.kills, KILLS_OF_AN_EPOCH)):
        epoch = Epoch(options, number)
        epoch.run(min(KILLS_OF_AN_EPOCH, options.kills - first))
        held, failed = held + epoch.held, failed + epoch.failed
    print(f"{held} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Makes a sample of the journal's present format: make.py FOLDER, with SVCD naming the server that writes it.

    SVCD=build/dev/svcd tests/formats/make.py tests/formats/v2

The folder gets `data.tar.xz` (the segments; their zeros take no room), `config.json` to open them with, and
`expected.json`: when they were made, what every resource answered, what tests need to know besides. A sample is made
once, before the format changes, and never again: tests/blackbox/test_formats.py opens all there are with the present
server. Every kind of record has to be in it, and every state of a delivery that is recorded."""
import json
import os
import subprocess
import sys
import tarfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "blackbox"))
import harness  # pylint: disable=wrong-import-position

# An address that nothing else uses: the test receives there what the opened sample sends.
HOST, PORT = "127.83.70.77", 18083
SECRET = "whsec_" + "c2FtcGxlIG9mIGEgc2lnbmluZyBzZWNyZXQh"
TARGETS = ["Shop.Person", "Shop.Message/No<15", "Shop.Late", "Svc.Admin.Resource", "Svc.Admin.Webhook", "Svc.Event",
             "Svc.Admin.Delivery", "Svc.Admin.WebhookLog", "Svc.Admin.Error"]
KINDS = {"entity", "entity-gone", "event", "event-gone", "delivery", "delivery-gone", "lane", "once", "once-gone"}
STATES = {"Pending", "Waiting", "Delivered", "Dead", "Aborted"}
NEVER_AGAIN = {"RetrySchedule": []}
MUCH_LATER = {"RetrySchedule": [36000]}
CONFIG = {
    "SegmentBytes": 262144,
    "Resources": [
        {"Name": "Shop.Person", "Kind": "EntityResource", "Description": "People", "Methods": ["GET", "POST", "PATCH",
                                                                                              "PUT", "DELETE"],
         "Properties": [{"Name": "Name", "Type": "string", "Required": True}, {"Name": "Age", "Type": "integer"},
                        {"Name": "Weight", "Type": "number"}, {"Name": "Active", "Type": "boolean"},
                        {"Name": "Born", "Type": "datetime"}, {"Name": "Address", "Type": "object"},
                        {"Name": "Tags", "Type": "array"}, {"Name": "Extra", "Type": "any"}],
         "Indexes": ["Name"], "Events": {"Inserted": "Shop.PersonCreated", "Updated": None, "Deleted": None}},
        {"Name": "Shop.Message", "Kind": "EntityResource", "Description": "Dynamic"},
        {"Name": "Shop.PersonCreated", "Kind": "EventResource", "Description": "A person was inserted",
         "Payload": {"Resource": "Shop.Person"}},
        {"Name": "Shop.ReportReady", "Kind": "EventResource", "Description": "Bytes",
         "Payload": {"ContentType": "application/pdf"}},
        {"Name": "Shop.OrderPlaced", "Kind": "EventResource", "Description": "Any object"},
    ],
}


def script(request):
    """The receiver's answer, by path."""
    return {"/ok": 200, "/gone": 410, "/later": (503, {"Retry-After": "80000"}, b"")}.get(request.path, 500)


class Maker:
    def __init__(self, server):
        self.server = server

    def ask(self, method, target, body=None, headers=None, status=(200, 201)):
        answer = self.server.request(method, target, body, headers)
        if answer.status not in status:
            raise SystemExit(f"{method} {target}: {answer}")
        return answer

    def created(self, target, body, headers=None):
        return self.ask("POST", target, body, headers).json()[0]

    def count(self, target):
        return self.ask("REPORT", target).json()[0]["Count"]

    def event(self, number, key=None):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number, "Total": 12.50}},
                            {"Idempotency-Key": key} if key else None)

    def webhook(self, label, path, number, **members):
        """It gets the events of one number."""
        return self.created("/Svc.Admin.Webhook", {
            "Label": label, "Destination": f"http://{HOST}:{PORT}{path}",
            "EventSelector": f"/Shop.OrderPlaced/No={number}", **members})

    def states(self, *states):
        for state in states:
            harness.wait_until(lambda s=state: self.count(f"/Svc.Admin.Delivery/State={s}") > 0, state, 20)

    def two_days_ago(self):
        """Something that has outlived its time when the server is started again."""
        right = self.server.env
        self.server.env = dict(right, LD_PRELOAD=harness.FAKETIME[0], FAKETIME="-2d",
                               FAKETIME_DONT_FAKE_MONOTONIC="1")
        self.server.start()
        self.event(100, "order-0")
        self.ask("POST", "/Shop.Message", [{"No": number, "Text": "x" * 400} for number in range(450)])
        self.ask("DELETE", "/Shop.Message/No<10/unsafe=true")
        self.server.stop()
        self.server.env = right
        self.server.start()
        harness.wait_until(lambda: "once-gone" in {record["kind"] for record in records(self.server)}, "retention", 20)

    def entities(self):
        for number in range(8):
            self.created("/Shop.Person", {
                "Name": f"Person {number} é 語", "Age": 20 + number, "Weight": 1.10, "Active": number % 2 == 0,
                "Born": "1815-12-10T00:00:00Z", "Address": {"City": "London", "Lines": ["1", "2"]},
                "Tags": ["a", {"b": None}], "Extra": 12345678901234567890})
        self.ask("PATCH", "/Shop.Person/Age=21", {"Tags": None})
        self.ask("DELETE", "/Shop.Person/Age=22")
        self.ask("POST", "/Svc.Admin.Resource", {"Name": "Shop.Late", "Kind": "EntityResource",
                                                 "Description": "Declared at run time"})
        self.created("/Shop.Late", {"Anything": [1, 2, {"three": 3}]})
        for target in ["/Nothing", "/Shop.Person/Nothing=1"]:
            self.ask("GET", target, status=(404,))

    def deliveries(self):
        self.webhook("signed", "/ok", 1, Signing={"Secrets": [SECRET]}, Headers={"Authorization": "apikey x"})
        self.webhook("refused", "/no", 2, Delivery=NEVER_AGAIN)
        self.webhook("later", "/later", 3, Delivery=dict(MUCH_LATER, MaxInFlight=1))
        self.webhook("aborted", "/ok", 4, CustomPayloadRequest={"URI": "/Shop.Message/a=1",
                                                                   "BreakOnNoContent": True})
        self.webhook("gone", "/gone", 5, Delivery=MUCH_LATER)
        self.webhook("paused", "/ok", 6, IsPaused=True)
        self.webhook("deleted", "/no", 7, Delivery=MUCH_LATER)
        self.created("/Svc.Admin.Webhook", {"Label": "local", "Destination": "/Shop.Message",
                                            "EventSelector": "/Shop.PersonCreated/Age>=40"})
        for number in [1, 2, 3, 3, 4, 5, 6, 7]:
            self.event(number)
        self.created("/Shop.Person", {"Name": "Old", "Age": 41})
        self.created("/Svc.Event/Resource=Shop.ReportReady", b"%PDF-1.4 \x00\xff",
                     {"Content-Type": "application/pdf"})
        self.states(*STATES)
        self.ask("DELETE", "/Svc.Admin.Webhook/Label=deleted")
        self.ask("DELETE", "/Svc.Admin.Delivery/State=Dead/limit=1")
        self.event(2)  # another dead one
        self.states("Dead")

    def with_members(self):
        """What records have got since the first sample was made."""
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 102}, "ClientId": "client-1",
                                    "Tenant": "acme"})
        self.created("/Svc.Event", {
            "specversion": "1.0", "id": "ce-1", "source": "/shop", "type": "Shop.OrderPlaced", "subject": "order 103",
            "data": {"No": 103}}, {"Content-Type": "application/cloudevents+json"})

    def idempotent(self):
        for number in range(3):
            self.event(100, f"order-{number}")
        last = self.event(100, "order-2")
        unneeded = self.event(101)
        self.ask("DELETE", f"/Svc.Event/Id={unneeded['Id']}")
        return {"Key": "order-2", "Id": last["Id"]}


def answers(server, targets):
    return {target: server.request("GET", f"/{target}").json() for target in targets}


def counts(server):
    """All that is stored, also what the answers leave out."""
    return {name: server.request("REPORT", f"/{name}").json()[0]["Count"]
            for name in sorted({target.split("/")[0] for target in TARGETS})}


def faketime(seconds):
    """What makes libfaketime begin then."""
    return time.strftime("@%Y-%m-%d %H:%M:%S", time.gmtime(seconds + 1))


def dump(server):
    tool = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
    lines = subprocess.run([tool, "dump", server.data], capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def records(server):
    return [line["record"] for line in dump(server)]


def make(folder, server):
    maker = Maker(server)
    maker.two_days_ago()
    maker.entities()
    maker.deliveries()
    maker.with_members()
    once = maker.idempotent()
    harness.wait_until(lambda: maker.count("/Svc.Admin.Delivery/State=InFlight") == 0, "nothing is under way")
    expected = {"Time": time.time(), "Secret": SECRET, "Once": once, "Counts": counts(server),
                "Answers": answers(server, TARGETS)}
    server.kill()
    missing = KINDS - {record["kind"] for record in records(server)}
    if missing:
        raise SystemExit(f"the sample has no {', '.join(sorted(missing))}")
    if not any(line["serials"] == 0 for line in dump(server)):
        raise SystemExit("the sample has no record that was moved")
    os.makedirs(folder, exist_ok=True)
    with tarfile.open(os.path.join(folder, "data.tar.xz"), "w:xz") as tar:
        for name in sorted(os.listdir(server.data)):
            if name.endswith(".seg"):
                tar.add(os.path.join(server.data, name), name)
    for name, what in ("config.json", CONFIG), ("expected.json", expected):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            json.dump(what, file, indent=1, ensure_ascii=False)
            file.write("\n")


def main():
    folder = sys.argv[1]
    server = harness.Server(CONFIG)
    receiver = harness.Receiver(script, HOST, PORT)
    try:
        make(folder, server)
    finally:
        receiver.close()
        server.remove()


if __name__ == "__main__":
    main()

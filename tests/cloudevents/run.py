#!/usr/bin/env python3
"""CloudEvents between this server and the public SDKs for JavaScript, Python and Go: what they send is taken, what is
sent to them they read, in binary and structured mode; and what is sent is valid by the specification's JSON schema.
SVCD names the binary; the packages are installed once. The last line counts what ran."""
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402

NPM = {"cloudevents": "8.0.3"}
PIP = "cloudevents==1.12.0"
GO = "github.com/cloudevents/sdk-go/v2 v2.15.2"  # the newest that Debian's Go builds
RESOURCES = [{"Name": "Shop.Packed", "Kind": "EventResource", "CloudEventsType": "com.example.packed"},
             {"Name": "Shop.Photo", "Kind": "EventResource", "Payload": {"ContentType": "image/png"}}]
MODES = {"binary": "CloudEventsBinary", "structured": "CloudEventsStructured"}


def run(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command[:3])}: can its registry be reached?\n{result.stdout[-1000:]}{result.stderr[-2000:]}")


def build_go(folder):
    """A program of ours with the SDK: what it says is as in the other languages."""
    program = os.path.join(folder, "sdk")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(os.path.join(HERE, "sdk.go"), folder)
    with open(os.path.join(folder, "go.mod"), "w", encoding="ascii") as file:
        file.write(f"module sdk\n\ngo 1.19\n\nrequire {GO}\n")
    # As the other tests build theirs, so that Go's own packages are built once.
    run(["go", "build", "-mod=mod", "-o", program, "."], cwd=folder, env=dict(os.environ, CGO_ENABLED="0"))
    return program


def install(directory):
    run(["npm", "install", "--prefix", os.path.join(directory, "npm"), "--no-audit", "--no-fund", "--no-package-lock",
         "--ignore-scripts", "--loglevel=error", *(f"{name}@{version}" for name, version in NPM.items())])
    venv = os.path.join(directory, "python")
    run(["python3", "-m", "venv", "--without-pip", venv])
    run(["python3", "-m", "pip", "--python", os.path.join(venv, "bin", "python"), "install", "--quiet",
         "--disable-pip-version-check", "--no-compile", PIP])


class Sdk:
    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **question):
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise AssertionError(f"{self.name}: {answer['error']}")
        return answer["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def event(number, mode, **members):
    """No SDK percent-encodes header fields, so that only JSON carries what is not ASCII."""
    return dict({"specversion": "1.0", "id": str(number), "source": "https://sender.example/a?b=c",
                 "type": "com.example.packed", "time": "2026-11-23T09:30:00Z",
                 "subject": "cage-7" if mode == "binary" else "Käfig „7“", "tracestate": "a=b",
                 "datacontenttype": "application/json", "data": {"No": number, "Name": "Zoë €"}}, **members)


class Talk:
    """One server, with a webhook in each mode, and its receivers."""

    def __init__(self):
        config = harness.load_config(harness.SHOP)
        self.server = harness.Server(dict(config, Resources=config["Resources"] + RESOURCES,
                                          CloudEventsSource="https://own.example/shop"))
        self.server.start()
        self.receivers = {mode: harness.Receiver() for mode in MODES}
        for mode, form in MODES.items():
            self.post("/Svc.Admin.Webhook", json.dumps({"Destination": self.receivers[mode].url(), "Format": form,
                                                        "EventSelector": "/Shop.*"}), {})

    def post(self, target, body, headers):
        answer = self.server.request("POST", target, body, headers)
        assert answer.status == 201, answer
        return answer.json()[0]

    def take(self):
        """What came, by mode."""
        requests = {mode: receiver.take() for mode, receiver in self.receivers.items()}
        return {mode: {"headers": {name.lower(): value for name, value in request.headers.items()},
                       "body": request.body.decode()} for mode, request in requests.items()}

    def close(self):
        for receiver in self.receivers.values():
            receiver.close()
        self.server.remove()


def check_sent(talk, sdks, node, sent, number):
    """An event of an SDK's goes in, and each SDK reads what comes out in each mode."""
    got = talk.take()
    structured = json.loads(got["structured"]["body"])
    assert node.ask(judge=structured) == [], node.ask(judge=structured)
    assert structured == sent, structured
    for mode, message in got.items():
        for sdk in sdks:
            read = sdk.ask(read=message)
            for name in "id", "source", "type", "tracestate", "data":
                assert read[name] == sent[name], (sdk.name, mode, name, read)
            if message["headers"].get("ce-subject", "").isascii() and "%" not in message["headers"].get("ce-subject", ""):
                assert read["subject"] == sent["subject"], (sdk.name, mode, read)
    kept = talk.server.request("GET", f"/Svc.Event/ce.id={number}").json()[0]
    assert kept["Payload"] == [sent["data"]], kept


def cases(talk, sdks, node):
    number = 0
    for sdk in sdks:
        for mode in MODES:
            number += 1
            yield f"{sdk.name} sends in {mode} mode", sdk, mode, number
    yield "an event of our own is read and valid", None, None, 0


def own_event(talk, sdks, node):
    raised = talk.post("/Svc.Event", '{"Resource":"Shop.Packed","Payload":[{"No":1},{"No":2}]}', {})
    for mode, message in talk.take().items():
        for sdk in sdks:
            read = sdk.ask(read=message)
            assert (read["id"], read["source"], read["data"]) == (
                raised["Id"], "https://own.example/shop", [{"No": 1}, {"No": 2}]), (sdk.name, mode, read)
        if mode == "structured":
            assert node.ask(judge=json.loads(message["body"])) == []
    talk.post("/Svc.Event/Resource=Shop.Photo", b"\x01\x02", {"Content-Type": "image/png"})
    photo = json.loads(talk.take()["structured"]["body"])
    assert node.ask(judge=photo) == [] and photo["data_base64"] == "AQI=", photo


def one(talk, sdks, node, sdk, mode, number):
    if sdk is None:
        own_event(talk, sdks, node)
        return
    sent = event(number, mode)
    message = sdk.ask(write=sent, mode=mode)
    body = message["body"]
    talk.post("/Svc.Event", body if isinstance(body, str) else json.dumps(body), message["headers"])
    check_sent(talk, sdks, node, dict(sent, time=json_time(message, mode)), number)


def json_time(message, mode):
    """As the SDK has written it: JavaScript's adds milliseconds."""
    if mode == "binary":
        return next(value for name, value in message["headers"].items() if name.lower() == "ce-time")
    return json.loads(message["body"])["time"]


def main():
    packages = harness.fetched("cloudevents", json.dumps([NPM, PIP]), install)
    go = build_go(os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "cloudevents-go"))
    node = Sdk("JavaScript", ["node", os.path.join(HERE, "sdk.js"), os.path.join(packages, "npm")])
    python = Sdk("Python", [os.path.join(packages, "python", "bin", "python"), os.path.join(HERE, "sdk.py")])
    sdks = [node, python, Sdk("Go", [go])]
    talk, passed, failed = Talk(), 0, 0
    try:
        for name, *case in cases(talk, sdks, node):
            try:
                one(talk, sdks, node, *case)
                passed += 1
            except AssertionError as error:
                failed += 1
                print(f"FAILED {name}: {error}")
    finally:
        talk.close()
        for sdk in sdks:
            sdk.close()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

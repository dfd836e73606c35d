#!/usr/bin/env python3
"""Has a server do what servers do all day, so that its compiler learns which ways are taken: reads, one by
one and pipelined, durable writes, events with signed deliveries, refusals, a restart.

    SVCD=build/optimized/svcd python3 tools/lib/exercise.py"""
import json
import os
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tests/blackbox"))
import harness  # noqa: E402

CONNECTIONS = 32
ROUNDS = 20
PIPELINED = 16
WEBHOOKS = 100  # with selectors of their own; one matches an event
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def message(number):
    return {"Label": "order", "Customer": "someone@example.com", "Amount": 1250.5, "No": number,
            "Text": "x" * 300}


def order(number):
    return {"Resource": "Shop.OrderPlaced",
            "Payload": {"OrderNo": number, "Customer": f"customer{number % WEBHOOKS}", "Amount": 1250.5}}


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.stream = self.socket.makefile("rb")

    def send(self, method, target, body=None, headers="", times=1):
        data = b"" if body is None else json.dumps(body).encode()
        if body is not None:
            headers += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n"
        head = f"{method} {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}\r\n"
        self.socket.sendall((head.encode() + data) * times)

    def read(self, times=1):
        """The last of so many answers: status, headers, body."""
        for _ in range(times):
            status = int(self.stream.readline().split()[1])
            headers = harness.http.client.parse_headers(self.stream)
            body = self.stream.read(int(headers.get("Content-Length") or 0))
        return status, headers, body

    def close(self):
        self.stream.close()
        self.socket.close()


class Exercise:
    """Each request goes out on all connections before the first answer is read, as under load."""

    def __init__(self, server):
        self.connections = [Connection(server.port) for _ in range(CONNECTIONS)]
        self.number = 0

    def all(self, expected, method, target, body=None, headers="", times=1):
        for connection in self.connections:
            self.number += 1
            made = body(self.number) if callable(body) else body
            connection.send(method, target, made, headers, times)
        answers = [connection.read(times) for connection in self.connections]
        wrong = [answer for answer in answers if answer[0] != expected]
        if wrong:
            sys.exit(f"{method} {target}: {wrong[0]}")
        return answers

    def read(self, message_id, tag):
        one = f"/Shop.Message/Id='{message_id}'"
        for _ in range(4):
            self.all(200, "GET", one)
        self.all(200, "GET", one, times=PIPELINED)
        self.all(200, "GET", "/Shop.Message/_/limit=1")
        self.all(200, "GET", "/Svc.Admin.Webhook/_/limit=1", headers="Accept: application/json\r\n")
        self.all(304, "GET", one, headers=f"If-None-Match: {tag}\r\n")
        self.all(404, "GET", "/Shop.Nothing")

    def write(self, message_id):
        for _ in range(3):
            self.all(201, "POST", "/Shop.Message", message)
        self.all(200, "PATCH", f"/Shop.Message/Id='{message_id}'", {"Amount": self.number})
        self.all(201, "POST", "/Shop.Person", lambda n: {"Name": "Ada", "Email": f"{n}@example.com"})
        self.all(200, "GET", f"/Shop.Person/Email='{self.number}@example.com'")
        self.all(400, "POST", "/Shop.Person", {"Nobody": 1})

    def raise_events(self):
        for _ in range(4):
            self.all(201, "POST", "/Svc.Event", order)

    def close(self):
        for connection in self.connections:
            connection.close()


def add_webhooks(server, receiver):
    for number in range(WEBHOOKS):
        answer = server.request("POST", "/Svc.Admin.Webhook", {
            "Destination": receiver.url(), "Signing": {"Secrets": [SECRET]},
            "EventSelector": f"/Shop.OrderPlaced/Customer='customer{number}'&Amount>100"})
        if answer.status != 201:
            sys.exit(f"a webhook: {answer}")


def run(server, rounds):
    exercise = Exercise(server)
    _, headers, body = exercise.all(201, "POST", "/Shop.Message", message)[0]
    message_id = json.loads(body)[0]["Id"]
    for _ in range(rounds):
        answer = server.request("GET", f"/Shop.Message/Id='{message_id}'")
        exercise.read(message_id, answer.headers["ETag"])
        exercise.write(message_id)
        exercise.raise_events()
    exercise.close()


def settle(server):
    harness.wait_until(lambda: server.request("REPORT", "/Svc.Admin.Delivery/State!=Delivered").json() ==
                       [{"Count": 0}], "everything is delivered", 60)


def main():
    server = harness.Server()
    receiver = harness.Receiver()
    try:
        server.start()
        add_webhooks(server, receiver)
        run(server, ROUNDS)
        settle(server)
        server.stop()
        server.start()
        run(server, 1)
        settle(server)
        server.stop()
    finally:
        receiver.close()
        server.remove()


if __name__ == "__main__":
    main()

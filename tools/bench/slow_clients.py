#!/usr/bin/env python3
"""Clients that are slow or silent: `slow_clients.py PORT PATH [--clients N] [--seconds N]`.

A quarter each: those that drip a request's head, a byte a second; those that drip its body; those that ask
for PATH, which should be long, and never read; those that close their side, half of them behind a request for
something short and half within one. Each has its turn once a second, and the turns are spread evenly: clients
that know nothing of one another do not drip at the same moment. Who is closed comes again a second later, who
had been half closed five seconds later. They have source addresses of their own, 127.0.1.1 to 127.0.1.4, and
end with their standard input. Prints `ready` when they have been there for fifteen seconds, and at the end,
in a line of JSON, how many were connected then and what was done."""
import argparse
import collections
import json
import resource
import select
import socket
import sys
import time

# By then the first have been closed and come again, as they will from now on, and the kernel no longer asks
# those that do not read, a fifth of a second after they stopped and then at growing intervals, whether they do.
SETTLE_S = 15
KINDS = ("heads", "bodies", "unread", "half closed")


class Client:
    def __init__(self, number, path):
        self.kind = KINDS[number % len(KINDS)]
        self.source = (f"127.0.1.{number % len(KINDS) + 1}", 0)
        asks = f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        asks_shortly = b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\n\r\n"
        self.begin = {"heads": b"GET / HTTP/1.1\r\nHost: x\r\nCookie: ",
                      "bodies": b"POST /Svc.Event HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n",
                      "unread": asks,
                      "half closed": asks_shortly if number // len(KINDS) % 2 else asks_shortly[:-2]}[self.kind]
        self.socket = None
        self.wait_s = 0

    @property
    def drips(self):
        return self.kind in ("heads", "bodies")

    @property
    def pause_s(self):
        return 5 if self.kind == "half closed" else 1


class Crowd:
    def __init__(self, options):
        self.address = ("127.0.0.1", options.port)
        self.clients = [Client(number, options.path) for number in range(options.clients)]
        self.poll = select.epoll()
        self.connected = {}  # by descriptor
        self.counts = collections.Counter()

    def connect(self, client):
        s = socket.socket()
        try:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            s.bind(client.source)
            s.connect(self.address)  # on loopback at once
            s.setblocking(False)
            s.send(client.begin)
            if client.kind == "half closed":
                s.shutdown(socket.SHUT_WR)
        except OSError:
            s.close()
            self.counts["refused"] += 1
            client.wait_s = client.pause_s
            return
        client.socket = s
        self.connected[s.fileno()] = client
        # Those that drip look for the answer that says why they are closed; no other reads.
        self.poll.register(s, select.EPOLLRDHUP | (select.EPOLLIN if client.drips else 0))
        self.counts[f"{client.kind} connected"] += 1

    def close(self, client):
        del self.connected[client.socket.fileno()]
        client.socket.close()
        client.socket = None
        client.wait_s = client.pause_s

    def look(self):
        for fd, events in self.poll.poll(0, 512):
            client = self.connected[fd]
            try:
                if events & select.EPOLLIN and client.socket.recv(4096).startswith(b"HTTP/1.1 408"):
                    self.counts[f"{client.kind} answered 408"] += 1
            except OSError:
                pass
            if events & (select.EPOLLRDHUP | select.EPOLLHUP | select.EPOLLERR):
                self.close(client)

    def turn(self, client):
        client.wait_s -= 1
        if client.socket is None and client.wait_s < 0:
            self.connect(client)
        elif client.socket is not None and client.drips:
            try:
                client.socket.send(b"x")
                self.counts["bytes dripped"] += 1
            except OSError:
                self.close(client)

    def run(self, seconds):
        began = time.monotonic()
        turns = len(self.clients)  # a second
        for number in range(int(seconds * turns)):
            self.turn(self.clients[number % turns])
            if number == turns * SETTLE_S:
                print("ready", flush=True)
            self.look()
            # Not by a wait of the poll, which knows only whole milliseconds.
            time.sleep(max(0, began + (number + 1) / turns - time.monotonic()))
            if select.select([sys.stdin], [], [], 0)[0]:
                return


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--clients", type=int, default=5000)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    crowd = Crowd(options)
    crowd.run(options.seconds)
    print(json.dumps({"connected": len(crowd.connected), **crowd.counts}), flush=True)


if __name__ == "__main__":
    main()

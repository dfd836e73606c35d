"""SIGUSR2: the server starts anew in the same process, its listening sockets kept: nobody is refused."""
import http.client
import json
import os
import shutil
import signal
import socket
import stat
import threading
import unittest

import cluster
import harness
from test_service_manager import Case as ManagedCase

RESTARTS = 10
CLIENTS = 4


class Client(threading.Thread):
    """One request after another until told to stop, each on a new connection. What it says of each name
    that it stored is what was answered."""

    def __init__(self, connect, name):
        super().__init__()
        self.connect = connect
        self.prefix = name
        self.stored = []
        self.failures = []
        self.ends = threading.Event()

    def one(self, number):
        name = f"{self.prefix}-{number}"
        connection = http.client.HTTPConnection("x")
        connection.sock = self.connect()
        connection.request("POST", "/Shop.Person", json.dumps({"Name": name}), {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        if answer.status != 201:
            raise OSError(f"{answer.status}")
        self.stored.append(name)

    def run(self):
        number = 0
        while not self.ends.is_set():
            try:
                self.one(number)
            except (OSError, http.client.HTTPException) as error:
                self.failures.append(f"{self.prefix}-{number}: {error!r}")
            number += 1


class Anew(ManagedCase):
    def again(self, server):
        """Waits until the next program listens on all it did."""
        seen = len(server.log)
        server.process.send_signal(signal.SIGUSR2)
        self.listens(server, seen)

    def listens(self, server, seen):
        harness.wait_until(lambda: sum("listening on" in line for line in server.log[seen:]) >= len(server.listen) or
                           server.process.poll() is not None, "it listens on all its addresses")
        self.assertIsNone(server.process.poll(), server.log[seen:])

    def tcp(self, port, host="127.0.0.1"):
        return socket.create_connection((host, port), timeout=harness.DEADLINE_S)

    def test_nobody_is_refused(self):
        server = self.serve({})
        port = server.port
        clients = [Client(lambda: self.tcp(port), f"c{i}") for i in range(CLIENTS)]
        for client in clients:
            client.start()
        try:
            for _ in range(RESTARTS):
                before = [len(client.stored) for client in clients]
                self.again(server)
                self.assertEqual(server.port, port)  # of port 0
                harness.wait_until(lambda: all(len(c.stored) > n for c, n in zip(clients, before)),
                                   "each client is answered again")
        finally:
            for client in clients:
                client.ends.set()
            for client in clients:
                client.join()
        self.assertEqual([failure for client in clients for failure in client.failures], [])
        names = {person["Name"] for person in server.request("GET", "/Shop.Person/_/limit=1000000").json()}
        self.assertLessEqual({name for client in clients for name in client.stored}, names)
        self.assertEqual(sum("starting anew" in line for line in server.log), RESTARTS)
        self.assertEqual(server.stop(), 0)

    def test_a_connection_that_has_not_asked_yet(self):
        server = self.serve({})
        early = self.tcp(server.port)
        server.request("GET", "/Svc.Health")  # so the other is accepted too
        seen = len(server.log)
        server.process.send_signal(signal.SIGUSR2)
        harness.wait_until(lambda: any("SIGUSR2: draining" in line for line in server.log[seen:]), "it drains")
        early.sendall(b"GET /Shop.Person HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = early.makefile("rb").read()
        self.assertTrue(answer.startswith(b"HTTP/1.1 204 "), answer)
        self.assertIn(b"Connection: close", answer)
        early.close()
        self.listens(server, seen)
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)

    def test_all_kinds_of_addresses(self):
        server = self.serve({}, start=False)
        path = os.path.join(self.directory, "s")
        fixed = cluster.free_port()
        server.listen = ["127.0.0.1:0", f"unix:{path}", f"[::1]:{fixed}", "localhost:0"]
        server.start()
        self.listens(server, 0)
        pid = server.process.pid
        inode = os.stat(path).st_ino
        open_files = len(os.listdir(f"/proc/{pid}/fd"))
        ports = [line.rsplit(" ", 1)[1] for line in server.log if "listening on" in line]
        for _ in range(2):
            seen = len(server.log)
            self.again(server)
            self.assertEqual([line.rsplit(" ", 1)[1] for line in server.log[seen:] if "listening on" in line], ports)
            self.assertEqual(os.stat(path).st_ino, inode)
            self.assertTrue(stat.S_ISSOCK(os.stat(path).st_mode))
            with socket.socket(socket.AF_UNIX) as local:
                local.connect(path)
                local.sendall(b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(local.makefile("rb").read().startswith(b"HTTP/1.1 200 "))
            with self.tcp(fixed, "::1") as six:
                six.sendall(b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                self.assertTrue(six.makefile("rb").read().startswith(b"HTTP/1.1 200 "))
            self.assertEqual(server.process.pid, pid)
            self.assertLessEqual(len(os.listdir(f"/proc/{pid}/fd")), open_files + 2)  # a client's may still be there
        self.assertEqual(server.stop(), 0)
        self.assertFalse(os.path.exists(path))  # it is ours to remove, as before

    def test_the_new_program(self):
        """One that took the place of the old one's file is executed, with the same arguments."""
        server = self.serve({})
        current = os.readlink(f"/proc/{server.process.pid}/exe")  # SVCD may be a script that ends in it
        server.stop()
        program = os.path.join(self.directory, "svcd")
        shutil.copy(current, program)
        server.wrapper = ["/bin/sh", "-c", f'shift; exec {program} "$@"', "sh"]
        server.start()
        with open(program + ".new", "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\necho "the new one: $*" >&2\nexec {current} "$@"\n')
        os.chmod(program + ".new", 0o755)
        os.rename(program + ".new", program)
        seen = len(server.log)
        self.again(server)
        self.assertIn(f"the new one: --config {server.directory}/config.json", server.log[seen:])
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
        os.remove(program)  # of a removed package: the program that runs goes on
        self.again(server)
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)

    def test_a_bad_configuration_changes_nothing(self):
        server = self.serve({})
        path = os.path.join(server.directory, "config.json")
        with open(path, "w", encoding="ascii") as file:
            file.write('{"Lisden": []}')
        seen = len(server.log)
        server.process.send_signal(signal.SIGUSR2)
        harness.wait_until(lambda: any("not started anew" in line for line in server.log[seen:]), "it says so")
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
        server.write_config()
        self.again(server)

    def test_an_address_that_is_not_configured_any_more(self):
        server = self.serve({}, start=False)
        fixed = cluster.free_port()
        server.listen = [f"127.0.0.1:{fixed}", "127.0.0.1:0"]
        server.start()
        self.listens(server, 0)
        server.listen = ["127.0.0.1:0"]
        server.write_config()
        self.again(server)
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
        with self.assertRaises(ConnectionRefusedError):
            self.tcp(fixed)

    def test_a_stop_comes_first(self):
        """SIGTERM while it drains to start anew ends it."""
        server = self.serve({})
        open_request = self.tcp(server.port)
        open_request.sendall(b"POST /Shop.Person HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n")
        server.request("GET", "/Svc.Health")
        server.process.send_signal(signal.SIGUSR2)
        harness.wait_until(lambda: any("SIGUSR2: draining" in line for line in server.log), "it drains")
        server.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: any("SIGTERM: draining" in line for line in server.log), "it stops")
        open_request.close()
        self.assertEqual(server.process.wait(timeout=harness.DEADLINE_S), 0)
        server.read_rest()
        self.assertFalse(any("starting anew" in line for line in server.log))

    def test_the_manager_is_told(self):
        path = os.path.join(self.directory, "notify")
        manager = self.manager(path)
        server = self.serve({"NOTIFY_SOCKET": path})
        manager.wait_for("READY=1")
        for _ in range(2):
            said = len(manager.messages)
            server.process.send_signal(signal.SIGUSR2)
            manager.wait_for("RELOADING=1", said)
            manager.wait_for("READY=1", said)
            self.assertIsNone(manager.heard("STOPPING=1"))
        self.assertEqual(server.stop(), 0)
        self.assertIsNotNone(manager.heard("STOPPING=1"))


if __name__ == "__main__":
    unittest.main()

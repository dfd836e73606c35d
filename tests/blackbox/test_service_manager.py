"""The server under a service manager, whose part is played here: sd_notify(3) and sd_listen_fds(3)."""
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

import harness


class Manager:
    """The socket at which messages of the server arrive, each a list of lines."""

    def __init__(self, address):
        self.messages = []
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while True:
            try:
                message = self.socket.recv(65536)
            except OSError:
                return
            if not message:
                return
            self.messages.append(message.decode().split("\n"))

    def heard(self, line, since=0):
        """The first message with this line."""
        for message in self.messages[since:]:
            if line in message:
                return message
        return None

    def wait_for(self, line, since=0):
        return harness.wait_until(lambda: self.heard(line, since), f"'{line}' is said")

    def close(self):
        harness.end(self.socket)


class Case(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="svcd-test-")
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def serve(self, env, start=True):
        server = harness.Server(env=env)
        self.addCleanup(server.remove)
        return server.start() if start else server

    def manager(self, address):
        manager = Manager(address)
        self.addCleanup(manager.close)
        return manager


class Notifications(Case):
    def life(self, address, variable):
        """From the start to the end, in order; answers are given as soon as READY is said."""
        manager = self.manager(address)
        server = self.serve({"NOTIFY_SOCKET": variable})
        manager.wait_for("READY=1")
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
        self.assertIn("STATUS=replaying the journal", manager.messages[0])
        self.assertRegex(manager.heard("READY=1")[-1],
                         r"^STATUS=listening on 1 addresses, \d+ objects$")

        said = len(manager.messages)
        server.process.send_signal(signal.SIGHUP)
        manager.wait_for("READY=1", said)
        reloading, ready = manager.messages[said:said + 2]
        self.assertEqual(reloading[0], "RELOADING=1")
        self.assertTrue(re.fullmatch(r"MONOTONIC_USEC=\d+", reloading[1]), reloading)
        self.assertIn("STATUS=the configuration has been read anew", ready)

        self.assertIsNone(manager.heard("STOPPING=1"))
        self.assertEqual(server.stop(), 0)
        manager.wait_for("STOPPING=1")
        self.assertIsNone(manager.heard("WATCHDOG=1"))

    def test_at_a_path(self):
        path = os.path.join(self.directory, "notify")
        self.life(path, path)

    def test_at_an_abstract_address(self):
        name = f"svcd-test-{os.getpid()}-{id(self)}"
        self.life("\0" + name, "@" + name)

    def test_a_refused_configuration(self):
        """READY is said all the same, and why in one line that adds no other."""
        path = os.path.join(self.directory, "notify")
        manager = self.manager(path)
        server = self.serve({"NOTIFY_SOCKET": path})
        manager.wait_for("READY=1")
        said = len(manager.messages)
        server.config = {"x\nMAINPID=1": 1}
        server.write_config()
        server.process.send_signal(signal.SIGHUP)
        ready = manager.wait_for("READY=1", said)
        self.assertRegex(ready[-1], r"^STATUS=the new configuration is refused: .*config\.json: x ")
        self.assertFalse([line for line in ready if line.startswith("MAINPID")])

    def test_a_failed_start(self):
        path = os.path.join(self.directory, "notify")
        manager = self.manager(path)
        with socket.create_server(("127.0.0.1", 0)) as taken:
            result = subprocess.run(
                [harness.SVCD, "--listen", f"127.0.0.1:{taken.getsockname()[1]}", "--data",
                 self.directory + "/data"], env=dict(os.environ, NOTIFY_SOCKET=path),
                capture_output=True, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(result.returncode, 2)
        said = harness.wait_until(lambda: manager.messages[-1:], "the reason is said")[0]
        self.assertRegex(said[-1], r"^STATUS=failed: listen address .*: Address already in use$")
        self.assertIsNone(manager.heard("READY=1"))

    def test_signs_of_life(self):
        path = os.path.join(self.directory, "notify")
        manager = self.manager(path)
        self.serve({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "100000"})
        harness.wait_until(lambda: manager.messages.count(["WATCHDOG=1"]) >= 5, "signs of life")
        self.assertLess(manager.messages.index(manager.heard("READY=1")),
                        manager.messages.index(["WATCHDOG=1"]))

    def test_signs_of_life_that_another_process_owes(self):
        path = os.path.join(self.directory, "notify")
        manager = self.manager(path)
        server = self.serve({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"})
        manager.wait_for("READY=1")
        self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
        self.assertEqual(server.stop(), 0)
        manager.wait_for("STOPPING=1")
        self.assertIsNone(manager.heard("WATCHDOG=1"))

    def test_nobody_listens(self):
        for where, words in ((os.path.join(self.directory, "none"), "was not told"),
                             ("nonsense", "'nonsense' is neither a path nor"),
                             ("/" + "x" * 200, "neither a path nor")):
            with self.subTest(where=where):
                server = self.serve({"NOTIFY_SOCKET": where, "WATCHDOG_USEC": "1000"})
                self.assertEqual(server.request("GET", "/Svc.Health").status, 200)
                self.assertEqual(server.stop(), 0)
                self.assertEqual(len([line for line in server.log if words in line]), 1)


# Puts descriptors where a service manager puts them, then becomes the server.
LAUNCHER = """
import os, sys
fds = [os.dup(int(fd)) for fd in sys.argv[1].split(",") if fd]
high = [os.dup2(fd, 100 + i) for i, fd in enumerate(fds)]
for i, fd in enumerate(high):
    os.dup2(fd, 3 + i, inheritable=True)
os.environ.setdefault("LISTEN_PID", str(os.getpid()))
os.environ.setdefault("LISTEN_FDS", str(len(fds)))
os.execv(sys.argv[2], sys.argv[2:])
"""


def listening(host="127.0.0.1", port=0):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family)


def ask(connection):
    with connection:
        connection.settimeout(harness.DEADLINE_S)
        connection.sendall(b"GET /Svc.Health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return connection.recv(65536).split(b"\r\n")[0]


class Sockets(Case):
    def setUp(self):
        super().setUp()
        self.log = []

    def launch(self, sockets, config=None, arguments=(), **variables):
        """Starts the server with the sockets; waits until it listens or ends. Returns the process."""
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(dict({"DataDirectory": self.directory + "/data"}, **(config or {})), file)
        os.chmod(path, 0o600)
        for each in sockets:
            self.addCleanup(each.close)
        fds = [each.fileno() for each in sockets]
        process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, ",".join(map(str, fds)), harness.SVCD, "--config", path,
             *arguments], pass_fds=fds, stderr=subprocess.PIPE, text=True,
            env=dict(os.environ, **variables))
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.log = []
        threading.Thread(target=lambda: self.log.extend(process.stderr), daemon=True).start()
        return process

    def addresses(self, count):
        """What it says that it listens on, when that is as many."""
        def find():
            found = [line.split(" listening on ")[1].split(",")[0].strip() for line in list(self.log)
                     if " listening on " in line]
            return found if len(found) >= count else None
        return harness.wait_until(find, f"it listens on {count} addresses")

    def stop(self, process):
        process.terminate()
        self.assertEqual(process.wait(timeout=harness.DEADLINE_S), 0, "".join(self.log))

    def refused(self, sockets, *words, **options):
        process = self.launch(sockets, **options)
        self.assertEqual(process.wait(timeout=harness.DEADLINE_S), 2)
        harness.wait_until(lambda: all(word in "".join(self.log) for word in words),
                           f"{words} in the log")

    def test_instead_of_the_default(self):
        one, two = listening(), listening()
        ports = [s.getsockname()[1] for s in (one, two)]
        early = socket.create_connection(("127.0.0.1", ports[0]))  # before there is a server
        process = self.launch([one, two])
        self.assertEqual(ask(early), b"HTTP/1.1 200 OK")
        self.assertEqual(ask(socket.create_connection(("127.0.0.1", ports[1]))), b"HTTP/1.1 200 OK")
        self.assertEqual(self.addresses(2), [f"127.0.0.1:{port}" for port in ports])
        self.stop(process)

    def test_instead_of_an_address_of_the_configuration(self):
        passed = listening()
        address = "127.0.0.1:%d" % passed.getsockname()[1]
        for how in ({"config": {"Listen": [address]}}, {"arguments": ["--listen", address]}):
            process = self.launch([passed], **how)
            self.assertEqual(self.addresses(1), [address])
            self.assertEqual(ask(socket.create_connection(passed.getsockname())), b"HTTP/1.1 200 OK")
            self.stop(process)

    def test_besides_the_addresses_of_the_configuration(self):
        passed = listening()
        process = self.launch([passed], {"Listen": ["127.0.0.1:0"]})
        own, other = self.addresses(2)
        self.assertEqual((own, other), ("127.0.0.1:0", "127.0.0.1:%d" % passed.getsockname()[1]))
        self.assertEqual(ask(socket.create_connection(passed.getsockname())), b"HTTP/1.1 200 OK")
        self.stop(process)

    def test_one_family_of_localhost(self):
        passed = listening()
        port = passed.getsockname()[1]
        process = self.launch([passed], {"Listen": [f"localhost:{port}"]})
        self.assertEqual(self.addresses(1), [f"localhost:{port}"])
        self.assertEqual(ask(socket.create_connection(("127.0.0.1", port))), b"HTTP/1.1 200 OK")
        self.stop(process)

    def test_a_unix_socket(self):
        """Its file is the manager's: it stays."""
        path = os.path.join(self.directory, "socket")
        passed = socket.socket(socket.AF_UNIX)
        passed.bind(path)
        passed.listen()
        process = self.launch([passed])
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        self.assertEqual(ask(client), b"HTTP/1.1 200 OK")
        self.assertEqual(self.addresses(1), [f"unix:{path}"])
        self.stop(process)
        self.assertTrue(os.path.exists(path))

    def test_an_address_that_others_reach_needs_keys(self):
        self.refused([listening("0.0.0.0")], "RequireApiKey: must be true to listen on 0.0.0.0")

    def test_what_cannot_be_listened_on(self):
        datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        silent = socket.socket()
        nameless = socket.socket(socket.AF_UNIX)
        nameless.bind("\0svcd-test-%d-%d" % (os.getpid(), id(self)))
        nameless.listen()
        # pylint: disable-next=consider-using-with
        plain = open(os.path.join(self.directory, "file"), "w", encoding="utf-8")
        for passed, why in ((datagrams, "no stream socket that listens"),
                            (silent, "no stream socket that listens"),
                            (nameless, "without an absolute path"), (plain, "it is no socket")):
            with self.subTest(why=why):
                self.refused([listening(), passed], "LISTEN_FDS: 'b.socket', descriptor 4: ", why,
                             LISTEN_FDNAMES="a.socket:b.socket")

    def test_bad_numbers(self):
        for number in ("", "x", "-1", "33"):
            with self.subTest(number=number):
                self.refused([], "LISTEN_FDS: must be a number up to 32", LISTEN_FDS=number)

    def test_sockets_for_another_process(self):
        process = self.launch([listening()], {"Listen": ["127.0.0.1:0"]}, LISTEN_PID="1")
        self.assertEqual(self.addresses(1), ["127.0.0.1:0"])
        self.stop(process)


if __name__ == "__main__":
    unittest.main()

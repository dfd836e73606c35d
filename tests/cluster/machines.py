"""What the tests of a cluster share: real members of etcd, certificates and passwords for them, and proxies that
delay, cut and lose answers."""
import asyncio
import base64
import itertools
import json
import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

MEMBERS = 3
WAIT_S = 60  # for what must happen


class Failed(Exception):
    """What must happen did not."""


PORTS_FIRST, PORTS_END = 20000, 32000  # below those that connections take: a server that is dead keeps its own
PORTS_OF_A_PROCESS = 300  # a process of many tests takes each once: one whose server is dead is not given away


class Ports:
    """A range of ports for this process alone, as long as it lives: its first one is taken."""

    def __init__(self):
        self.sign = self.free = None
        self.lock = threading.Lock()  # of several tests at once, each is to get ports of the one range

    def take(self):
        for first in range(PORTS_FIRST, PORTS_END, PORTS_OF_A_PROCESS):
            self.sign = socket.socket()
            try:
                self.sign.bind(("127.0.0.1", first))
                self.sign.listen()
            except OSError:
                self.sign.close()
                continue
            self.free = itertools.cycle(range(first + 1, first + PORTS_OF_A_PROCESS))
            return
        raise Failed("there is no range of free ports")

    def next(self):
        with self.lock:
            if self.free is None:
                self.take()
        for port in itertools.islice(self.free, PORTS_OF_A_PROCESS):
            with socket.socket() as one:
                try:
                    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    one.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    pass
        raise Failed("there is no free port")


PORTS = Ports()


def free_ports(count):
    return [PORTS.next() for _ in range(count)]


def wait_until(what, condition):
    until = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > until:
            raise Failed(f"{what}: not within {WAIT_S} s")
        time.sleep(0.02)


class Network:
    """One loop, in a thread of its own: of all proxies, and of what else speaks over sockets."""

    def __init__(self):
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def run(self, coroutine, timeout=None):
        """From another thread: its result."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout)

    def begin(self, coroutine):
        """From another thread: a future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)


NETWORK = Network()
TRANSACTIONS = (b"POST /v3/kv/txn",)  # of etcd
CHANGES = (b"POST ", b"PATCH ", b"PUT ", b"DELETE ")  # of svcd


class Proxy:
    """Passes connections on. `lose` such answers are lost, after the request got through: the connection is
    cut when the answer comes. While `frozen`, nothing comes back, and nothing ends; while `deaf`, nothing that is
    sent arrives, and nothing ends. While `is_cut`, connections end and are refused. `delay_s` is added to
    whatever passes, either way."""

    def __init__(self, target, changes=TRANSACTIONS):
        self.target = target
        self.changes = changes
        self.lose = 0
        self.lost = 0
        self.frozen = False
        self.deaf = False
        self.is_cut = False
        self.delay_s = 0
        self.open = set()
        self.server = NETWORK.run(self.serve())
        self.port = self.server.sockets[0].getsockname()[1]

    async def serve(self):
        return await asyncio.start_server(self.connection, "127.0.0.1", 0)

    def close(self):
        self.cut()
        NETWORK.loop.call_soon_threadsafe(self.server.close)

    def cut(self):
        self.is_cut = True
        for task in list(self.open):
            NETWORK.loop.call_soon_threadsafe(task.cancel)

    def heal(self):
        self.lose = self.delay_s = 0
        self.frozen = self.deaf = self.is_cut = False

    async def connection(self, reader, writer):
        if self.is_cut:
            writer.close()
            return
        try:
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.close()
            return
        is_change = [False]

        async def pass_on():
            while data := await reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                while self.deaf:
                    await asyncio.sleep(0.02)
                if b" HTTP/1.1\r\n" in data:
                    is_change[0] = data.startswith(self.changes)
                to_writer.write(data)
                await to_writer.drain()

        async def pass_back():
            while data := await to_reader.read(65536):
                if self.delay_s:
                    await asyncio.sleep(self.delay_s)
                while self.frozen:
                    await asyncio.sleep(0.02)
                if self.lose > 0 and is_change[0]:
                    self.lose -= 1
                    self.lost += 1
                    return
                writer.write(data)
                await writer.drain()

        tasks = [asyncio.ensure_future(pass_on()), asyncio.ensure_future(pass_back())]
        self.open.update(tasks)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.open.difference_update(tasks)
        writer.close()
        to_writer.close()


class Secrets:
    """Certificates of a CA of their own: the members' (which their gateways use as clients too), the nodes'
    (without a CommonName, which etcd would take for a user); a user and a password."""

    def __init__(self, directory):
        self.directory = directory
        self.token = None
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                     "-subj", "/CN=ca", "-keyout", self.path("ca.key"), "-out", self.path("ca.pem"))
        self.certificate("member", "subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n")
        self.certificate("node", "extendedKeyUsage=clientAuth\n")
        with open(self.path("password"), "w", encoding="utf-8") as file:
            file.write("secret\n")
        self.context = ssl.create_default_context(cafile=self.path("ca.pem"))
        self.context.load_cert_chain(self.path("node.pem"), self.path("node.key"))

    def path(self, name):
        return os.path.join(self.directory, name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def certificate(self, name, extensions):
        with open(self.path("extensions"), "w", encoding="utf-8") as file:
            file.write(extensions)
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/O=svcd",
                     "-keyout", self.path(name + ".key"), "-out", self.path(name + ".csr"))
        self.openssl("x509", "-req", "-days", "2", "-in", self.path(name + ".csr"), "-CA", self.path("ca.pem"),
                     "-CAkey", self.path("ca.key"), "-CAcreateserial", "-extfile", self.path("extensions"),
                     "-out", self.path(name + ".pem"))

    def of_member(self):
        return ["--cert-file", self.path("member.pem"), "--key-file", self.path("member.key"), "--client-cert-auth",
                "--trusted-ca-file", self.path("ca.pem")]

    def of_node(self):
        return [f"ca_file={self.path('ca.pem')}", f"cert_file={self.path('node.pem')}",
                f"key_file={self.path('node.key')}", "user=svcd", f"password_file={self.path('password')}"]

    def enable(self, member):
        """Passwords, and a user who may write below /svcd/ alone."""
        everything = {"permType": "READWRITE", "key": encode(b"/svcd/"), "range_end": encode(b"/svcd0")}
        for path, body in [("role/add", {"name": "svcd"}), ("role/grant", {"name": "svcd", "perm": everything}),
                           ("role/add", {"name": "root"}),
                           ("user/add", {"name": "svcd", "password": "secret"}),
                           ("user/add", {"name": "root", "password": "secret"}),
                           ("user/grant", {"user": "svcd", "role": "svcd"}),
                           ("user/grant", {"user": "root", "role": "root"}), ("enable", {})]:
            member.ask("/v3/auth/" + path, body)

    def sign_in(self, member):
        self.token = member.ask("/v3/auth/authenticate", {"name": "root", "password": "secret"})["token"]


def encode(data):
    return base64.b64encode(data).decode()


class Member:
    """One of etcd's."""

    def __init__(self, number, directory, client, peers, secrets, more=()):
        self.name = f"m{number}"
        self.secrets = secrets
        self.url = f"{'https' if secrets else 'http'}://127.0.0.1:{client}"
        self.client = client
        self.log = os.path.join(directory, self.name + ".log")
        self.command = [
            "etcd", "--name", self.name, "--data-dir", os.path.join(directory, self.name),
            "--listen-client-urls", self.url, "--advertise-client-urls", self.url,
            "--listen-peer-urls", f"http://127.0.0.1:{peers[number]}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers[number]}",
            "--initial-cluster", ",".join(f"m{i}=http://127.0.0.1:{port}" for i, port in enumerate(peers)),
            "--heartbeat-interval", "50", "--election-timeout", "500", "--snapshot-count", "1000", *more,
            *(secrets.of_member() if secrets else [])]
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def restore(self, snapshot, *more):
        """It has what the snapshot has, once it starts."""
        known = dict(zip(self.command[1:], self.command[2:]))
        taken = ("--name", "--data-dir", "--initial-advertise-peer-urls", "--initial-cluster")
        subprocess.run(["etcdctl", "snapshot", "restore", snapshot, *more,
                        *(word for name in taken for word in (name, known[name]))],
                       check=True, capture_output=True, timeout=60)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def signal(self, number):
        self.process.send_signal(number)

    def ask(self, path, body, timeout=2):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        if self.secrets and self.secrets.token:
            request.add_header("Authorization", self.secrets.token)
        with urllib.request.urlopen(request, timeout=timeout,
                                    context=self.secrets.context if self.secrets else None) as answer:
            return json.load(answer)

    def is_well(self):
        try:
            return "leader" in self.ask("/v3/maintenance/status", {})
        except (OSError, urllib.error.URLError, ValueError):
            return False

    def leads(self):
        try:
            status = self.ask("/v3/maintenance/status", {})
            return status["leader"] == status["header"]["member_id"]
        except (OSError, urllib.error.URLError, ValueError, KeyError):
            return False

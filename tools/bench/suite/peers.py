"""The servers that are measured: each starts pinned to the server's core and is ended by its id.
Receivers of deliveries have a core of their own."""
import functools
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from . import certificates, machine

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# undici as npm has it (context.install), or else Debian's.
NODE_MODULES = os.path.join(os.path.dirname(os.path.dirname(BENCH)), "build", "bench-node")
NODE_PATH = NODE_MODULES + "/node_modules:/usr/share/nodejs"


class Place:
    """Where a run keeps its files and finds our programs."""

    def __init__(self, build, directory):
        self.build = os.path.abspath(build)
        self.directory = directory

    def program(self, name):
        return os.path.join(self.build, "tools", "bench", "bench_" + name)

    def library(self, name):
        return os.path.join(self.build, "tools", "bench", f"libbench_{name}.so")

    def scratch(self, name):
        return tempfile.mkdtemp(prefix=name + "-", dir=self.directory)

    def file(self, name, content=b""):
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode())
        return path

    @functools.cached_property
    def certificate(self):
        return certificates.Certificate(self.directory)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def loopback(port):
    """The addresses of this machine that a name of localhost's may be, with the port."""
    found = [f"127.0.0.1:{port}"]
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        found.append(f"[::1]:{port}")
    except OSError:
        pass
    return found


def wait_for(port, process, seconds=20):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"{process.args} does not answer on port {port}")


class Peer:
    """A process that listens on `port` and is measured."""

    def __init__(self, name, command, port, core=machine.SERVER_CORE, **options):
        self.name = name
        self.port = port
        self.process = subprocess.Popen(machine.pinned(core, command), stdout=subprocess.DEVNULL,
                                        stderr=options.pop("stderr", subprocess.DEVNULL),
                                        **options)
        wait_for(port, self.process)

    @property
    def pids(self):
        return machine.family(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Svcd(Peer):
    """Our server over a directory of its own, which goes with it unless it was given."""

    def __init__(self, name, binary, place, env=None, data=None, **config):
        self.directory = place.scratch("svcd")
        self.data = data or os.path.join(self.directory, "data")
        settings = {"Listen": ["127.0.0.1:0"], "DataDirectory": self.data,
                    "Resources": RESOURCES, "Limits": LIMITS, "Delivery": DELIVERY, **config}
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)
        self.name = name
        self.replay_ms = None
        started = time.monotonic()
        self.process = subprocess.Popen(
            machine.pinned(machine.SERVER_CORE, [binary, "--config", path]),
            env=dict(os.environ, **(env or {})), stderr=subprocess.PIPE)
        self.port = self._read_port()
        self.start_ms = (time.monotonic() - started) * 1000
        threading.Thread(target=self._drain_log, args=(self.process.stderr,), daemon=True).start()

    def _read_port(self):
        lines = []
        for line in self.process.stderr:
            lines.append(line.decode("utf-8", "replace"))
            replayed = re.search(r"(\d+) records replayed in (\d+) ms", lines[-1])
            if replayed:
                self.replay_ms = int(replayed.group(2))
            found = re.search(r"listening on \S+, port (\d+)", lines[-1])
            if found:
                return int(found.group(1))
        raise RuntimeError("svcd does not start: " + "".join(lines))

    @staticmethod
    def _drain_log(stream):
        for _ in stream:
            pass

    def stop(self):
        super().stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def request(self, method, target, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, target, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json"} if body is not None else {})
            answer = connection.getresponse()
            content = answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {target}: {answer.status} {content[:400]!r}")
            return answer, content
        finally:
            connection.close()

    def post(self, target, body):
        return json.loads(self.request("POST", target, body)[1])

    def get(self, target):
        return self.request("GET", target)

    def metrics(self):
        """The samples of Svc.Metrics, by name with labels."""
        lines = self.get("/Svc.Metrics")[1].decode().splitlines()
        return {name: float(value) for name, value in
                (line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))}

    def settle(self, seconds):
        """Waits until no delivery is pending any more; the metrics then."""
        until(lambda pending: pending == 0, lambda: self.metrics()["svc_deliveries_pending"],
              seconds, 0.02)
        return self.metrics()


RESOURCES = [
    {"Name": "Bench.Item", "Kind": "EntityResource", "Description": "What POST writes"},
    {"Name": "Bench.Placed", "Kind": "EventResource", "Description": "What deliveries tell"},
]
LIMITS = {"Connections": 12000, "PendingDeliveries": 6000000,
          "WebhookPendingDeliveries": 3000000, "AccountWebhooks": 100000000}
DELIVERY = {"MaxConnectionsPerHost": 64}


def _nginx_command(directory, servers):
    path = os.path.join(directory, "nginx.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(NGINX % {"directory": directory, "servers": servers})
    return ["nginx", "-c", path, "-p", directory, "-e", "stderr"]


def nginx(place, content, locations, name="nginx"):
    """One worker; the files of `content` under its root, `locations` as given."""
    directory = place.scratch("nginx")
    for file_name, data in content.items():
        with open(os.path.join(directory, file_name), "wb") as file:
            file.write(data)
    os.chmod(directory, 0o755)
    port = free_port()
    return Peer(name, _nginx_command(directory, f"""
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {directory};
        {locations}
    }}"""), port)


NGINX = """daemon off;
user root;
worker_processes 1;
worker_rlimit_nofile 15000;
pid %(directory)s/pid;
error_log stderr crit;
events { worker_connections 12000; }
http {
    access_log off;
    server_tokens off;
    sendfile off;
    tcp_nodelay on;
    keepalive_requests 1000000000;
    client_header_buffer_size 4k;
    keepalive_timeout 75s;
    open_file_cache max=16;
    default_type application/json;
    client_body_temp_path %(directory)s/body;
    proxy_temp_path %(directory)s/proxy;
    fastcgi_temp_path %(directory)s/fastcgi;
    uwsgi_temp_path %(directory)s/uwsgi;
    scgi_temp_path %(directory)s/scgi;
    %(servers)s
}
"""


def h2o(place, body):
    directory = place.scratch("h2o")
    with open(os.path.join(directory, "answer.json"), "wb") as file:
        file.write(body)
    port = free_port()
    path = os.path.join(directory, "h2o.conf")
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"""listen: {{host: 127.0.0.1, port: {port}}}
user: root
num-threads: 1
max-connections: 12000
hosts:
  default:
    paths:
      /:
        file.dir: {directory}
""")
    return Peer("h2o, a file", ["h2o", "-c", path], port)


def node(body):
    port = free_port()
    return Peer("Node http", ["node", os.path.join(BENCH, "node_server.js"), port, body], port)


def epoll(place, answer):
    port = free_port()
    path = place.file("epoll-answer", answer)
    return Peer("epoll, no parser", [place.program("epoll_server"), port, path], port)


def redis(place, fsync):
    directory = place.scratch("redis")
    port = free_port()
    return Peer(f"Redis SET, appendfsync {fsync}",
                ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", directory,
                 "--save", "", "--appendonly", "yes", "--appendfsync", fsync,
                 "--auto-aof-rewrite-percentage", "0", "--daemonize", "no"], port)


def until(enough, read, seconds, poll_s):
    """Reads until it is enough, the time is over, or nothing has changed for a while; the last
    value."""
    now = time.monotonic()
    end, quiet, value = now + seconds, now + QUIET_S, read()
    while not enough(value) and now < min(end, quiet):
        time.sleep(poll_s)
        before, value, now = value, read(), time.monotonic()
        if value != before:
            quiet = now + QUIET_S
    return value


QUIET_S = 10  # longer than until the first retry


class Waiting:
    """Of what deliveries go to: `count()` tells how many have come."""

    POLL_S = 0.002

    def wait(self, count, seconds):
        """Until so many requests have come, or nothing came for a while; how many there were."""
        return until(lambda came: came >= count, self.count, seconds, self.POLL_S)


class Receiver(Waiting, Peer):
    """Our receiver; counts requests and notes when each serial came."""

    delivery = {}  # what the configuration of who delivers says more

    def __init__(self, place, slots=0):
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.stamps = os.path.join(place.directory, f"receipts-{port}")
        self.first = os.path.join(place.directory, f"first-request-{port}")
        super().__init__("receiver", [place.program("receiver"), port, self.stamps, slots,
                                      self.first], port, core=machine.RECEIVER_CORE)

    def count(self):
        with open(self.stamps, "rb") as file:
            return int.from_bytes(file.read(8), "little")

    def stop(self):
        super().stop()
        os.unlink(self.stamps)


class NginxReceiver(Waiting, Peer):
    """nginx that answers 204: over TLS at `url` when it is given a certificate, and at `plain_port`
    without. What comes by either is counted. `log` is a log_format: what is noted of each request
    that comes over TLS."""

    POLL_S = 0.02  # it answers that by the processor that receives
    FLUSH_MS = 100
    stamps = None  # it does not tell when each came

    def __init__(self, place, certificate=None, http2=False, directives="", log=None):
        directory = place.scratch("receiver")
        self.noted = open(place.file(f"requests-{os.path.basename(directory)}"), encoding="ascii")
        self.plain_port = free_port()
        port = free_port() if certificate else self.plain_port
        self.url = f"{'https' if certificate else 'http'}://127.0.0.1:{port}"
        self.delivery = {"CaFile": certificate.authority} if certificate else {}
        self.polls = 0
        servers = NGINX_STATUS % {"port": self.plain_port}
        if certificate:
            if log:
                servers += f"\n    log_format noted '{log}';"
                directives += (f" access_log {self.noted.name} noted buffer=64k "
                               f"flush={self.FLUSH_MS}ms;")
            how = "ssl http2" if http2 else "ssl"
            listen = "".join(f"listen {address} {how} backlog=4096; " for address in loopback(port))
            servers += NGINX_TLS % {"listen": listen, "chain": certificate.chain,
                                    "key": certificate.key, "directives": directives}
        super().__init__("nginx", _nginx_command(directory, servers), port,
                         core=machine.RECEIVER_CORE)
        self.status = http.client.HTTPConnection("127.0.0.1", self.plain_port, timeout=30)

    def count(self):
        """As nginx counts requests, less those that ask for it."""
        self.polls += 1
        self.status.request("GET", "/status")
        text = self.status.getresponse().read().decode()
        return int(re.search(r"requests\s+(?:\d+ ){2}(\d+)", text).group(1)) - self.polls

    def take_noted(self):
        """What has been noted since the last time, the words of each line."""
        time.sleep(3 * self.FLUSH_MS / 1000)
        return [line.split() for line in self.noted]

    def stop(self):
        self.status.close()
        super().stop()
        self.noted.close()


NGINX_STATUS = """
    server {
        listen 127.0.0.1:%(port)d backlog=4096;
        keepalive_timeout 1h;
        location / { return 204; }
        location = /status { access_log off; stub_status; }
    }"""
NGINX_TLS = """
    server {
        %(listen)s
        ssl_certificate %(chain)s;
        ssl_certificate_key %(key)s;
        ssl_protocols TLSv1.2 TLSv1.3;
        %(directives)s
        location / { return 204; }
    }"""

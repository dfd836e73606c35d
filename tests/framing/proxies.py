#!/usr/bin/env python3
"""Do a proxy and svcd ever read the same bytes as different requests? Sends what cases.py has to svcd itself,
whole and byte by byte, and through nginx and haproxy, which keep their connections to it open.

Each case hides a second request, which stores an entity with the case's number, in what may be the first
one's body. It is evaluated rightly when its client is answered twice, by svcd; without the second answer it was
smuggled. After each case a request on a connection of its own must get its own answer, not one that was left
behind.

    SVCD=... tests/framing/proxies.py [--all] [NAME-PART]"""
import argparse
import collections
import concurrent.futures
import os
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import cases  # noqa: E402
import harness  # noqa: E402

PATIENCE_S = 120  # for the end of a connection
# Each side of ours closes a connection that is idle after a second, and one on which something is missing after
# five. But svcd does not behind a proxy: one that sends a request on a connection which svcd is closing answers for
# it, and that would be another's answer.
DIRECTLY = {"BodySeconds": 5, "HeaderSeconds": 5, "IdleSeconds": 1}
BEHIND_PROXIES = {"BodySeconds": 60, "HeaderSeconds": 60, "IdleSeconds": 600}
WORKERS = 192  # most wait for such an end
TRIES = 10  # until a case comes before its connection is closed as an idle one

NGINX = """daemon off; master_process off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 512; }}
http {{
    access_log off; client_body_timeout 5s; client_header_timeout 5s; keepalive_timeout 1s;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
    upstream svcd {{ server 127.0.0.1:{backend}; keepalive 4; }}
    server {{
        listen 127.0.0.1:{port}; underscores_in_headers on; ignore_invalid_headers off;
        location / {{
            proxy_pass http://svcd; proxy_http_version 1.1; proxy_set_header Connection "";
            proxy_request_buffering {buffering};
        }}
    }}
}}
"""
HAPROXY = """defaults
    mode http
    timeout connect 30s
    timeout client 5s
    timeout server 60s
    timeout http-request 5s
    timeout http-keep-alive 1s
    option http-keep-alive
    http-reuse always
frontend front
    bind 127.0.0.1:{port}
    {option}
    default_backend back
backend back
    server svcd 127.0.0.1:{backend}
"""


class Proxy:
    """A process between the client and svcd."""

    def __init__(self, name, command, config, backend, **values):
        self.name, self.directory = name, tempfile.TemporaryDirectory(prefix="svcd-framing-")
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            self.port = s.getsockname()[1]
        file = os.path.join(self.directory.name, "config")
        with open(file, "w", encoding="utf-8") as out:
            out.write(config.format(port=self.port, backend=backend, **values))
        env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
        self.process = subprocess.Popen([part.format(file=file, directory=self.directory.name) for part in command],
                                        env=env, stderr=subprocess.DEVNULL)
        harness.wait_until(self.listens, f"{name} listens")

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def close(self):
        self.process.kill()
        self.process.wait()
        self.directory.cleanup()


def read_all(connection):
    """What comes until the other side closes. TimeoutError when it does not."""
    received = b""
    connection.settimeout(PATIENCE_S)
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionError:
        pass
    return received


def answers_of(received):
    """(status, was it svcd's?, body) of each answer."""
    answers = []
    while b"\r\n\r\n" in received:
        head, received = received.split(b"\r\n\r\n", 1)
        status = int(head.split(b" ")[1])
        if status == 100:
            continue
        fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
        if b"chunked" in fields.get(b"transfer-encoding", b""):
            body = b""
            while received:
                size, received = received.split(b"\r\n", 1)
                n = int(size, 16)
                body, received = body + received[:n], received[n + 2:]
                if n == 0:
                    break
        else:
            n = int(fields.get(b"content-length", b"0"))
            body, received = received[:n], received[n:]
        answers.append((status, b"svc-info" in fields, body))
    return answers


def send(port, data, is_slow=False):
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as connection:
        try:
            if is_slow:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for at in range(len(data)):
                    connection.send(data[at:at + 1])
            else:
                connection.sendall(data)
        except ConnectionError:
            pass  # refused before it was whole
        return answers_of(read_all(connection))


def request(target, text, fields=b""):
    body = b'{"Case":"%s"}' % text.encode()
    return (b"POST %s HTTP/1.1\r\nHost: svcd.test\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (target.encode(), fields, len(body), body))


def start_server(limits):
    return harness.Server(dict(harness.load_config(harness.SHOP), Limits=limits, Hosts=["svcd", "svcd.test"])).start()


class Run:
    def __init__(self, alone, behind):
        self.alone, self.behind, self.passed, self.problems = alone, behind, 0, []
        self.statuses = collections.Counter()

    @staticmethod
    def is_stored(server, mark):
        return server.request("GET", f"/Shop.Message/Case={mark}").status == 200

    def check(self, condition, what):
        if condition:
            self.passed += 1
        else:
            self.problems.append(what)

    def ends(self, way, number, case, *where):
        """Runs one of the two ways below; a connection that nobody ends is a problem of its own."""
        try:
            way(number, case, *where)
        except TimeoutError:
            at = where[0].name if where else "directly"
            self.problems.append(f"{at}: open after {PATIENCE_S} s: {case.name}")

    def through(self, number, case, proxy):
        mark = f"{proxy.port}-{number}"
        answers = send(proxy.port, case.bytes(request("/Shop.Message", mark), b"POST /Shop.Message HTTP/1.1\r\n"))
        own = sum(is_svcd for _, is_svcd, _ in answers)
        self.statuses[proxy.name, answers[0][0] if answers else None] += 1
        self.check(own >= 2 or not self.is_stored(self.behind, mark), f"{proxy.name}: smuggled: {case.name}")
        clean = send(proxy.port, request("/Shop.Message", f"clean-{mark}", b"Connection: close\r\n"))
        self.check(len(clean) == 1 and f"clean-{mark}".encode() in clean[0][2],
                   f"{proxy.name}: another's answer: after {case.name}: {clean}")

    def directly(self, number, case):
        results = []
        for is_slow in (False, True):
            mark = f"direct-{number}-{is_slow:d}"
            data = case.bytes(request("/Shop.Message", mark), b"POST /Shop.Message HTTP/1.1\r\n")
            for _ in range(TRIES):
                began = time.monotonic()
                answers = send(self.alone.port, data, is_slow)
                if answers or time.monotonic() - began < DIRECTLY["IdleSeconds"]:
                    break
            results.append(([status for status, _, _ in answers], self.is_stored(self.alone, mark)))
        self.statuses["directly", results[0][0][0] if results[0][0] else None] += 1
        self.check(results[0] == results[1] and results[0][0],
                   f"directly: {case.name}: whole {results[0]}, byte by byte {results[1]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every byte at every place")
    parser.add_argument("part", nargs="?", default="")
    options = parser.parse_args()
    chosen = [case for case in cases.all_cases(options.all) if options.part in case.name]
    servers = [start_server(limits) for limits in (DIRECTLY, BEHIND_PROXIES)]
    port = servers[1].port
    run, proxies, began = Run(*servers), [], time.monotonic()
    try:
        nginx = ["nginx", "-p", "{directory}", "-c", "{file}"]
        haproxy = ["haproxy", "-db", "-q", "-f", "{file}"]
        proxies.append(Proxy("nginx", nginx, NGINX, port, buffering="on"))
        proxies.append(Proxy("nginx, unbuffered", nginx, NGINX, port, buffering="off"))
        proxies.append(Proxy("haproxy", haproxy, HAPROXY, port, option=""))
        proxies.append(Proxy("haproxy, lenient", haproxy, HAPROXY, port,
                             option="option accept-invalid-http-request"))
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            jobs = [pool.submit(run.ends, run.through, number, case, proxy)
                    for number, case in enumerate(chosen) for proxy in proxies]
            jobs += [pool.submit(run.ends, run.directly, number, case) for number, case in enumerate(chosen)]
            for job in jobs:
                job.result()
    finally:
        for proxy in proxies:
            proxy.close()
        alive = all(server.process.poll() is None for server in servers)
        for server in servers:
            server.remove()
    run.check(alive, "svcd ended")
    for problem in sorted(run.problems):
        print(problem)
    for way in sorted({way for way, _ in run.statuses}):
        print(f"{way}: " + ", ".join(f"{count} × {status}" for (w, status), count in
                                     sorted(run.statuses.items(), key=str) if w == way))
    print(f"{len(chosen)} cases, {len(proxies)} proxies, {time.monotonic() - began:.0f} s")
    print(f"{run.passed} passed, {len(run.problems)} failed")
    return 1 if run.problems else 0


if __name__ == "__main__":
    sys.exit(main())

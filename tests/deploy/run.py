#!/usr/bin/env python3
"""What deploy/ has for others' programs, each checked by its own: nginx and haproxy take their files, and requests go
through them; promtool takes the rules and plays the alerts; the manifest fits Kubernetes' schema; every metric that
rules and board name is one that the server shows.

    SVCD=build/dev/svcd tests/deploy/run.py [-v] [NAME-PART...]"""
import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402
import tls  # noqa: E402

DEPLOY = os.path.join(ROOT, "deploy")
VALIDATOR = "kubernetes-validate==1.34.1"  # with the schemas of Kubernetes 1.34 inside
NAME = "svcd.example"
CLIENT, OTHER = "127.0.0.2", "127.0.0.3"
# Of Prometheus itself.
OTHERS_METRICS = {"up"}
# In the middle `//` is an empty part, in quotes it is data, as %2F is.
TARGETS = ["/Shop.Message//limit=2", "/Shop.Message/limit=2", "//", "///limit=1", "/Shop.Message/Path=a%2Fb",
           "/Shop.Message/Path=a%2f%2Fb", "/Shop.Message/Path=a//limit=1", "/Shop.Message/Path=%20a%25b%26c",
           "/%53hop.Message/Path!=null&Path>a/order_asc=Path", "/Shop.Message/Path=..%2F..", "/./Shop.Message",
           "/?/Shop.Message//limit=1", "/Shop.Message?where=Path%3Da%2Fb"]
PATHS = ["a/b", "a//b", "a", " a%b&c", "../.."]


def read(*names):
    with open(os.path.join(ROOT, *names), encoding="utf-8") as file:
        return file.read()


def run(*command, **options):
    """Its output and errors; fails with them."""
    env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
    result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                            timeout=harness.DEADLINE_S, check=False, **options)
    if result.returncode:
        raise AssertionError(f"{command}: exit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def changed(text, changes):
    """The text with each `old` replaced, which must be there."""
    for old, new in changes.items():
        if old not in text:
            raise AssertionError(f"there is no {old!r} any more")
        text = text.replace(old, new)
    return text


def free_ports(count):
    """Ports that nobody has, all at once."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def without_varying(answer):
    """What two answers to the same request have in common; the Id of a stored error is another."""
    fields = {name.lower(): value for name, value in answer.headers.items()
              if name.lower() in ("content-type", "content-length", "svc-info", "etag")}
    body = answer.body if answer.status < 400 else re.sub(rb"[0-9a-f-]{36}", b"Id", answer.body)
    return answer.status, fields, body


class Fixed(harness.Server):
    """A server on ports that were chosen before, the same after a restart."""

    def __init__(self, config, *ports):
        super().__init__(config)
        self.ports = ports
        self.listen = [f"127.0.0.1:{ports[0]}", {"Address": f"127.0.0.1:{ports[1]}", "ProxyProtocol": True}]

    def _read_log(self, process):
        for line in process.stderr:
            self.log.append(line.decode("utf-8", "replace").rstrip("\n"))
            if f"listening on 127.0.0.1:{self.ports[1]}" in self.log[-1]:
                self.port = self.ports[0]


class Proxied(unittest.TestCase):
    """A server, and a proxy in front of it with the file of deploy/."""
    limits = {}

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.authority, (self.certificate, self.key) = tls.ours()
        self.front, self.plain, self.proxied = free_ports(3)
        config = dict(harness.load_config(harness.SHOP), Hosts=["x", NAME], Limits=self.limits,
                      TrustedProxies=["127.0.0.1/32"])
        self.server = Fixed(config, self.plain, self.proxied)
        self.addCleanup(self.server.remove)
        self.server.start()

    def begin(self, *command):
        env = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin")
        with open(os.path.join(self.directory, "log"), "wb") as log:
            process = subprocess.Popen(command, env=env, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)

        def listens():
            self.assertIsNone(process.poll(), read(self.directory, "log"))
            try:
                socket.create_connection(("127.0.0.1", self.front), timeout=1).close()
                return True
            except OSError:
                return False
        harness.wait_until(listens, f"{command[0]} listens")

    def connection(self, source=CLIENT):
        """TLS through the proxy, from an address that is no proxy's."""
        context = ssl.create_default_context(cafile=self.authority)
        made = http.client.HTTPSConnection("127.0.0.1", self.front, timeout=harness.DEADLINE_S, context=context,
                                           source_address=(source, 0))
        self.addCleanup(made.close)
        return made

    def ask(self, method, target, body=None, source=CLIENT, headers=None):
        connection = self.connection(source)
        connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
        connection.putheader("Host", NAME)
        for name, value in (headers or {}).items():
            connection.putheader(name, value)
        data = None if body is None else json.dumps(body).encode()
        if data is not None:
            connection.putheader("Content-Type", "application/json")
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        return harness.Answer(answer.status, answer.headers, answer.read())

    def passes_targets_on_as_they_are(self):
        for path in PATHS:
            self.assertEqual(self.ask("POST", "/Shop.Message", {"Path": path}).status, 201)
        found = self.ask("GET", "/Shop.Message/Path=a%2Fb")
        self.assertEqual(found.status, 200, found)
        self.assertEqual([row["Path"] for row in found.json()], ["a/b"])
        self.assertEqual(len(self.ask("GET", "/Shop.Message//limit=2").json()), 2)
        seen = set()
        for target in TARGETS:
            through, direct = self.ask("GET", target), self.server.request("GET", target)
            self.assertEqual(without_varying(through), without_varying(direct), target)
            seen.add(without_varying(through)[2])
        self.assertGreater(len(seen), 6)  # they do differ

    def tells_clients_apart(self):
        """Too many wrong keys from one address: it is turned away, by its own address, and others are not."""
        wrong = {"Authorization": "apikey wrong", "X-Forwarded-For": OTHER}
        harness.wait_until(lambda: self.ask("GET", "/Shop.Message", headers=wrong).status == 429, "it is turned away")
        self.assertEqual(self.ask("GET", "/Shop.Message", headers=wrong).status, 429)
        self.assertEqual(self.ask("GET", "/Shop.Message", headers=wrong, source=OTHER).status, 401)
        self.assertTrue([line for line in self.server.log if CLIENT in line], self.server.log)
        self.assertFalse([line for line in self.server.log if OTHER in line], self.server.log)

    def streams(self):
        """An event arrives while the stream goes on."""
        connection = self.connection()
        connection.request("GET", "/Svc.Event", headers={"Host": NAME, "Accept": "text/event-stream"})
        answer = connection.getresponse()
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.ask("POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 17}}).status,
                         201)
        while b"17" not in (line := answer.readline()):
            self.assertTrue(line, "the stream ended")

    def probes(self):
        for target in ("/livez", "/readyz"):
            self.assertEqual(self.ask("GET", target).status, 200, target)


class Nginx(Proxied):
    limits = {"FailedSignInsPerMinute": 3}

    def setUp(self):
        super().setUp()
        site = changed(read("deploy", "nginx.conf"), {
            "listen 443 ssl": f"listen 127.0.0.1:{self.front} ssl", "server 127.0.0.1:8080;":
            f"server 127.0.0.1:{self.plain};", "/etc/nginx/svcd.pem": self.certificate,
            "/etc/nginx/svcd.key": self.key})
        places = "".join(f"{name}_temp_path {self.directory}/{name};\n"
                         for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        file = os.path.join(self.directory, "nginx.conf")
        with open(file, "w", encoding="utf-8") as out:
            out.write(f"daemon off; master_process off; pid {self.directory}/pid;\nevents {{}}\n"
                      f"http {{\naccess_log off;\n{places}{site}\n}}\n")
        command = ["nginx", "-p", self.directory, "-c", file, "-e", "stderr"]
        self.assertNotIn("[warn]", run(*command, "-t"))
        self.begin(*command)

    def test_targets(self):
        self.passes_targets_on_as_they_are()

    def test_clients(self):
        self.tells_clients_apart()

    def test_streams(self):
        self.streams()

    def test_probes(self):
        self.probes()

    def test_what_is_too_large_svcd_refuses(self):
        answer = self.ask("POST", "/Shop.Message", {"Text": "x" * 1100000})
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (413, "application/problem+json"))
        answer = self.ask("GET", "/Shop.Message/Path=" + "x" * 9000)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (414, "application/problem+json"))


class Haproxy(Proxied):
    limits = {"FailedSignInsPerMinute": 3}

    def setUp(self):
        super().setUp()
        pem = os.path.join(self.directory, "svcd.pem")
        with open(pem, "w", encoding="utf-8") as out:
            out.write(read(self.certificate) + read(self.key))
        text = changed(read("deploy", "haproxy.cfg"), {
            "bind :443": f"bind 127.0.0.1:{self.front}", "/etc/haproxy/svcd.pem": pem,
            "svcd 127.0.0.1:8081": f"svcd 127.0.0.1:{self.proxied}", "check port 8080": f"check port {self.plain}",
            "inter 2s": "inter 200ms"})
        self.file = os.path.join(self.directory, "haproxy.cfg")
        with open(self.file, "w", encoding="utf-8") as out:
            out.write(text)
        self.assertNotRegex(run("haproxy", "-c", "-f", self.file), "WARNING|ALERT")
        self.begin("haproxy", "-f", self.file)
        harness.wait_until(lambda: self.ask("GET", "/livez").status == 200, "the server is up")

    def test_targets(self):
        self.passes_targets_on_as_they_are()

    def test_clients(self):
        self.tells_clients_apart()

    def test_streams(self):
        self.streams()

    def test_probes(self):
        """haproxy asks /readyz: what is down gets no request, and what is up again does."""
        self.probes()
        self.assertEqual(self.server.stop(), 0)
        harness.wait_until(lambda: "is DOWN" in read(self.directory, "log"), "the check fails")
        self.assertEqual(self.ask("GET", "/livez").status, 503)
        self.server.start()
        harness.wait_until(lambda: self.ask("GET", "/livez").status == 200, "it is up again")


class FakeNode:
    """A node as the balancer sees it: `/readyz` on one port, and on the other, behind the PROXY protocol, requests, which
    it answers with its name and the client's address."""

    def __init__(self, name, plain, proxied):
        self.name, self.ready, self.leads = name, True, False
        self.sockets = [socket.create_server(("127.0.0.1", port)) for port in (plain, proxied)]
        for listener, is_proxied in zip(self.sockets, (False, True)):
            threading.Thread(target=self.accept, args=(listener, is_proxied), daemon=True).start()

    def accept(self, listener, is_proxied):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection, is_proxied), daemon=True).start()

    def serve(self, connection, is_proxied):
        with contextlib.suppress(ConnectionError), connection, connection.makefile("rb") as stream:
            client = self.client(stream) if is_proxied else ""
            while line := stream.readline().decode().split():
                headers = http.client.parse_headers(stream)
                stream.read(int(headers.get("Content-Length") or 0))
                status = {"/readyz": self.ready, "/readyz?leader": self.ready and self.leads}.get(line[1], True)
                body = f"{self.name} {client}".encode()
                connection.sendall(b"HTTP/1.1 %d Answer\r\nContent-Length: %d\r\n\r\n%b" % (
                    200 if status else 503, len(body), body))

    @staticmethod
    def client(stream):
        head = stream.read(16)
        return socket.inet_ntoa(stream.read(int.from_bytes(head[14:], "big"))[:4]) if len(head) == 16 else ""

    def close(self):
        for listener in self.sockets:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()


class HaproxyCluster(Proxied):
    """Reads go to all nodes, changes to the one that leads."""

    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="svcd-test-")
        self.addCleanup(shutil.rmtree, self.directory, True)
        self.authority, (certificate, key) = tls.ours()
        self.front, *ports = free_ports(7)
        pem = os.path.join(self.directory, "svcd.pem")
        with open(pem, "w", encoding="utf-8") as out:
            out.write(read(certificate) + read(key))
        text = changed(read("deploy", "haproxy-cluster.cfg"), {
            "bind :443": f"bind 127.0.0.1:{self.front}", "/etc/haproxy/svcd.pem": pem, " check port 8080": " check",
            "inter 1s": "inter 100ms", "inter 500ms": "inter 100ms"})
        self.nodes = {}
        for number, name in enumerate("abc"):
            plain, proxied = ports[2 * number:2 * number + 2]
            text = changed(text, {f"{name} 10.0.0.{number + 1}:8081": f"{name} 127.0.0.1:{proxied} port {plain}"})
            self.nodes[name] = FakeNode(name, plain, proxied)
            self.addCleanup(self.nodes[name].close)
        file = os.path.join(self.directory, "haproxy.cfg")
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        self.assertNotRegex(run("haproxy", "-c", "-f", file), "WARNING|ALERT")
        self.nodes["b"].leads = True
        self.begin("haproxy", "-f", file)

    def answer(self, method, times):
        """The nodes that answered so many requests."""
        answers = [self.ask(method, "/Shop.Message", {} if method == "POST" else None) for _ in range(times)]
        return {answer.body.decode().split()[0] if answer.status == 200 else answer.status for answer in answers}

    def become(self, method, nodes):
        harness.wait_until(lambda: self.answer(method, 8) == nodes, f"{method} is answered by {nodes}")

    def test_reads_and_changes(self):
        self.become("POST", {"b"})
        self.become("GET", {"a", "b", "c"})
        self.assertEqual(self.ask("POST", "/Shop.Message", {}).body.decode(), f"b {CLIENT}")

    def test_another_leads(self):
        self.become("POST", {"b"})
        self.nodes["b"].leads, self.nodes["c"].leads = False, True
        self.become("POST", {"c"})
        self.become("GET", {"a", "b", "c"})

    def test_nobody_leads(self):
        """Changes go to the nodes, which say so."""
        self.nodes["b"].leads = False
        self.become("POST", {"a", "b", "c"})

    def test_one_is_not_ready(self):
        self.nodes["a"].ready = False
        self.become("GET", {"b", "c"})
        self.nodes["b"].ready = self.nodes["b"].leads = False
        self.nodes["c"].leads = True
        self.become("GET", {"c"})
        self.become("POST", {"c"})


def metrics_of(expressions):
    """The names of metrics in PromQL."""
    return {name for text in expressions for name in re.findall(r"\b(svc_\w+|up)\b(?!\s*[=(])", text)}


def labels_of(expression):
    """{metric: labels} that an expression selects."""
    return [(name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inner)))
            for name, inner in re.findall(r"\b(svc_\w+)\{([^}]*)\}", expression)]


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A node, which has metrics of its own; nobody is etcd.
        server = harness.Server({"Cluster": {"Name": "prod", "Node": "a", "Url": "http://127.0.0.1:1",
                                             "Etcd": ["http://127.0.0.1:1"]}})
        cls.addClassCleanup(server.remove)
        text = server.start().request("GET", "/Svc.Metrics").body.decode()
        cls.types = dict(re.findall(r"(?m)^# TYPE (\w+) (\w+)$", text))
        documented = re.findall(r"(?m)^\| `(svc_\w+)` \| (\w+) \| ([^|]*) \|", read("docs", "reference", "metrics.md"))
        cls.labels = {name: set(re.findall(r"`(\w+)`", labels)) for name, _, labels in documented}
        cls.alerts = re.findall(r"(?m)^ +- alert: (\w+)\n +expr: (.*)$", read("deploy", "prometheus-rules.yaml"))
        cls.board = json.loads(read("deploy", "grafana.json"))

    def base(self, name):
        """The metric that a series belongs to."""
        base = re.sub(r"_(bucket|sum|count)$", "", name)
        return base if self.types.get(base) == "histogram" else name

    def exist(self, expressions):
        for name in metrics_of(expressions) - OTHERS_METRICS:
            self.assertIn(self.base(name), self.types, name)
        for expression in expressions:
            for name, labels in labels_of(expression):
                allowed = self.labels[self.base(name)] | {"job", "instance", "le"}
                self.assertLessEqual(labels, allowed, expression)
            for function, name in re.findall(r"\b(rate|increase)\((svc_\w+)", expression):
                self.assertIn(self.types[self.base(name)], ("counter", "histogram"), f"{function} of {name}")

    def expressions(self):
        """What the board asks for, as Prometheus sees it."""
        panels = [target["expr"] for panel in self.board["panels"] for target in panel.get("targets", [])]
        return panels + [entry["expr"] for entry in self.board["annotations"]["list"]]

    def test_rules(self):
        names = [name for name, _ in self.alerts]
        self.assertIn(f"SUCCESS: {len(names)} rules", run("promtool", "check", "rules", "--lint=all", "--lint-fatal",
                                                         os.path.join(DEPLOY, "prometheus-rules.yaml")))
        self.assertGreater(len(names), 8)
        self.exist([expression for _, expression in self.alerts])

    def test_alerts(self):
        text = read("tests", "deploy", "alerts.yaml")
        run("promtool", "test", "rules", os.path.join(HERE, "alerts.yaml"))
        for name, _ in self.alerts:
            self.assertRegex(text, rf"alertname: {name}\n +eval_time: .*\n +exp_alerts:", f"{name} has no test")

    def test_every_alert_is_told(self):
        page = read("docs", "operations", "watch.md")
        told = re.findall(r"(?m)^\| `(Svcd\w+)` \|", page)
        self.assertEqual(sorted(told), sorted(name for name, _ in self.alerts))

    def test_the_board_asks_for_what_exists(self):
        expressions = self.expressions()
        self.assertGreater(len(expressions), 30)
        self.exist(expressions)
        for variable in self.board["templating"]["list"]:
            self.exist([variable["query"].partition("(")[2].partition(",")[0]] if "(" in variable["query"] else [])

    def test_the_board_is_understood(self):
        """Its expressions as rules, for promtool; its panels do not overlap."""
        known = {variable["name"] for variable in self.board["templating"]["list"]} | {"__rate_interval"}
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            rules = []
            for number, expression in enumerate(self.expressions()):
                self.assertLessEqual(set(re.findall(r"\$\{?(\w+)", expression)), known)
                plain = expression.replace("$__rate_interval", "5m").replace("$", "")
                rules.append({"record": f"board:{number}", "expr": plain})
            json.dump({"groups": [{"name": "board", "rules": rules}]}, file)
            file.flush()
            run("promtool", "check", "rules", file.name)
        panels = self.board["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken = set()
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(cells & taken, panel["title"])
            taken |= cells
            self.assertTrue(panel["type"] == "row" or panel["targets"], panel["title"])


def install_validator(directory):
    """With a reader of YAML."""
    run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore",
        "--target", directory, VALIDATOR)


class Kubernetes(unittest.TestCase):
    file = os.path.join(DEPLOY, "kubernetes.yaml")

    @classmethod
    def setUpClass(cls):
        cls.modules = harness.fetched("kubernetes", VALIDATOR, install_validator)
        sys.path.insert(0, cls.modules)
        import yaml  # pylint: disable=import-outside-toplevel
        cls.documents = list(yaml.safe_load_all(read("deploy", "kubernetes.yaml")))
        cls.set = next(one for one in cls.documents if one["kind"] == "StatefulSet")
        cls.pod = cls.set["spec"]["template"]["spec"]
        cls.container = cls.pod["containers"][0]

    def test_schema(self):
        validator = os.path.join(self.modules, "bin", "kubernetes-validate")
        said = subprocess.run([sys.executable, validator, "--strict", self.file], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=self.modules), timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertEqual((said.stdout + said.stderr).count("passed for resource"), len(self.documents))

    def test_its_parts_fit_together(self):
        labels = self.set["spec"]["template"]["metadata"]["labels"]
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        for service in (one for one in self.documents if one["kind"] == "Service"):
            self.assertLessEqual(service["spec"]["selector"].items(), labels.items())
            self.assertIn(service["spec"]["ports"][0]["targetPort"], ports)
        self.assertIn(self.set["spec"]["serviceName"],
                      [one["metadata"]["name"] for one in self.documents if one["kind"] == "Service"])
        self.assertEqual(self.set["spec"]["replicas"], 1)
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        volumes = {volume["name"] for volume in self.pod["volumes"]} | {
            claim["metadata"]["name"] for claim in self.set["spec"]["volumeClaimTemplates"]}
        self.assertEqual(set(mounts), volumes)
        image = read("deploy", "Containerfile")
        entry = json.loads(re.search(r"(?m)^ENTRYPOINT (.*)$", image).group(1))
        self.assertIn(mounts["data"], entry)
        self.assertEqual(os.path.dirname(entry[entry.index("--config") + 1]), mounts["configuration"])
        context = self.pod["securityContext"]
        self.assertEqual(re.search(r"(?m)^USER (.*)$", image).group(1),
                         f"{context['runAsUser']}:{context['runAsGroup']}")
        self.assertTrue(self.container["image"].startswith("svcd:" + re.search(
            r"version: '([^']+)'", read("meson.build")).group(1)))
        self.assertGreater(self.pod["terminationGracePeriodSeconds"], 20)

    def test_what_the_server_finds_there(self):
        """Files and directory as the group's, a user that is in it, the arguments, the probes' paths."""
        if os.getuid() != 0:
            self.skipTest("only root gives files away")
        context = self.pod["securityContext"]
        server = harness.Server({"RequireApiKey": True, "ApiKeys": [
            {"Name": "admin", "KeySha256": "0" * 64, "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}]})
        self.addCleanup(server.remove)
        server.config_mode = self.pod["volumes"][0]["secret"]["defaultMode"]
        os.mkdir(server.data)
        for name, mode in ((server.directory, 0o755), (server.data, 0o2775)):
            os.chown(name, 0, context["fsGroup"])
            os.chmod(name, mode)
        path = server.write_config(copy_terms=False)
        os.chown(path, 0, context["fsGroup"])
        server.write_config = lambda: path
        # The program where everybody may go.
        shutil.copy(harness.SVCD, server.directory + "/svcd")
        server.wrapper = ["setpriv", f"--reuid={context['runAsUser']}", f"--regid={context['runAsGroup']}",
                          f"--groups={context['fsGroup']}", "--bounding-set=-all", "--no-new-privs", "--",
                          "sh", "-c", 'shift; exec "$0" "$@"', server.directory + "/svcd"]
        server.start()
        for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
            target = self.container[probe]["httpGet"]["path"]
            # By the pod's address, as the kubelet asks.
            said = server.raw(f"GET {target} HTTP/1.1\r\nHost: 10.1.2.3:8080\r\nConnection: close\r\n\r\n".encode())
            self.assertTrue(said.startswith(b"HTTP/1.1 200 "), said)
        self.assertEqual(server.request("GET", "/Svc.Metrics").status, 401)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(server.process.wait(timeout=self.pod["terminationGracePeriodSeconds"]), 0)

    def test_its_arguments(self):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            path = os.path.join(directory, "svcd.json")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.write('{"RequireApiKey": true}')
            run(harness.SVCD, "--check", "--config", path, *self.container["args"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("parts", nargs="*", help="run tests whose name contains one of these")
    options = parser.parse_args()
    tests = unittest.TestSuite()
    for case in (Nginx, Haproxy, HaproxyCluster, Metrics, Kubernetes):
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            if not options.parts or any(part in test.id() for part in options.parts):
                tests.addTest(test)
    began = time.monotonic()
    result = unittest.TextTestRunner(sys.stdout, verbosity=2 if options.verbose else 1).run(tests)
    failed, skipped = len(result.failures) + len(result.errors), len(result.skipped)
    print(f"{time.monotonic() - began:.0f} s")
    print(f"{result.testsRun - failed - skipped} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not result.testsRun else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Those who read /openapi.json for a living: Spectral finds nothing in it, clients that are generated of it in
TypeScript and Python compile and do what docs/guide/clients.md says, Schemathesis finds no answer that it does not
describe.

    run.py [--long] [--paths REGEX] [NAME-PART...]

The tools come from npm and PyPI, by name and version (package.json, requirements.txt), and stay for the next
run, also of another checkout. Then it goes on in a network of its own, where there is nothing but loopback: what Schemathesis
invents as a webhook's destination reaches nobody. --long: more examples, and all operations in every phase; --paths: of
these paths alone. SVCD names the binary. The last line counts what ran."""
import argparse
import fcntl
import glob
import json
import os
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TOOLS = os.environ.get("SVCD_TOOLS", "")
NODE = os.path.join(TOOLS, "node_modules", ".bin")
PYTHON = os.path.join(TOOLS, "venv", "bin")
GUIDE = os.path.join(ROOT, "docs", "guide", "clients.md")
EXAMPLES = os.path.join(ROOT, "docs", "examples")
sys.path.insert(0, os.path.join(ROOT, "tests", "blackbox"))
import harness  # noqa: E402
import test_keys  # noqa: E402

IS_LONG = False
PATHS = None
SAID = ["declared Shop.Review", "inserted Ada, Grace, Mary", "a page: Ada, Grace", "a page: Mary",
        "subscribed: bad reviews", "raised, for webhooks: 0, 1", "attempt 1: 200", "replayed 1",
        "attempt 1: 200", "attempt 1: 200", "refused: UnknownProperty"]
READS = {"Resources": ["Svc.OpenApi", "Svc.AvailableResource"], "Methods": ["GET"]}
KEYS = {
    "admin": {"AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]},
    "tenant": {"AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}], "Tenant": "acme"},
    "reader": {"AllowAccess": [READS, {"Resources": ["Shop.Person"], "Methods": ["GET"]}]},
    "writer": {"AllowAccess": [READS, {"Resources": ["Lab.Everything"], "Methods": ["POST", "PATCH"]}]},
    "portal": {"AllowAccess": [READS, {"Resources": ["Svc.Admin.Webhook", "Shop.PersonCreated"], "Methods": ["*"]}],
               "Tenant": "acme"},
}


# Tools and the network.

def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def install(directory):
    shutil.copy(os.path.join(HERE, "package.json"), directory)
    for command in (["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"],
                    [sys.executable, "-m", "venv", "--without-pip", "venv"],
                    # What is run is compiled then, which is little of it.
                    [sys.executable, "-m", "pip", "--python", "venv/bin/python", "install", "-q", "--no-compile", "-r",
                     os.path.join(HERE, "requirements.txt")]):
        subprocess.run(command, cwd=directory, check=True)


def leave_network():
    """This program once more, where there is no network, and the tools are."""
    as_root = [] if os.geteuid() == 0 else ["--map-root-user"]
    os.environ["SVCD_TOOLS"] = harness.fetched("openapi", read(HERE, "package.json") + read(HERE, "requirements.txt"), install)
    os.execvp("unshare", ["unshare", "--net", *as_root, sys.executable, *sys.argv])


def be_alone():
    """Loopback is up, and there is nothing else: otherwise nothing is run."""
    with socket.socket() as s:
        request = struct.pack("16sH14x", b"lo", 0)
        flags, = struct.unpack_from("H", fcntl.ioctl(s, 0x8913, request), 16)  # SIOCGIFFLAGS
        fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))  # SIOCSIFFLAGS: up
    if sorted(name for _, name in socket.if_nameindex()) != ["lo"] or len(read("/proc/net/route").splitlines()) > 1:
        raise SystemExit("there is a network: nothing is run")


# The server.

class Case(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(prefix="svcd-openapi-")
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def serve(self, keys=None, only=None):
        """A server with the shop of the example, and all that makes it hard for generators; or some of that."""
        server = harness.Server()
        self.addCleanup(server.remove)
        more = json.loads(read(HERE, "declarations.json"))
        server.config["Resources"] += [one for one in more if only is None or re.match(only, one["Name"])]
        server.config["Fsync"] = "no"  # no disk is waited for
        server.config["Delivery"] = {"Egress": {"Allow": ["127.0.0.0/8"]}}
        if keys is not None:
            server.config["RequireApiKey"] = True
            server.config["ApiKeys"] = [dict(test_keys.key(name, name + "-key"), **KEYS[name]) for name in keys]
        return server.start()

    def document(self, server, key=None):
        headers = {"Authorization": f"apikey {key}-key"} if key else {}
        answer = server.request("GET", "/openapi.json", headers=headers)
        self.assertEqual(answer.status, 200)
        path = os.path.join(self.directory, f"{key}.json")
        with open(path, "wb") as file:
            file.write(answer.body)
        return path

    def run_tool(self, command, **more):
        # Few variables: for each request a client in Python looks at all of them for a proxy. What Hypothesis knows of
        # characters takes it seconds to find out, and is kept for its next run.
        environment = {name: os.environ[name] for name in ("HOME", "LANG", "LC_ALL", "TMPDIR") if name in os.environ}
        environment.update(more, NO_COLOR="1", PATH=f"{NODE}:{PYTHON}:{os.environ['PATH']}",
                           HYPOTHESIS_STORAGE_DIRECTORY=os.path.join(TOOLS, "hypothesis"))
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True,
                              timeout=3600, check=False)


class Documents(Case):
    def test_spectral(self):
        """Neither errors nor warnings, in the documents of all keys."""
        server = self.serve(KEYS)
        paths = [self.document(server, key) for key in ("admin", "writer", "portal")]
        result = self.run_tool(["spectral", "lint", "-q", "--ruleset", os.path.join(HERE, "spectral.yaml"), "-f", "json",
                                *paths])
        self.assertEqual((result.returncode, json.loads(result.stdout or "[]")), (0, []), result.stderr)

    def test_nothing_that_the_key_may_not_do(self):
        """It names nothing that is not listed for the key, and each operation is one that is not refused."""
        server = self.serve(KEYS)
        everything = {one["Name"] for one in self.listed(server, "admin")}
        for key in ("reader", "writer", "portal"):
            with self.subTest(key=key):
                path = self.document(server, key)
                hidden = everything - {one["Name"] for one in self.listed(server, key)} - {"Svc.Event"}
                text = read(path)
                self.assertEqual([name for name in hidden if re.search(rf'["/]{re.escape(name)}["/]', text)], [])
                self.try_operations(server, key, json.loads(text))

    def listed(self, server, key):
        return server.request("GET", "/", headers={"Authorization": f"apikey {key}-key"}).json()

    def try_operations(self, server, key, document):
        for path, item in document["paths"].items():
            for method in set(item) - {"parameters"}:
                target = path.replace("{Id}", "01a205ab-ae0c-7514-a42e-1c7bc266a3a7")
                body = "{}" if method in ("post", "patch", "put") else None
                answer = server.request(method.upper().removeprefix("X-"), target, body,
                                        {"Authorization": f"apikey {key}-key"})
                self.assertNotIn(answer.status, (401, 403, 405, 500), (key, method, target, answer))


class Clients(Case):
    """The commands of the guide, one after the other; what they install is there."""

    def commands(self, heading):
        part = re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", read(GUIDE), re.M | re.S).group(1)
        return re.findall(r"^    (.*)$", part, re.M)

    def check_versions(self, commands):
        pinned = json.loads(read(HERE, "package.json"))["dependencies"]
        pinned.update(line.split("==") for line in read(HERE, "requirements.txt").split())
        for name, version in re.findall(r" (@?[\w/-]+)(?:@|==)([\d.]+)", " ".join(commands)):
            self.assertEqual(pinned[name], version)

    def do(self, heading, program, installs):
        server = self.serve()
        receiver = harness.Receiver()
        self.addCleanup(receiver.close)
        shutil.copy(os.path.join(EXAMPLES, program), self.directory)
        os.symlink(os.path.join(TOOLS, "node_modules"), os.path.join(self.directory, "node_modules"))
        os.symlink(os.path.join(TOOLS, "venv"), os.path.join(self.directory, "venv"))
        commands = self.commands(heading)
        self.check_versions(commands)
        self.assertGreaterEqual(len(commands), 4)
        warnings = set()
        for command in commands:
            if re.search(installs, command):
                continue
            command = command.replace("localhost:8080", f"127.0.0.1:{server.port}")
            result = self.run_tool(["bash", "-c", command], SVC_URL=f"http://127.0.0.1:{server.port}",
                                   HOOK_URL=receiver.url())
            self.assertEqual(result.returncode, 0, (command, result.stdout[-3000:], result.stderr[-3000:]))
            warnings.update(re.findall(r"^(?:WARNING|ERROR|Unable).*$", result.stdout + result.stderr, re.M))
        self.assertEqual(result.stdout.splitlines(), SAID)
        sent = [receiver.take().json() for _ in range(2)]
        self.assertEqual(sent, [[{"Stars": 1, "Text": "Late"}]] * 2)
        self.assertTrue(receiver.nothing())
        return warnings

    def test_typescript(self):
        self.assertEqual(self.do("TypeScript", "client.mts", "^npm install"), set())

    def test_python(self):
        """All of what is generated can be imported, and nothing is left out but media types that it does not know."""
        self.assertEqual(self.do("Python", "client.py", "^python3 -m venv|pip install"),
                         {"WARNING parsing GET /Lab.Logo within lab_logo.",
                          "WARNING parsing POST /Svc.Event/Resource={Event} within svc_event."})
        names = glob.glob(os.path.join(self.directory, "shop_client", "api", "*", "*.py"))
        self.assertGreater(len(names), 150)
        modules = {os.path.relpath(name, self.directory)[:-3].replace("/", ".") for name in names}
        result = self.run_tool([os.path.join(PYTHON, "python"), "-W", "error", "-c",
                                "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)",
                                *sorted(modules)])
        self.assertEqual(result.returncode, 0, result.stderr)


class Fuzzed(Case):
    def fuzz(self, key, *options):
        server = self.serve(KEYS, r"Lab\.(Everything|Inserted|Updated|Deleted|Dynamic|Shipped|Photo|Logo|ReadOnly|Write)")
        config = read(HERE, "schemathesis.toml")
        if IS_LONG:
            config = config[:config.index("# ---- short runs")]
        if PATHS is not None:
            options = [*options, "--include-path-regex", PATHS]
        path = os.path.join(self.directory, "schemathesis.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config)
        result = self.run_tool(["schemathesis", "--config-file", path, "run",
                                f"http://127.0.0.1:{server.port}/openapi.json",
                                "-H", f"Authorization: apikey {key}-key", *options], PYTHONPATH=HERE)
        self.assertEqual(result.returncode, 0, result.stdout[-20000:] + result.stderr[-2000:])
        self.assertRegex(result.stdout, r"(?m)^  Tested: [1-9]")
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.stop(), 0)

    def test_all_rights(self):
        self.fuzz("admin", "-n", "50" if IS_LONG else "1")

    def test_a_tenant(self):
        options = ["-n", "20"] if IS_LONG else ["-n", "1", "--phases", "examples,fuzzing,stateful"]
        self.fuzz("tenant", *options)


def tests_of(suite, parts):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item, parts)
        elif not parts or any(part in item.id() for part in parts):
            yield item


def main():
    global IS_LONG, PATHS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--paths", metavar="REGEX")
    parser.add_argument("parts", nargs="*")
    options = parser.parse_args()
    if not TOOLS:
        leave_network()
    be_alone()
    IS_LONG, PATHS = options.long, options.paths
    failed = passed = 0
    for test in tests_of(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]), options.parts):
        result, began = unittest.TestResult(), time.monotonic()
        test.run(result)
        problems = [text for _, text in result.failures + result.errors]
        failed, passed = failed + bool(problems), passed + (not problems)
        print(f"{'FAILED' if problems else 'ok'} {test.id()} {time.monotonic() - began:.0f} s", *problems, sep="\n",
              flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())

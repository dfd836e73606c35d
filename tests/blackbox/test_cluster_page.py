"""What docs/operations/cluster.md tells people to do, done: three machines from nothing by its ten commands, a rolling
upgrade, the loss of etcd, a backup. A machine is a directory and addresses of loopback; apt, systemctl and ssh are
stood in for, all else is the real thing."""
import itertools
import json
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import textwrap
import unittest

import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BINARIES = os.path.dirname(os.path.abspath(harness.SVCD))
NAMES = "abc"
NETS = itertools.count(os.getpid() % 200 * 100)  # of 127.0.0.0/8; one a test
STANDINS = {
    "apt": "exit 0",
    "systemctl": 'echo "$*" >>asked-of-systemd',
    "ssh": 'cd "../$1" && shift && exec "$@"',
}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def section(title):
    page = read("docs", "operations", "cluster.md")
    return re.search(rf"^##+ {title}\n(.*?)(?=^##|\Z)", page, re.M | re.S).group(1)


def steps():
    """The ten commands, by their numbers."""
    items = re.split(r"^(\d+)\. +", section("Three machines from nothing"), flags=re.M)[1:]
    blocks = {int(number): re.search(r"^ *```(?:sh|json)\n(.*?)^ *```$", "    " + text, re.M | re.S).group(1)
              for number, text in zip(items[::2], items[1::2])}
    return {number: textwrap.dedent(block) for number, block in blocks.items()}


def wait_until(condition, what):
    """Each look is a program that runs."""
    return harness.wait_until(condition, what, pause_s=0.5)


class Machine:
    def __init__(self, root, net, number, standins):
        self.name, self.address = NAMES[number], f"{net}.{number + 1}"
        self.net, self.own, self.path = net, f"{net}.{number + 101}", os.path.join(root, NAMES[number])
        self.processes = {}
        for folder in ("etc/default", "etc/svcd", "var/lib/svcd", "var/lib/etcd"):
            os.makedirs(os.path.join(self.path, folder))
        os.chmod(os.path.join(self.path, "var/lib/svcd"), 0o700)
        self.env = {**os.environ, "PATH": f"{standins}:{BINARIES}:{os.environ['PATH']}", "HOME": self.path, "N": self.name,
                    "IP": self.address, "ETCDCTL_ENDPOINTS": f"http://{self.own}:2379", "ETCDCTL_API": "3"}

    def file(self, name):
        return os.path.join(self.path, name)

    def translate(self, text):
        """Addresses and paths of the page are this machine's. Paths are relative, so that a copied configuration has
        none of another machine."""
        text = text.replace("127.0.0.1:2379", f"{self.own}:2379").replace("10.0.0.", self.net + ".")
        text = re.sub(r"(?<![\w.*])/(etc|var/lib)/", r"\1/", text)
        assert not re.search(r"(?<![\w./])/(etc|var)\b", text), text
        return text

    def run(self, text, status=0):
        """What it printed; what it asked of systemd is done."""
        result = subprocess.run(["bash", "-ec", self.translate(text)], cwd=self.path, env=self.env, capture_output=True,
                                text=True, timeout=harness.DEADLINE_S, check=False)
        assert status is None or result.returncode == status, (text, result.returncode, result.stdout, result.stderr,
                                                               self.log())
        self.obey()
        return result

    def obey(self):
        if not os.path.exists(self.file("asked-of-systemd")):
            return
        with open(self.file("asked-of-systemd"), encoding="utf-8") as file:
            asked = [line.split() for line in file]
        os.remove(self.file("asked-of-systemd"))
        for verb, *units in asked:
            for unit in units:
                if verb == "disable":
                    self.stop(unit)
                elif verb == "enable" and unit in ("etcd", "svcd"):
                    self.start(unit)

    def start(self, unit):
        env, command = self.env, ["svcd", "--config", "etc/svcd/svcd.json"]
        if unit == "etcd":  # as Debian's unit does
            lines = read(self.file("etc/default/etcd")).splitlines()
            env = {**env, "ETCD_DATA_DIR": "var/lib/etcd/default", **dict(line.split("=", 1) for line in lines)}
            command = ["etcd"]
        with open(self.file(unit + ".log"), "ab") as log:
            self.processes[unit] = subprocess.Popen(command, cwd=self.path, env=env, stdout=log, stderr=log)

    def stop(self, unit):
        process = self.processes.pop(unit, None)
        if process is not None:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=harness.DEADLINE_S)

    def kill(self):
        for process in self.processes.values():
            process.kill()
            process.wait()

    def log(self):
        return {unit: read(self.file(unit + ".log")).splitlines()[-8:] for unit in self.processes}


class Page(unittest.TestCase):
    """Each test begins with the ten commands."""

    def setUp(self):
        root = tempfile.mkdtemp(prefix="svcd-machines-")
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        net, standins = next(NETS), os.path.join(root, "bin")
        os.mkdir(standins)
        for name, text in STANDINS.items():
            path = os.path.join(standins, name)
            with open(path, "w", encoding="utf-8") as file:
                file.write(f"#!/bin/sh\n{text}\n")
            os.chmod(path, stat.S_IRWXU)
        net = f"127.{net // 200 % 200 + 10}.{net % 200 + 10}"
        self.machines = [Machine(root, net, number, standins) for number in range(len(NAMES))]
        self.first = self.machines[0]
        for machine in self.machines:
            self.addCleanup(machine.kill)
        self.steps = steps()
        self.assertEqual(list(self.steps), list(range(1, 11)))
        self.from_nothing()

    def install(self, machine):
        """What the package does at its first installation."""
        machine.run("head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \\n' >etc/svcd/admin.key")
        digest = machine.run("svcd hash-key <etc/svcd/admin.key").stdout.strip()
        text = machine.translate(read("deploy", "debian", "svcd.json").replace("@ADMIN_KEY_SHA256@", digest))
        self.write(machine, text)

    def write(self, machine, text):
        with open(machine.file("etc/svcd/svcd.json"), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(machine.file("etc/svcd/svcd.json"), 0o640)

    def change_configuration(self, machine, old, new):
        text = read(machine.file("etc/svcd/svcd.json"))
        self.assertIn(old, text)
        self.write(machine, text.replace(old, new))

    def on_each(self, number):
        for machine in self.machines:
            machine.run(self.steps[number])

    def begin_etcd(self):
        self.on_each(4)
        for machine in self.machines:
            wait_until(lambda machine=machine: machine.run(self.steps[5], None).returncode == 0, "etcd is well")

    def from_nothing(self):
        for machine in self.machines:
            machine.run(self.steps[1])
            self.install(machine)
        self.on_each(2)
        self.on_each(3)
        self.begin_etcd()
        self.change_configuration(self.first, '  "Listen": ["127.0.0.1:8080"],\n', self.first.translate(self.steps[6]))
        for machine in self.machines[1:]:
            machine.run(self.steps[7])
            shutil.copy(self.first.file("etc/svcd/admin.key"), machine.file("etc/svcd/admin.key"))
        self.on_each(8)
        self.all_take_part()

    def svc(self, machine, command, status=0):
        return machine.run(self.steps[9].replace("svc cluster status", command), status)

    def roles(self, machine):
        found = self.svc(machine, "svc cluster status --json", None)
        return {node["Name"]: node["Role"] for node in json.loads(found.stdout)["Nodes"]} if found.stdout else {}

    def all_take_part(self):
        for machine in self.machines:
            wait_until(lambda machine=machine: sorted(self.roles(machine).values()) ==
                               ["Follower", "Follower", "Leader"], f"machine {machine.name} sees three nodes")

    def change_and_see(self):
        """The tenth command; what it makes goes again."""
        change, look = self.steps[10].splitlines()
        self.svc(self.first, change)
        wait_until(lambda: "EventResource" in self.svc(self.first, look).stdout, "another node has it")
        self.svc(self.first, "svc delete /Svc.Admin.Resource/Name=Shop.OrderPlaced")

    def test_ten_commands(self):
        shown = self.svc(self.first, "svc cluster status").stdout
        self.assertRegex(shown, rf"\* +a +(Leader|Follower) .* http://{re.escape(self.first.address)}:8080\n")
        self.change_and_see()

    def test_upgrade(self):
        """One node after the other, the leader last."""
        roles = self.roles(self.first)
        for machine in sorted(self.machines, key=lambda machine: roles[machine.name] == "Leader"):
            if self.roles(machine)[machine.name] == "Leader":
                told = re.search(r"`(svc cluster step-down [^`]*)`", section("Upgrade")).group(1)
                # Refused while the leader still knows the others as they were when they started.
                shown = wait_until(lambda machine=machine, told=told: self.svc(machine, told, None).stdout, "another node may lead")
                self.assertRegex(shown, r"node \w leads, after")
            machine.stop("svcd")
            machine.start("svcd")
            wait_until(lambda machine=machine: self.roles(machine).get(machine.name) == "Follower", "it follows")
            self.all_take_part()
            self.change_and_see()

    def lose_etcd(self):
        for machine in self.machines:
            machine.stop("etcd")
            machine.run("rm -r /var/lib/etcd/default")
        self.begin_etcd()

    def test_etcd_is_lost(self):
        self.lose_etcd()
        told = re.search(r"^ +(svc --url .*)", section("etcd is lost"), re.M).group(1)
        health = "svc get /Svc.Health"
        for machine in self.machines:
            wait_until(lambda machine=machine: "empty or older" in self.svc(machine, health, None).stderr, "it says so")
        self.svc(self.first, told + " --yes")
        self.all_take_part()
        self.change_and_see()

    def test_from_a_backup(self):
        change, look = self.steps[10].splitlines()
        self.svc(self.first, change)
        self.svc(self.machines[1], "curl -sSf -H \"Authorization: apikey $SVC_KEY\" $SVC_URL/Svc.Admin.Backup -o backup")
        for machine in self.machines:
            machine.stop("svcd")
            machine.run("rm -r /var/lib/svcd/*")
        self.lose_etcd()
        told = re.search(r"`(svc-journal restore [^`]*)`", section("From a backup")).group(1)
        shutil.copy(self.machines[1].file("backup"), self.first.file("FILE"))
        self.first.run("rmdir /var/lib/svcd")
        self.first.run(told)
        self.change_configuration(self.first, '"Cluster": {', '"Cluster": {"Adopt": true, ')
        self.first.start("svcd")
        wait_until(lambda: self.roles(self.first) == {"a": "Leader"}, "it leads")
        for machine in self.machines[1:]:
            machine.start("svcd")
        self.all_take_part()
        self.assertIn("EventResource", self.svc(self.first, look).stdout)


if __name__ == "__main__":
    unittest.main()

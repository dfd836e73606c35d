#!/usr/bin/env python3
"""Whole nodes over a real etcd, under what may happen to them.

Three members of etcd, three servers, a proxy between each node and each member, and one before each node for the
other nodes. Writers with ledgers and a receiver with one work on through any node while nodes and members are killed,
stopped, cut off and delayed, answers are lost, disks and quorums are gone and etcd is full. After each fault everybody
is let catch up, and then:

  - what was acknowledged is there, what was refused is not, nothing is there by half or twice;
  - every event that was acknowledged was delivered, with its own webhook-id, and none that no node has;
  - all nodes have the same order: equal digests at the same serial, and equal lists;
  - reads of the node that leads, and changes through any node, have an order that explains them (linear.py).

Last, reads of a node that was cut off are taken for the leader's: the checker must find that.

    nodes.py --short                              each kind of fault, in about a minute
    nodes.py --faults 1000 --seed 7               the long one; fifty faults a cluster
    nodes.py --plan kill:leader,full --seed 7     these

SVCD names the server, NODES_KEEP=1 keeps what there was. `checkers.py` tests the checkers, and runs first."""
import argparse
import asyncio
import base64
import itertools
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))

import checkers  # noqa: E402
import linear  # noqa: E402
from clients import LOST, Connection, Crew, NotSent, meaning, name_of  # noqa: E402
from ledger import check_arrivals, check_events, check_items, lacking  # noqa: E402
from linear import Operation  # noqa: E402
from machines import CHANGES, MEMBERS, NETWORK, WAIT_S, Failed, Member, Proxy, encode, free_ports, wait_until  # noqa: E402

SVCD = os.path.abspath(os.environ.get("SVCD", os.path.join(ROOT, "build/dev/svcd")))
NODES = ["a", "b", "c"]
COMMIT_S = 3
FAULTS_OF_A_CLUSTER = 50  # then another, lest the checks take longer than the writes
ASK_AGAIN_S = 3
SAID = 20                 # problems of a fault that are printed
WRITES = 60               # at most, before a fault, lest it always meets the same moment
QUOTA = 24 << 20          # of etcd's
LUMP = 512 << 10          # what fills it
MINUTE_S = 60


def configuration():
    path = os.path.join(ROOT, "docs", "examples", "example.json")
    with open(path, encoding="utf-8") as file:
        return json.loads("".join(line for line in file if not line.lstrip().startswith("//")))


class Node:
    """One server, over a data directory that outlives it. `peers`: a proxy before it, for the other nodes; `proxies`:
    its own ways to each member. Without members it is a server alone."""

    def __init__(self, name, directory, members, port, lease):
        self.name, self.port = name, port
        self.directory = os.path.join(directory, name)
        os.mkdir(self.directory)
        self.proxies = [Proxy(member.client) for member in members]
        self.peers = Proxy(port, CHANGES)
        self.log = os.path.join(directory, name + ".log")
        self.process = None
        self.is_stopped = False
        self.write_configuration(lease)

    def data(self):
        return os.path.join(self.directory, "data")

    def write_configuration(self, lease):
        config = configuration()
        config.update({"Listen": [f"127.0.0.1:{self.port}"], "DataDirectory": self.data(),
                       "Retention": {"Events": 1000000, "WebhookLogEntries": 1000}})
        if self.proxies:
            config["Cluster"] = {
                "Name": "test", "Node": self.name, "Url": f"http://127.0.0.1:{self.peers.port}",
                "Etcd": [f"http://127.0.0.1:{proxy.port}" for proxy in self.proxies],
                "LeaseSeconds": lease, "CommitSeconds": COMMIT_S, "TailBytes": 1048576}
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(config, file)
        os.chmod(path, 0o600)
        shutil.copy(os.path.join(ROOT, "docs", "examples", "terms.txt"), self.directory)

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([SVCD, "--config", os.path.join(self.directory, "config.json")],
                                            stdout=log, stderr=log)

    def lives(self):
        return self.process is not None and self.process.poll() is None

    def must_live(self):
        if not self.lives():
            raise Failed(f"node {self.name} has ended with status {self.process.returncode}; its log says {self.said()}")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.is_stopped = False

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.is_stopped = True

    def go_on(self):
        if self.lives():
            self.process.send_signal(signal.SIGCONT)
        self.is_stopped = False

    def end(self):
        """SIGTERM."""
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"node {self.name} does not end within {WAIT_S} s") from error
        if status != 0:
            raise Failed(f"node {self.name} ended with status {status}; its log says {self.said()}")

    def lose_disk(self):
        shutil.rmtree(self.data())

    def get(self, target, headers=None, seconds=2):
        """(status, text); 0 where there is no answer."""
        return self.ask(urllib.request.Request(f"http://127.0.0.1:{self.port}{target}", headers=headers or {}), seconds)

    def tell(self, name, members):
        """Asks the node of that name for something, through this one."""
        return self.ask(urllib.request.Request(f"http://127.0.0.1:{self.port}/Svc.Admin.Node/Name={name}",
                                               json.dumps(members).encode(), {"Content-Type": "application/json"},
                                               method="PATCH"), WAIT_S)

    def sees(self):
        """The nodes that live, by name."""
        status, text = self.get("/Svc.Admin.Node")
        return {row["Name"]: row for row in json.loads(text)} if status == 200 else {}

    def trouble(self):
        status, text = self.get("/Svc.Health")
        return json.loads(text)["Cluster"]["Trouble"] if status else ""

    def ask(self, request, seconds):
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except (OSError, ValueError):
            return 0, ""

    def leads(self):
        return self.lives() and not self.is_stopped and self.get("/readyz?leader", seconds=0.5)[0] == 200

    def lines(self, begin=0):
        with open(self.log, "rb") as log:
            log.seek(begin)
            return log.read().decode("utf-8", "replace").splitlines()

    def said(self):
        return " | ".join(self.lines()[-5:])

    def digest(self):
        """((digest, objects), serial), as it logs them."""
        begin = os.path.getsize(self.log)
        self.process.send_signal(signal.SIGUSR1)
        again = time.monotonic() + ASK_AGAIN_S
        found = []

        def look():
            nonlocal again
            if time.monotonic() > again:  # it started anew meanwhile
                self.must_live()
                self.process.send_signal(signal.SIGUSR1)
                again += ASK_AGAIN_S
            found[:] = re.findall(r"digest (\w+) of (\d+) objects, serial (\d+)", "\n".join(self.lines(begin)))
            self.must_live()
            return found
        wait_until(f"node {self.name} logs a digest", look)
        return found[0][:2], int(found[0][2])


class Trial:
    """One cluster, with those who work on it."""

    def __init__(self, options, seed, is_alone=False):
        self.directory = tempfile.mkdtemp(prefix="svcd-nodes-")
        self.seed = seed
        self.rng = random.Random(f"{seed} faults")
        clients, peers, ports = free_ports(MEMBERS), free_ports(MEMBERS), free_ports(len(NODES))
        self.members = [] if is_alone else [
            Member(i, self.directory, clients[i], peers, None, ["--quota-backend-bytes", str(QUOTA)])
            for i in range(MEMBERS)]
        self.lease_s = options.lease
        self.nodes = [Node(name, self.directory, self.members, port, options.lease)
                      for name, port in zip(["a"] if is_alone else NODES, ports)]
        self.crew = Crew([node.port for node in self.nodes], options.writers, seed)
        self.probes = itertools.count(1)
        self.told = set()
        self.gaps = []  # (fault, its longest time without an acknowledged change)
        self.passed = self.failed = self.begun = 0
        self.began = time.monotonic()

    # Who there is.

    def start(self):
        for member in self.members:
            member.start()
        wait_until("etcd", lambda: all(member.is_well() for member in self.members))
        for node in self.nodes:
            node.start()
        self.leader()
        wait_until("all nodes are ready", self.are_ready)
        NETWORK.run(self.crew.prepare(), 2 * WAIT_S)
        NETWORK.run(self.crew.begin())
        self.goes_on()

    def stop(self):
        NETWORK.run(self.crew.end())
        for one in [*self.nodes, *self.members]:
            if one.process is not None and one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
                one.kill()
        for node in self.nodes:
            for proxy in [node.peers, *node.proxies]:
                proxy.close()

    def are_ready(self):
        for node in self.nodes:
            node.must_live()
        return all(node.get("/readyz")[0] == 200 for node in self.nodes)

    def leader(self):
        found = []

        def look():
            found[:] = [node for node in self.nodes if node.leads()]
            return found
        wait_until("a node leads", look)
        return found[0]

    def follower(self):
        leader = self.leader()
        others = [node for node in self.nodes if node is not leader and node.lives()]
        return self.rng.choice(others or [leader])

    def another_leads(self, than):
        wait_until("another leads", lambda: any(node.leads() for node in self.nodes if node is not than))

    def leading_member(self):
        found = []

        def look():
            found[:] = [member for member in self.members if member.leads()]
            return found
        wait_until("a member leads", look)
        return found[0]

    def which(self, target):
        """The node or member that a fault is for."""
        return {"leader": self.leader, "follower": self.follower, "etcd-leader": self.leading_member,
                "etcd": lambda: self.rng.choice(self.members)}[target]()

    def goes_on(self, more=30):
        """Changes are acknowledged, whoever leads."""
        target = self.crew.acknowledged + more
        wait_until(f"changes are acknowledged ({'; '.join(self.crew.problems[:3])})",
                   lambda: self.crew.acknowledged >= target)

    def is_refused(self, why):
        """Each node that lives refuses changes at once, saying that nothing was done; it answers reads."""
        nodes = [node for node in self.nodes if node.lives() and not node.is_stopped]
        found = []

        async def insert_everywhere():
            return await asyncio.gather(*map(self.insert, nodes))

        def look():
            found[:] = NETWORK.run(insert_everywhere())
            return set(found) == {"refused"}
        try:
            wait_until(f"nodes refuse changes while {why}", look)
        except Failed as error:
            raise Failed(f"{error}: they were {found}") from error
        for node in nodes:
            wait_until(f"node {node.name} answers a read while {why}",
                       lambda node=node: node.get("/Svc.AvailableResource/_/limit=1")[0] == 200)

    def health_names(self, what, which=all):
        wait_until(f"health names: {what}", lambda: which(
            what in node.get("/Svc.Health")[1] for node in self.nodes if node.lives()))

    async def insert(self, node):
        """What it is answered; noted in the ledger."""
        connection, item = Connection(node.port), f"probe-{next(self.probes)}"
        found = "open"
        try:
            found = meaning(await connection.ask("POST", "/Shop.Message", {"Item": item, "Value": 1}))
        except NotSent:
            found = "refused"
        except LOST:
            pass
        finally:
            connection.close()
        ledger = self.crew.ledger
        {"done": ledger.acknowledged, "open": ledger.leave_open}.get(found, ledger.refuse)(item, (1,))
        return found

    # What may happen. Each ends with all of it undone, but for what dies: that is started again.

    def lasts(self):
        """For less than a lease, or a little more."""
        time.sleep(self.rng.uniform(0, 1.3) * self.lease_s)

    def kill(self, target):
        one = self.which(target)
        one.kill()
        self.goes_on_without(one)

    def goes_on_without(self, one):
        """And it comes back. A server that is alone has to, first."""
        if len(self.nodes) > 1:
            self.goes_on(self.rng.choice([0, 30, 300]))
        one.start()

    def term(self, target):
        one = self.which(target)
        if isinstance(one, Member):
            one.signal(signal.SIGTERM)
            one.process.wait(WAIT_S)
        else:
            one.end()
        self.goes_on_without(one)

    def pause(self, target):
        """Stopped for longer than a lease; then it believes what it believed."""
        one = self.which(target)
        one.signal(signal.SIGSTOP) if isinstance(one, Member) else one.stop()
        try:
            if target == "leader":
                self.another_leads(one)
            else:
                self.lasts()
            self.goes_on()
        finally:
            one.signal(signal.SIGCONT) if isinstance(one, Member) else one.go_on()
        if target == "leader":
            wait_until(f"node {one.name} knows that it does not lead", lambda: not one.leads())

    def blink(self, target):
        """Stopped for about as long as a lease lasts, or not quite."""
        one = self.which(target)
        one.stop()
        self.lasts()
        one.go_on()
        self.goes_on()

    def stutter(self, target):
        """Stopped again and again, for moments: of a machine that is overloaded, or of its disk."""
        one = self.which(target)
        process = one.process
        for _ in range(self.rng.randrange(4, 12)):
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.02, 0.8))
            process.send_signal(signal.SIGCONT)
            time.sleep(self.rng.uniform(0.01, 0.3))
        self.goes_on()

    def disk(self, target):
        """Dead, and what it had is gone: it takes another's copy, or the log."""
        one = self.which(target)
        one.kill()
        one.lose_disk()
        self.goes_on()
        one.start()
        self.goes_on()

    def away(self, target):
        """Dead until the log does not have any more what it needs."""
        one = self.which(target)
        serial = one.digest()[1]
        one.kill()
        self.crew.fills = True
        try:
            wait_until("the log begins behind it", lambda: self.log_begins() > serial + 1)
        finally:
            self.crew.fills = False
            one.start()
        self.goes_on()

    def log_begins(self):
        """The first serial of the oldest batch in etcd."""
        found = self.ask_etcd("/v3/kv/range", {"key": encode(b"/svcd/test/log/"), "limit": 1, "keys_only": True,
                                               "range_end": encode(b"/svcd/test/log0")})
        return int(base64.b64decode(found["kvs"][0]["key"]).decode().rpartition("/")[2], 16)

    def two(self, target):
        """Only one node is left. Of two machines the members die as well: then changes are refused, until one is
        back."""
        nodes = [self.leader(), self.follower()]
        members = self.rng.sample(self.members, 2) if target == "machines" else []
        for one in [*nodes, *members]:
            one.kill()
        if members:
            self.is_refused("two machines are gone")
            nodes.pop(0).start()
            members.pop(0).start()
        self.goes_on()
        for one in [*nodes, *members]:
            one.start()

    def machine(self, _target):
        """The node and the member that lead die at the same moment."""
        dead = [self.leader(), self.leading_member()]
        for one in dead:
            one.kill()
        self.goes_on()
        for one in dead:
            one.start()

    def all(self, _target):
        for one in self.nodes:
            one.kill()
        for one in self.nodes:
            one.start()
        self.goes_on()

    def quorum(self, target):
        """Of etcd, two are gone for longer than changes may take: they are refused, reads go on."""
        self.lose_members(2, target, self.rng.uniform(0, 0.5) * COMMIT_S)

    def etcd(self, target):
        """All of it is."""
        seconds = MINUTE_S if target == "minute" else self.rng.uniform(0, 0.5) * COMMIT_S
        self.lose_members(MEMBERS, target, seconds)

    def lose_members(self, count, how, seconds):
        gone = self.rng.sample(self.members, count)
        began = time.monotonic()
        for one in gone:
            one.signal(signal.SIGSTOP) if how == "stop" else one.kill()
        try:
            self.is_refused("etcd has no quorum")
            self.health_names("etcd is not reached")
            time.sleep(max(0, began + seconds - time.monotonic()))
            self.is_refused("etcd has no quorum")
        finally:
            for one in gone:
                one.signal(signal.SIGCONT) if how == "stop" else one.start()
        self.goes_on()

    def cut(self, target):
        """No answer of etcd comes, or no request gets there; nothing ends."""
        whose, how = target.split("-")
        node = self.which(whose)
        for proxy in node.proxies:
            setattr(proxy, {"answers": "frozen", "requests": "deaf"}[how], True)
        try:
            if whose == "leader":
                self.another_leads(node)
                wait_until(f"node {node.name} knows that it does not lead", lambda: not node.leads())
            else:
                self.lasts()
            self.goes_on()
        finally:
            for proxy in node.proxies:
                proxy.heal()

    def off(self, target):
        """Its connections to etcd end, and are refused."""
        node = self.which(target)
        for proxy in node.proxies:
            proxy.cut()
        try:
            if target == "leader":
                self.another_leads(node)
            else:
                self.lasts()
            self.goes_on()
        finally:
            for proxy in node.proxies:
                proxy.heal()

    def only(self, target):
        """One member is left that it can reach; which one, changes."""
        node = self.which(target)
        for _ in range(3):
            for proxy in self.rng.sample(node.proxies, MEMBERS - 1):
                how = self.rng.choice(["frozen", "deaf", "cut"])
                proxy.cut() if how == "cut" else setattr(proxy, how, True)
            self.lasts()
            for proxy in node.proxies:
                proxy.heal()
        self.goes_on()

    def lose(self, target):
        """Answers of the leader's next transactions, each of which was carried out; then it dies, or goes on."""
        node = self.leader()
        before = sum(proxy.lost for proxy in node.proxies)
        for proxy in node.proxies:
            proxy.lose = 1 if target == "kill" else 3
        wait_until("answers are lost", lambda: sum(proxy.lost for proxy in node.proxies) > before)
        if target == "kill":
            node.kill()
        for proxy in node.proxies:
            proxy.heal()
        self.goes_on()
        if target == "kill":
            node.start()

    def slow(self, target):
        """What passes between nodes and etcd takes longer: the leader's, or all of it."""
        nodes = self.nodes if target == "all" else [self.leader()]
        delay_s = self.rng.uniform(0.02, 0.3)
        for node in nodes:
            for proxy in node.proxies:
                proxy.delay_s = delay_s
        try:
            self.lasts()
            self.goes_on()
        finally:
            for node in nodes:
                for proxy in node.proxies:
                    proxy.heal()

    def between(self, target):
        """What nodes pass on to the leader: the answer is lost, or late, or nobody can be reached."""
        peers = self.leader().peers
        before = peers.lost
        if target == "lose":
            peers.lose = 20
            wait_until("answers between nodes are lost", lambda: peers.lost >= before + 5)
        elif target == "freeze":
            peers.frozen = True
        elif target == "slow":
            peers.delay_s = self.rng.uniform(0.05, 1)
        else:
            peers.cut()
        try:
            self.lasts()
            self.goes_on(100)  # clients of the leader's do
        finally:
            peers.heal()

    BESIDE = ["kill:leader", "term:leader", "pause:leader", "blink:leader", "disk:leader", "lose:kill", "lose:answers",
              "cut:leader-answers", "cut:leader-requests", "off:leader", "between:lose", "between:freeze"]

    def beside(self, target):
        """Something happens while not all is well: a follower or a member is dead, a follower has lost its disk and
        takes a copy, or what passes is slow."""
        fault = self.rng.choice(self.BESIDE)
        print(f"  {fault} beside:", flush=True)
        proxies = [proxy for node in self.nodes for proxy in [node.peers, *node.proxies]]
        dead = {"slow": lambda: None, "etcd": lambda: self.rng.choice(self.members)}.get(target, self.follower)()
        if dead:
            dead.kill()
        else:
            for proxy in proxies:
                proxy.delay_s = self.rng.uniform(0, 0.1)
        if target == "joining":
            dead.lose_disk()
            dead.start()
            dead = None
        try:
            self.fault(fault)()
        finally:
            if dead:
                dead.start()
            for proxy in proxies:
                proxy.heal()
        self.goes_on()

    def full(self, target):
        """The alarm of a full store, which takes no puts and grants no leases: raised by hand, or because the quota
        is used up. Room is made as an operator does it. Nobody is restarted."""
        if target == "quota":
            self.fill()
        else:
            self.ask_etcd("/v3/maintenance/alarm", {"action": "ACTIVATE", "alarm": "NOSPACE",
                                                    "memberID": self.member_id(self.leading_member())})
        try:
            self.is_refused("etcd is full")
            self.health_names("etcd is full", any)  # who has something to write
        finally:
            if target == "quota":
                self.make_room()
            wait_until("the alarm is gone", self.disarm)
        self.goes_on()

    OTHERS = {"key": encode(b"/other/"), "range_end": encode(b"/other0")}

    def fill(self):
        """By what somebody else keeps there."""
        value = encode(self.rng.randbytes(LUMP))
        for number in itertools.count():
            if self.alarms():
                return
            try:
                self.rng.choice(self.members).ask("/v3/kv/put", {"key": encode(b"/other/%d" % number), "value": value})
            except (OSError, ValueError):  # it is full, or another is asked
                pass
            if number * LUMP > 4 * QUOTA:
                raise Failed("etcd takes more than its quota")

    def make_room(self):
        revision = self.ask_etcd("/v3/kv/deleterange", self.OTHERS)["header"]["revision"]
        self.ask_etcd("/v3/kv/compaction", {"revision": revision, "physical": True})
        for member in self.members:
            self.ask_etcd("/v3/maintenance/defragment", {}, member)

    def alarms(self):
        return self.ask_etcd("/v3/maintenance/alarm", {"action": "GET"}).get("alarms", [])

    def disarm(self):
        for alarm in self.alarms():
            self.ask_etcd("/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
        return not self.alarms()

    def member_id(self, member):
        return self.ask_etcd("/v3/maintenance/status", {}, member)["header"]["member_id"]

    def see_each_other(self):
        """Each node lists all, as they are."""
        leader = self.leader()

        def seen(node):
            rows = node.sees()
            roles = {name: row["Role"] for name, row in rows.items()}
            return (roles == {one.name: "Leader" if one is leader else "Follower" for one in self.nodes}
                    and rows[node.name]["Lag"] < 1000
                    and all(rows[one.name]["Url"].endswith(f":{one.peers.port}") for one in self.nodes))
        for node in self.nodes:
            wait_until(f"node {node.name} sees {leader.name} lead, and the others follow", lambda node=node: seen(node))

    def step(self, _target):
        """The leader is told to let another lead, through any node. Told again, it has nothing to do."""
        wait_until("all nodes are ready", self.are_ready)
        self.see_each_other()
        leader = self.leader()
        status, text = self.rng.choice(self.nodes).tell(leader.name, {"Role": "Follower"})
        if status not in (202, 503):  # the answer to one that was passed on may be lost
            raise Failed(f"node {leader.name} was told to step down, and answered {status} {text}")
        self.another_leads(leader)
        self.goes_on()
        wait_until("all nodes are ready", self.are_ready)
        self.see_each_other()
        status, text = self.rng.choice(self.nodes).tell(leader.name, {"Role": "Follower"})
        if status != 200 and leader is not self.leader():
            raise Failed(f"node {leader.name} follows, was told to step down, and answered {status} {text}")

    def lose_all_members(self):
        for member in self.members:
            member.kill()
            shutil.rmtree(os.path.join(self.directory, member.name))

    def forget_cluster(self):
        self.ask_etcd("/v3/kv/deleterange", {"key": encode(b"/svcd/test/"), "range_end": encode(b"/svcd/test0")})

    def revision(self):
        return int(self.ask_etcd("/v3/maintenance/status", {})["header"]["revision"])

    def take_snapshot(self):
        path = os.path.join(self.directory, "snapshot")
        subprocess.run(["etcdctl", f"--endpoints={self.leading_member().url}", "snapshot", "save", path],
                       check=True, capture_output=True, timeout=WAIT_S)
        return path

    def put_back(self, path, *token):
        """Members that have what the snapshot has, and a revision that nobody has seen before."""
        before = self.revision()
        proxies = [proxy for node in self.nodes for proxy in node.proxies]
        for proxy in proxies:
            proxy.cut()
        self.lose_all_members()
        for member in self.members:
            member.restore(path, *token)
            member.start()
        os.remove(path)
        if not token:
            self.forget_cluster()
        while self.revision() <= before:
            self.ask_etcd("/v3/kv/put", {"key": encode(b"/other/x"), "value": encode(b"x")})
        for proxy in proxies:
            proxy.heal()

    def lost(self, target):
        """etcd has lost all that it had, its disks or what the cluster has there; or it is another one, further than
        the one before, which has the same cluster id, or the log up to a moment. People tell one node to go on."""
        words = ["the log is empty", "etcd knows no cluster"]
        if target == "snapshot":
            path, words = self.take_snapshot(), ["it is a copy"]
            self.goes_on(300)
        self.settle()
        if target == "disks":
            self.lose_all_members()
            for member in self.members:
                member.start()
        elif target == "keys":
            self.forget_cluster()
        elif target == "higher":
            self.put_back(self.take_snapshot())
        else:
            self.put_back(path, "--initial-cluster-token", f"{next(self.probes)}")
        for node in self.nodes:
            wait_until(f"node {node.name} says that the log is lost",
                       lambda node=node: any(word in node.trouble() for word in words))
        wait_until("the lease of who led in the snapshot is over", lambda: "kvs" not in self.ask_etcd(
            "/v3/kv/range", {"key": encode(b"/svcd/test/leader")}))
        node = self.rng.choice(self.nodes)
        applied = node.sees()[node.name]["Applied"]
        if node.tell(node.name, {"RestoreFrom": applied + 1})[0] != 409:
            raise Failed(f"node {node.name} restores another serial than its own")
        status, text = node.tell(node.name, {"RestoreFrom": applied})
        if status != 202:
            raise Failed(f"node {node.name} was told to restore the log, and answered {status} {text}")
        self.leader()
        NETWORK.run(self.crew.go_on())
        self.goes_on()

    def ask_etcd(self, path, body, member=None):
        """Its answer. Asked again until there is one, if need be of another."""
        found, why = [], []

        def ask():
            try:
                found.append((member or self.rng.choice(self.members)).ask(path, body, 10))
            except urllib.error.HTTPError as error:
                why[:] = [error.read().decode("utf-8", "replace")]
                if "has been compacted" in why[0]:  # by the try before
                    found.append({})
            except (OSError, ValueError) as error:
                why[:] = [str(error)]
            return found
        try:
            wait_until(path, ask)
        except Failed as error:
            raise Failed(f"{error}: {why}") from error
        return found[0]

    FAULTS = ["kill:leader", "lose:answers", "term:leader", "pause:leader", "cut:leader-answers", "kill:etcd-leader",
              "between:lose", "disk:leader", "quorum:stop", "lose:kill", "full", "two", "step:down", "lost:disks",
              "kill:follower", "term:follower", "pause:follower", "blink:leader", "blink:follower", "disk:follower",
              "all", "quorum:kill", "kill:etcd", "term:etcd", "pause:etcd", "pause:etcd-leader", "cut:leader-requests",
              "cut:follower-answers", "cut:follower-requests", "off:leader", "off:follower", "slow:leader", "slow:all",
              "between:freeze", "between:slow", "between:cut", "full:quota", "etcd:kill", "etcd:stop", "two:machines",
              "machine", "beside:follower", "beside:etcd", "beside:slow", "beside:joining", "away:follower",
              "stutter:leader", "stutter:etcd-leader", "only:leader", "only:follower", "lost:keys", "lost:higher",
              "lost:snapshot"]
    LONG = ["etcd:minute"]  # by name alone
    SHORT = FAULTS[:14]
    ALONE = ["kill:leader", "term:leader", "blink:leader"]

    # What must hold.

    def settle(self):
        """Everybody is well, nobody writes, what is to be delivered is. Returns where all nodes are, and what was the
        longest time without an acknowledged change."""
        wait_until("all nodes are ready", self.are_ready)
        self.goes_on()
        longest = self.crew.longest
        NETWORK.run(self.crew.pause(), 2 * WAIT_S)
        missing = []

        def arrived():
            missing[:] = sorted(lacking(self.crew.ledger, self.crew.receiver.arrivals))
            return not missing
        try:
            wait_until("every event arrives", arrived)
        except Failed as error:
            raise Failed(f"{error}: {len(missing)} have not, among them {missing[:3]}") from error
        for state in ("Pending", "InFlight"):
            wait_until(f"no delivery is {state}", lambda state=state: json.loads(
                self.leader().get(f"/Svc.Admin.Delivery/State={state}/limit=1")[1] or "[]") == [])
        return self.same_order(), longest

    def same_order(self):
        found = []

        def look():
            found[:] = [node.digest() for node in self.nodes]
            return len(set(found)) == 1
        try:
            wait_until("all nodes have the same digest", look)
        except Failed as error:
            told = ", ".join(f"{node.name}: {digest[0][:12]} of {digest[1]}, serial {serial}"
                             for node, (digest, serial) in zip(self.nodes, found))
            raise Failed(f"{error}: {told}") from error
        return found[0][1]

    def rows(self, target, serial, read):
        """The same on every node, or it is a problem."""
        headers = {"Svc-min-serial": str(serial)} if self.members else {}
        texts = [node.get(target, headers, WAIT_S) for node in self.nodes]
        for node, text in zip(self.nodes[1:], texts[1:]):
            if text != texts[0]:
                self.crew.problem(f"{target}: node {node.name} answers {text[0]}, {len(text[1])} bytes, node "
                                  f"{self.nodes[0].name} {texts[0][0]}, {len(texts[0][1])} bytes")
        if texts[0][0] not in (200, 204):
            raise Failed(f"{target} is answered {texts[0]}")
        return [read(row) for row in json.loads(texts[0][1] or "[]")]

    def check(self):
        serial, longest = self.settle()
        items = self.rows("/Shop.Message", serial, lambda row: (row["Item"], row["Value"]))
        events = self.rows("/Svc.Event/_/select=Id,Payload", serial, lambda row: (number_of(row), row["Id"]))
        ledger, problems = self.crew.ledger, self.crew.problems
        problems += check_items(ledger, [row for row in items if not row[0].startswith("register")])
        problems += check_events(ledger, events)
        problems += check_arrivals(ledger, self.crew.receiver.arrivals, events)
        return longest

    def planted(self):
        """Reads of a node that was cut off, taken for the leader's."""
        if len(self.nodes) == 1:
            return
        node, name, now = self.follower(), name_of(0), time.monotonic
        for proxy in node.proxies:
            proxy.frozen = True
        try:
            changed = len(self.crew.histories[name])
            wait_until("the register is changed twice", lambda: [
                one.kind for one in self.crew.histories[name][changed:]].count("swap") >= 2)
            begin = now()
            answer = node.get(self.crew.target_of(0))
            row = json.loads(answer[1])[0]
            stale = Operation("read", begin, now(), f"{row['Value']} {row['By']}", who=f"node {node.name}")
        finally:
            for proxy in node.proxies:
                proxy.heal()
        NETWORK.run(self.crew.pause(), 2 * WAIT_S)
        history = sorted([*self.crew.histories[name], stale], key=lambda one: one.begin)
        found = list(linear.check({name: history}, self.crew.first))
        NETWORK.run(self.crew.go_on())
        if not found:
            raise Failed(f"a stale read was not found: {stale}")
        print(f"  a stale read is found: {found[0][:160]}", flush=True)

    # Running it.

    def note(self, what, problems):
        self.passed += not problems
        self.failed += bool(problems)
        for problem in problems[:SAID]:
            print(f"FAILED seed {self.seed}, {what}: {problem}", flush=True)

    def do(self, name, what):
        """What is done, with its checks. False when it makes no sense to go on."""
        self.crew.problems.clear()
        failure = []
        try:
            self.goes_on(self.rng.randrange(WRITES))
            began = time.monotonic()
            self.crew.watch_gaps()
            what()
            done = time.monotonic()
            gap = self.check()
            self.gaps.append((name, gap))
            print(f"  {done - began:5.1f} s, {gap:5.2f} s without a change, settled in "
                  f"{time.monotonic() - done:4.1f} s  {name}", flush=True)
        except (Failed, OSError, ValueError, subprocess.SubprocessError, asyncio.TimeoutError) as error:
            failure = [f"{type(error).__name__}: {error}"]
        NETWORK.run(self.crew.go_on())
        found = [text for text in [*failure, *self.crew.problems] if text not in self.told]
        self.told.update(found)  # what is wrong with an item stays so
        self.note(name, found)
        return not failure

    def fault(self, text):
        verb, _, target = text.partition(":")
        return lambda: getattr(self, verb)(target)

    def run(self, plan):
        print(f"seed {self.seed}: --seed {self.seed} --plan {','.join(plan)}", flush=True)
        goes_on = False
        try:
            self.start()
            for self.begun, text in enumerate(plan, 1):
                goes_on = self.do(text, self.fault(text))
                if not goes_on:
                    break
            goes_on = goes_on and self.do("planted", self.planted)
            NETWORK.run(self.crew.pause(), 2 * WAIT_S)
            self.note("registers", list(linear.check(self.crew.histories, self.crew.first)))
            self.write_histories()
        except (Failed, OSError, subprocess.SubprocessError, AssertionError, asyncio.TimeoutError) as error:
            self.note("the run", [f"{type(error).__name__}: {error}"])
        finally:
            self.stop()
        self.tell()
        if not goes_on or self.failed or os.environ.get("NODES_KEEP"):
            print(f"  what there was is in {self.directory}")
        else:
            shutil.rmtree(self.directory)

    def write_histories(self):
        for name, history in self.crew.histories.items():
            with open(os.path.join(self.directory, name), "w", encoding="utf-8") as file:
                file.writelines(f"{one}\n" for one in sorted(history, key=lambda one: one.begin))

    def tell(self):
        counts, arrivals = self.crew.ledger.counts, self.crew.receiver.arrivals
        kinds = [one.kind for history in self.crew.histories.values() for one in history]
        print(f"seed {self.seed}: {', '.join(f'{count} {word}' for word, count in counts.items())}; "
              f"{len(arrivals.number_of)} events delivered, {arrivals.times} times; registers: "
              f"{', '.join(f'{kinds.count(kind)} {kind}' for kind in ('read', 'swap', 'keep', 'maybe'))}; "
              f"{time.monotonic() - self.began:.0f} s", flush=True)


def number_of(row):
    payload = row["Payload"]
    return (payload[0] if isinstance(payload, list) else payload)["No"]


class Tally:
    """Of all clusters of a run."""

    def __init__(self):
        self.began = time.monotonic()
        self.passed = self.failed = self.clusters = self.delivered = self.times = 0
        self.gaps = {}    # fault -> seconds without an acknowledged change, of each
        self.counts = {}

    def add(self, trial):
        self.clusters += 1
        self.passed += trial.passed
        self.failed += trial.failed
        for name, gap in trial.gaps:
            if name != "planted":
                self.gaps.setdefault(name, []).append(gap)
        for word, count in trial.crew.ledger.counts.items():
            self.counts[word] = self.counts.get(word, 0) + count
        self.delivered += len(trial.crew.receiver.arrivals.number_of)
        self.times += trial.crew.receiver.arrivals.times

    def tell(self, with_kinds):
        faults = sum(map(len, self.gaps.values()))
        if with_kinds:
            print("fault, how often, seconds without an acknowledged change: half of them at most, all at most")
            for name, gaps in sorted(self.gaps.items()):
                print(f"  {name:22} {len(gaps):4} {statistics.median(gaps):6.2f} {max(gaps):6.2f}")
        told = ", ".join(f"{count} {word}" for word, count in self.counts.items())
        print(f"{faults} faults of {len(self.gaps)} kinds in {self.clusters} clusters, "
              f"{(time.monotonic() - self.began) / 60:.0f} minutes; changes: {told}; {self.delivered} events delivered, "
              f"{self.times} times; {self.failed} failed", flush=True)


def plan_of(options, rng):
    """Faults, one after the other. Of those that are picked at random, each kind comes as often as every other."""
    if options.plan:
        return options.plan.split(",")
    if options.short or options.alone:
        return Trial.ALONE if options.alone else Trial.SHORT
    rounds = itertools.chain.from_iterable(iter(lambda: rng.sample(Trial.FAULTS, len(Trial.FAULTS)), None))
    return list(itertools.islice(rounds, options.faults))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--plan", help="faults, with commas between: " + ", ".join(
        [*Trial.FAULTS, *Trial.LONG]))
    parser.add_argument("--alone", action="store_true", help="one server without etcd: what can be done to it")
    parser.add_argument("--writers", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--lease", type=int, default=2, help="LeaseSeconds")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # it ends its processes, and counts
    passed, failed = checkers.run()
    tally, left = Tally(), plan_of(options, random.Random(f"{options.seed} plan"))
    for number in itertools.count():
        if not left:
            break
        trial = Trial(options, options.seed + number, options.alone)
        try:
            trial.run(left[:FAULTS_OF_A_CLUSTER])
        except KeyboardInterrupt:
            left = []
        left = left[max(1, trial.begun):]
        tally.add(trial)
        tally.tell(not left)
    print(f"{passed + tally.passed} passed, {failed + tally.failed} failed")
    return 1 if failed or tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())

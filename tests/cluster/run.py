#!/usr/bin/env python3
"""The log of a cluster over a real etcd of three members, under what may happen to it.

Nodes (tests/cluster/node.c) ask to lead and append, each through a proxy of its own before every
member. Meanwhile nodes and members are killed, stopped for longer than a lease and let go on, and
answers are lost after the request got through. At the end everybody is let catch up, and:

  - every node has the same batches in the same order, without a hole and without one that is there twice;
  - what a node was told is done is there; what it was told is declined is not.

Last it is done with certificates on both sides and passwords.

`--short` does each thing once, in less than a minute; `--rounds N` goes on by chance (`--seed`).
CLUSTER_NODE names the program (build/test/tests/cluster/cluster_node)."""
import argparse
import base64
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from machines import MEMBERS, WAIT_S, Failed, Member, Proxy, Secrets, encode, free_ports, wait_until

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
NODES = ["a", "b", "c"]
LEASE_S = 2


class Node:
    def __init__(self, name, directory, proxies, options):
        self.name = name
        self.directory = directory
        self.proxies = proxies
        self.options = options
        self.process = None
        self.seen = 0  # lines of what went before

    def start(self):
        self.seen = len(self.lines("events"))
        scheme = "https" if "user=svcd" in self.options else "http"
        urls = ",".join(f"{scheme}://127.0.0.1:{proxy.port}" for proxy in self.proxies)
        with open(self.path("log"), "ab") as log:
            self.process = subprocess.Popen([program(), self.directory, self.name, urls, *self.options],
                                            stdout=log, stderr=log)

    def path(self, suffix):
        return os.path.join(self.directory, f"{self.name}.{suffix}")

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self):
        self.signal(signal.SIGTERM)
        self.process.wait(WAIT_S)

    def lines(self, suffix):
        try:
            with open(self.path(suffix), encoding="utf-8") as file:
                return file.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def role(self):
        """Of the process that there is now."""
        roles = [line.split()[1] for line in self.lines("events")[self.seen:] if line.startswith("role ")]
        return roles[-1] if roles else ""

    def count(self, word):
        return sum(line.startswith(word + " ") for line in self.lines("events"))

    def end_of_journal(self):
        lines = self.lines("journal")
        return sum(map(int, lines[-1].split()[:2])) if lines else 1


def program():
    return os.environ.get("CLUSTER_NODE", os.path.join(ROOT, "build/test/tests/cluster/cluster_node"))


class Cluster:
    def __init__(self, directory, options, is_guarded):
        self.directory = directory
        self.secrets = Secrets(directory) if is_guarded else None
        clients, peers = free_ports(MEMBERS), free_ports(MEMBERS)
        self.members = [Member(i, directory, clients[i], peers, self.secrets) for i in range(MEMBERS)]
        self.options = [f"lease_s={LEASE_S}", "attempt_ms=1000", "silence_ms=1500", *options,
                        *(self.secrets.of_node() if is_guarded else [])]
        self.nodes = [self.node(name) for name in NODES]

    def node(self, name, *options):
        return Node(name, self.directory, [Proxy(member.client) for member in self.members],
                    [*self.options, *options])

    def start(self):
        for member in self.members:
            member.start()
        wait_until("etcd", lambda: all(member.is_well() for member in self.members))
        if self.secrets:
            self.secrets.enable(self.members[0])
        for node in self.nodes:
            node.start()
        self.goes_on()

    def stop(self):
        for one in [*self.nodes, *self.members]:
            if one.process is not None and one.process.poll() is None:
                one.process.send_signal(signal.SIGCONT)
                one.kill()

    def done(self):
        return sum(node.count("done") for node in self.nodes)

    def goes_on(self, more=20):
        """Batches are confirmed, whoever leads."""
        target = self.done() + more
        wait_until("batches are confirmed", lambda: self.done() >= target)

    def leader(self):
        found = []

        def look():
            found[:] = [node for node in self.nodes if node.role() == "Leader" and node.process.poll() is None]
            return found
        wait_until("a node leads", look)
        return found[0]

    def follower(self):
        leader = self.leader()
        return next(node for node in self.nodes if node is not leader)

    def all_live(self):
        for node in self.nodes:
            if node.process.poll() is not None:
                raise Failed(f"node {node.name} has ended ({node.process.returncode}): {node.path('log')}")

    # What may happen.

    def kill_leader(self):
        node = self.leader()
        node.kill()
        self.goes_on()
        node.start()

    def kill_follower(self):
        node = self.follower()
        node.kill()
        self.goes_on()
        node.start()

    def stop_leader(self):
        """For longer than its lease, so that others go on; then it believes what it believed."""
        node = self.leader()
        node.signal(signal.SIGSTOP)
        try:
            wait_until("another leads", lambda: any(
                other.role() == "Leader" for other in self.nodes if other is not node))
            self.goes_on()
        finally:
            node.signal(signal.SIGCONT)
        wait_until("it follows", lambda: node.role() == "Follower" or node.role() == "Leader")

    def lose_answers(self):
        """Of the leader's next transactions the answers: each was carried out."""
        proxies = self.leader().proxies
        before = sum(proxy.lost for proxy in proxies)
        for proxy in proxies:
            proxy.lose = 2
        wait_until("answers are lost", lambda: sum(proxy.lost for proxy in proxies) > before)
        for proxy in proxies:
            proxy.lose = 0
        self.goes_on()

    def lose_answers_and_kill(self):
        node = self.leader()
        before = sum(proxy.lost for proxy in node.proxies)
        for proxy in node.proxies:
            proxy.lose = 1
        wait_until("answers are lost", lambda: sum(proxy.lost for proxy in node.proxies) > before)
        node.kill()
        for proxy in node.proxies:
            proxy.lose = 0
        self.goes_on()
        node.start()

    def freeze_follower(self):
        """Its connections say nothing any more, and do not end."""
        node = self.follower()
        frozen = node.proxies[:2]
        for proxy in frozen:
            proxy.frozen = True
        self.goes_on()
        place = self.leader().end_of_journal()
        try:
            wait_until("it goes on by another connection", lambda: node.end_of_journal() >= place)
        finally:
            for proxy in frozen:
                proxy.frozen = False

    def cut_leader_off(self):
        node = self.leader()
        for proxy in node.proxies:
            proxy.frozen = True
        try:
            wait_until("another leads", lambda: any(
                other.role() == "Leader" for other in self.nodes if other is not node))
            wait_until("it knows that it does not lead", lambda: node.role() != "Leader")
        finally:
            for proxy in node.proxies:
                proxy.frozen = False
        self.goes_on()

    def kill_member(self):
        member = random.choice(self.members)
        member.kill()
        self.goes_on()
        member.start()
        wait_until("the member is back", member.is_well)

    def leading_member(self):
        found = []

        def look():
            found[:] = [member for member in self.members if member.leads()]
            return found
        wait_until("a member leads", look)
        return found[0]

    def kill_leading_member(self):
        member = self.leading_member()
        member.kill()
        self.goes_on()
        member.start()
        wait_until("the member is back", member.is_well)

    def stop_leading_member(self):
        member = self.leading_member()
        member.process.send_signal(signal.SIGSTOP)
        try:
            self.goes_on()
        finally:
            member.process.send_signal(signal.SIGCONT)
        wait_until("the member is back", member.is_well)

    def lose_quorum(self):
        self.leader()
        stopped = random.sample(self.members, 2)
        for member in stopped:
            member.process.send_signal(signal.SIGSTOP)
        try:
            wait_until("nobody leads", lambda: all(node.role() != "Leader" for node in self.nodes))
        finally:
            for member in stopped:
                member.process.send_signal(signal.SIGCONT)
        self.goes_on()

    def fill(self):
        """The alarm of a full store, which takes no puts and grants no leases."""
        self.leader()
        told = sum(node.count("trouble etcd is full:") for node in self.nodes)
        alarm = {"action": "ACTIVATE", "alarm": "NOSPACE",
                 "memberID": self.leading_member().ask("/v3/maintenance/status", {})["header"]["member_id"]}
        self.ask_until_done("/v3/maintenance/alarm", alarm)
        try:
            wait_until("a node says so", lambda: sum(
                node.count("trouble etcd is full:") for node in self.nodes) > told)
        finally:
            self.ask_until_done("/v3/maintenance/alarm", {**alarm, "action": "DEACTIVATE"})
        self.goes_on()

    def ask_until_done(self, path, body):
        def ask():
            try:
                random.choice(self.members).ask(path, body)
            except (OSError, ValueError):  # another is asked
                return False
            return True
        wait_until(path, ask)

    def step_down(self):
        node = self.leader()
        node.signal(signal.SIGUSR1)
        wait_until("another leads", lambda: any(
            other.role() == "Leader" for other in self.nodes if other is not node))
        self.goes_on()

    def leave_and_come_back(self):
        node = self.leader()
        node.end()
        self.goes_on()
        node.start()

    def begin_empty(self):
        """A node that has lost everything takes another's copy, or the log if that is still whole."""
        node = self.follower()
        node.kill()
        for suffix in ["journal", "id"]:
            os.unlink(node.path(suffix))
        node.start()
        wait_until("it is where the others are", lambda: node.end_of_journal() > 1)
        self.goes_on()

    ACTIONS = [kill_leader, lose_answers, step_down, stop_leader, kill_member, lose_answers_and_kill, kill_follower,
               freeze_follower, kill_leading_member, begin_empty, cut_leader_off, stop_leading_member,
               leave_and_come_back, lose_quorum, fill]

    # Inside TLS no answer can be told from another.
    GUARDED = [kill_leader, kill_leading_member, freeze_follower]

    def settle(self):
        """The leader is told to end, and the others follow to the end of what there is."""
        wait_until("all take part", lambda: all(
            node.role() in ("Follower", "Leader") for node in self.nodes))
        self.goes_on(1)
        for node in self.nodes:
            node.signal(signal.SIGTERM)
        for node in self.nodes:
            node.process.wait(WAIT_S)
        witness = self.node("witness", "witness=1")
        self.nodes.append(witness)
        for node in self.nodes[:-1]:
            node.options = [*node.options, "witness=1"]  # nobody appends any more
        for node in self.nodes:
            node.start()
        end = self.end_of_log()
        wait_until(f"all are at {end}", lambda: all(node.end_of_journal() == end for node in self.nodes))

    def end_of_log(self):
        found = []

        def ask():
            try:
                found[:] = [self.last_batch(random.choice(self.members))]
            except (OSError, ValueError, KeyError):  # it is asked again
                return False
            return True
        wait_until("etcd tells the end of the log", ask)
        return int.from_bytes(found[0][16:24], "little") + int.from_bytes(found[0][24:28], "little")

    def last_batch(self, member):
        if self.secrets:
            self.secrets.sign_in(member)
        last = member.ask("/v3/kv/range", {
            "key": encode(b"/svcd/test/log/"), "range_end": encode(b"/svcd/test/log0"), "limit": "1",
            "sort_order": "DESCEND", "sort_target": "KEY"})
        return base64.b64decode(last["kvs"][0]["value"])


def check(cluster):
    """What is wrong, a line each."""
    first = cluster.nodes[0].lines("journal")
    place, names = 1, {}
    for line in first:
        at, count, name = line.split()
        if int(at) != place:
            yield f"a hole before serial {at}, which should be {place}"
        if name in names:
            yield f"{name} is there twice, at {names[name]} and {at}"
        names[name] = int(at)
        place = int(at) + int(count)
    for node in cluster.nodes[1:]:
        if node.lines("journal") != first:
            yield f"node {node.name} has another order than {cluster.nodes[0].name}"
    for node in cluster.nodes:
        for line in node.lines("events"):
            word, name = line.split()[:2]
            if word == "done" and name not in names:
                yield f"{name} was done and is not there"
            if word == "declined" and name in names:
                yield f"{name} was declined and is there"


def count_words(cluster):
    words = ["try", "done", "declined", "uncertain", "late", "joined"]
    return ", ".join(f"{sum(node.count(word) for node in cluster.nodes)} {word}" for word in words)


def run_one(name, options, actions, keep, is_guarded=False):
    directory = tempfile.mkdtemp(prefix="svcd-cluster-")
    cluster = Cluster(directory, options, is_guarded)
    passed, failures, began = 0, [], time.monotonic()
    try:
        cluster.start()
        for action in actions:
            at = time.monotonic()
            action(cluster)
            cluster.all_live()
            print(f"  {time.monotonic() - at:5.1f} s  {action.__name__}", flush=True)
            passed += 1
        cluster.settle()
        cluster.all_live()
        failures = list(check(cluster))
    except (Failed, OSError, subprocess.SubprocessError) as error:
        failures = [f"{type(error).__name__}: {error}"]
    finally:
        words = count_words(cluster)
        cluster.stop()
    print(f"{name}: {len(cluster.nodes[0].lines('journal'))} batches, {words}, "
          f"{time.monotonic() - began:.0f} s", flush=True)
    for failure in failures[:20]:
        print(f"FAILED {name}: {failure}")
    if failures or keep:
        print(f"  what there was is in {directory}")
    else:
        shutil.rmtree(directory)
    return passed + (not failures), len(failures)


SETTINGS = {
    "small batches": ["batch_bytes=3000"],
    "in parts, and trimmed": ["batch_bytes=20000", "value_bytes=4096", "tail_bytes=1000000", "trim_ms=500",
                              "window_bytes=65536"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="leave the directory")
    options = parser.parse_args()
    random.seed(options.seed)
    passed = failed = 0
    for i, (name, settings) in enumerate(SETTINGS.items()):
        actions = Cluster.ACTIONS[i::len(SETTINGS)] if options.short else random.choices(
            Cluster.ACTIONS, k=options.rounds)
        good, bad = run_one(name, settings, actions, options.keep)
        passed += good
        failed += bad
    good, bad = run_one("certificates and passwords", ["batch_bytes=3000", "pause_ms=20"], Cluster.GUARDED,
                        options.keep, True)
    print(f"{passed + good} passed, {failed + bad} failed")
    failed += bad
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

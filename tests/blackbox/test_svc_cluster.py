"""svc cluster: what people and scripts are shown of a cluster, handing over, and beginning its log anew."""
import http.server
import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

import cluster
import harness
import svc

ROW = re.compile(r"(\*?) +(\S+) +(\S+) +(\d+) +(\d+) +(\d+[smhd] ago) +(\S+) +(\S+)")


def until_a_lease_is_over(test):
    """Marks a test that waits for that, in a cluster of its own."""
    test.lease_s = cluster.SHORT_LEASE_S
    return harness.apart(test)


class InACluster(svc.CommandCase):
    """The tests of a class share a cluster of these nodes; those that are apart have one of their own."""

    names = "abc"
    options = {}
    shared = None

    def __init__(self, name="runTest"):
        super().__init__(name)
        self.shares_server = not getattr(getattr(self, name, None), "is_apart", False)

    def setUp(self):
        super().setUp()
        self.cluster = self.shared if self.shares_server else None
        if not self.cluster:
            lease_s = getattr(getattr(self, self._testMethodName), "lease_s", cluster.LEASE_S)
            at_end = self.addClassCleanup if self.shares_server else self.addCleanup
            self.cluster = cluster.Cluster(at_end, self.names, LeaseSeconds=lease_s, **self.options)
        if self.shares_server:
            type(self).shared = self.cluster
        self.cluster.wait_until_known()
        self.nodes = self.cluster.nodes

    @classmethod
    def tearDownClass(cls):
        cls.shared = None
        cls.doClassCleanups()
        for _, error, _ in cls.tearDown_exceptions:
            raise error


class ClusterCase(InACluster):
    """Three nodes. Commands ask the one that `asked` names."""

    def setUp(self):
        super().setUp()
        self.asked = "a"

    def url(self):
        return self.nodes[self.asked].url()

    def ask(self, node):
        self.asked = node.name
        return node

    def rows(self, text):
        """(mark, name, role, url) of a table's rows, and what stands before the table."""
        head, _, table = text.partition("\n\n")
        lines = table.splitlines()
        self.assertEqual(lines[0].split(), ["Node", "Role", "Applied", "Lag", "Since", "Version", "Url"])
        found = [ROW.fullmatch(line) for line in lines[1:]]
        self.assertTrue(all(found), text)
        return head, [(row[1], row[2], row[3], row[8]) for row in found]

    def leader_in(self, node):
        """As this node knows it."""
        found = node.request("GET", "/Svc.Admin.Node/Role=Leader")
        return found.json()[0]["Name"] if found.status == 200 else None

    def person(self, node, name):
        return node.request("POST", "/Shop.Person", {"Name": name}).status == 201

    def people(self, node):
        found = node.request("GET", "/Shop.Person")
        return [person["Name"] for person in found.json()] if found.status == 200 else []


class Status(ClusterCase):
    def test_the_same_from_each_node(self):
        for self.asked in self.nodes:
            head, rows = self.rows(self.svc("cluster", "status")[0])
            self.assertEqual(head, "Cluster  prod\nLeader   a\nHealth   ok")
            self.assertEqual(rows, [("*" if name == self.asked else "", name, "Leader" if name == "a" else "Follower",
                                     node.url()) for name, node in self.nodes.items()])

    def test_the_reference_shows_such_a_table(self):
        page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "reference", "svc.md")
        with open(page, encoding="utf-8") as file:
            shown = re.search(r"^    Cluster  prod\n(?:    .*\n|\n)*", file.read(), re.M).group(0)
        head, rows = self.rows(re.sub("^    ", "", shown, flags=re.M).rstrip("\n"))
        self.assertEqual([line.split()[0] for line in head.splitlines()], ["Cluster", "Leader", "Health"])
        self.assertEqual([row[2] for row in rows], ["Leader", "Follower", "Joining"])

    def test_for_scripts(self):
        said = self.svc_json("cluster", "status")
        self.assertEqual(said["Health"]["Cluster"]["Node"], "a")
        self.assertEqual(said["Nodes"][0]["Role"], "Leader")
        self.assertEqual(set(said["Nodes"][0]), {"Name", "Url", "Role", "Applied", "Lag", "Since", "Version"})

    def test_on_a_terminal(self):
        shown = self.on_terminal("cluster", "status")
        self.assertIn("Leader\x1b[0m   \x1b[32ma\x1b[0m", shown)
        self.assertIn("\x1b[32mLeader\x1b[0m", shown)
        plain = self.on_terminal("cluster", "status", columns=80, NO_COLOR="1")
        self.assertEqual(len(self.rows(plain)[1]), 3)  # each whole, and on one line
        self.assertNotIn("…", plain)

    @until_a_lease_is_over
    def test_nobody_leads(self):
        self.ask(self.cluster.follower())
        self.cluster.end_etcd()
        harness.wait_until(lambda: self.leader_in(self.nodes[self.asked]) is None, "the leader's lease is over")
        out, errors = self.svc("cluster", "status", status=svc.REFUSED)
        self.assertRegex(out, r"Leader +none\nHealth +etcd is not reached: \S")
        self.assertEqual(errors, "svc: no node leads\n")
        self.assertIn("\x1b[31mnone\x1b[0m", self.on_terminal("cluster", "status", status=svc.REFUSED))
        said = json.loads(self.svc("cluster", "status", "--json", status=svc.REFUSED)[0])
        self.assertEqual(said["Health"]["Status"], "failing")

    @until_a_lease_is_over
    def test_a_node_that_is_gone(self):
        self.nodes["c"].kill()
        harness.wait_until(lambda: len(self.svc_json("cluster", "status")["Nodes"]) == 2, "its lease is over", pause_s=0.5)
        self.assertEqual([row[1] for row in self.rows(self.svc("cluster", "status")[0])[1]], ["a", "b"])


class StepDown(ClusterCase):
    def hand_over(self, through, *words):
        leader = self.cluster.leader()
        self.ask(leader if through == "leader" else self.cluster.follower())
        out, _ = self.svc("cluster", "step-down", *words, "--wait")
        self.assertNotEqual(self.cluster.leader(), leader)
        return leader, out

    def test_asked_of_the_leader(self):
        leader, out = self.hand_over("leader")
        name = re.fullmatch(r"node (\w) leads, after \d+\.\d\d s\n", out).group(1)
        self.assertNotEqual(name, leader.name)
        self.assertTrue(self.person(self.nodes[name], "Ada"))
        harness.wait_until(leader.is_ready, "who led follows")
        harness.wait_until(lambda: self.people(leader) == ["Ada"], "and has what is new")

    def test_asked_of_a_follower(self):
        _, out = self.hand_over("follower")
        self.assertRegex(out, r"^node \w leads, after ")

    def test_by_name_it_is_done_once(self):
        named = self.cluster.leader().name
        leader, _ = self.hand_over("follower", named)
        self.assertEqual(leader.name, named)
        now = self.cluster.leader()
        harness.wait_until(lambda: self.cluster.roles(now) == ["Follower", "Follower", "Leader"], "it knows of all")
        self.svc("cluster", "step-down", named)
        self.assertEqual(self.cluster.leader(), now)

    def test_without_waiting(self):
        leader = self.cluster.leader()
        out, _ = self.svc("cluster", "step-down")
        self.assertEqual(len(out.splitlines()), 1)
        harness.wait_until(lambda: self.cluster.leader() is not leader, "another leads")

    def test_for_scripts(self):
        leader = self.cluster.leader()
        said = self.svc_json("cluster", "step-down", "--wait")
        self.assertEqual([node["Role"] for node in said], ["Leader"])
        self.assertNotEqual(said[0]["Name"], leader.name)

    @until_a_lease_is_over
    def test_nobody_else_is_there(self):
        for name in "bc":
            self.nodes[name].kill()
        harness.wait_until(lambda: len(self.svc_json("cluster", "status")["Nodes"]) == 1, "their leases are over",
                           pause_s=0.5)
        _, errors = self.svc("cluster", "step-down", "--wait", status=svc.REFUSED)
        self.assertIn("409", errors)
        self.assertIn("no other one lives", errors)

    def test_a_node_that_there_is_not(self):
        self.assertIn("404", self.svc("cluster", "step-down", "d", status=svc.REFUSED)[1])


class Remove(ClusterCase):
    def sees(self, name, roles):
        """In the end: a node that may lead is a candidate until it has heard who does."""
        harness.wait_until(lambda: self.cluster.roles(self.nodes[name]) == roles, f"{name} sees {roles}")

    def test_a_node_that_lives(self):
        for name in "abc":
            out, errors = self.svc("cluster", "remove", name, status=svc.REFUSED)
            self.assertEqual((out, errors), ("", f"svc: node {name} lives: stop its svcd first\n"))
        self.sees("a", ["Follower", "Follower", "Leader"])

    @until_a_lease_is_over
    def test_it_waits_for_one_that_is_killed(self):
        self.nodes["c"].kill()
        out, _ = self.svc("cluster", "remove", "c")
        self.assertRegex(out, r"^node c is forgotten, after \d+\.\d\d s\n$")
        self.sees("a", ["Follower", "Leader"])
        self.assertEqual(self.svc("cluster", "remove", "c")[0], "node c is not in cluster prod\n")

    @until_a_lease_is_over
    def test_it_led(self):
        self.ask(self.nodes["b"])
        self.nodes["a"].kill()
        self.assertEqual(self.svc_json("cluster", "remove", "a"), {"Node": "a", "Removed": True})
        self.sees("b", ["Follower", "Leader"])

    def test_a_name_that_is_not_known(self):
        self.assertEqual(self.svc("cluster", "remove", "d")[0], "node d is not in cluster prod\n")
        self.assertEqual(self.svc_json("cluster", "remove", 'd"'), {"Node": 'd"', "Removed": True})
        self.assertNotIn("\x1b", self.svc("cluster", "remove", "\x1b[2J")[0])

    def test_no_name(self):
        out, errors = self.svc("cluster", "remove", status=svc.MISUSE)
        self.assertEqual(out, "")
        self.assertIn("NODE", errors)

    @until_a_lease_is_over
    def test_while_nobody_leads(self):
        """What a node that has lost etcd does not know is not said to be gone."""
        self.ask(self.cluster.follower())
        self.cluster.end_etcd()
        harness.wait_until(lambda: self.leader_in(self.nodes[self.asked]) is None, "the leader's lease is over")
        command = self.background("cluster", "remove", "d")
        time.sleep(1)
        self.assertEqual(command.lines, [])
        self.assertIsNone(command.process.poll())
        self.cluster.start_etcd()
        self.assertEqual(command.wait(), svc.DONE)
        self.assertRegex(command.lines[0], r"^node d is forgotten, after ")


class Restore(ClusterCase):
    def is_lost(self, node):
        return "the log in etcd is empty or older than the journal" in \
            node.request("GET", "/Svc.Health").json().get("Reasons", [])

    def lose(self):
        for name in ("Ada", "Grace"):
            self.assertTrue(self.person(self.nodes["a"], name))
        for node in self.nodes.values():
            harness.wait_until(lambda node=node: self.people(node) == ["Ada", "Grace"], f"node {node.name} has both")
        self.cluster.lose_etcd()
        for node in self.nodes.values():
            harness.wait_until(lambda node=node: self.is_lost(node), f"node {node.name} says so")

    def others(self):
        return [node.url() for name, node in self.nodes.items() if name != self.asked]

    def test_without_need(self):
        _, errors = self.svc("cluster", "restore", "--yes", status=svc.REFUSED)
        self.assertIn("node a leads: there is nothing to restore", errors)

    def test_nobody_to_ask(self):
        out, errors = self.svc("cluster", "restore", status=svc.MISUSE)
        self.assertEqual(out, "")
        self.assertIn("--yes", errors)

    @until_a_lease_is_over
    def test_what_a_person_sees_and_says(self):
        self.lose()
        shown = self.on_terminal("cluster", "restore", *self.others(), typed="no\n", status=svc.REFUSED)
        for node in self.nodes.values():
            self.assertRegex(shown, rf"{node.name} +\d+ +{node.url()}")
        self.assertIn("(yes or no)", shown)
        self.assertIn("nothing was done", shown)
        self.assertTrue(self.is_lost(self.nodes["a"]))
        shown = self.on_terminal("cluster", "restore", *self.others(), typed="yes\n")
        self.assertRegex(shown, r"node \w leads, after \d")
        for node in self.nodes.values():
            harness.wait_until(node.is_ready, f"node {node.name} takes part")
            self.assertEqual(self.people(node), ["Ada", "Grace"])
        harness.wait_until(lambda: self.person(self.nodes["c"], "Barbara"), "changes go on")
        self.assertEqual(self.svc("cluster", "status")[1], "")

    @until_a_lease_is_over
    def test_a_lease_has_not_ended(self):
        """As in a snapshot of etcd: somebody leads who is not there."""
        self.lose()
        lease = self.cluster.member.ask("/v3/lease/grant", {"TTL": 2 * cluster.SHORT_LEASE_S})["ID"]
        self.cluster.member.ask("/v3/kv/put", {"key": cluster.machines.encode(b"/svcd/prod/leader"),
                                               "value": cluster.machines.encode(b"z"), "lease": lease})
        said = self.svc_json("cluster", "restore", "--yes", *self.others())
        self.assertEqual(said[0]["Role"], "Leader")
        for node in self.nodes.values():
            harness.wait_until(node.is_ready, f"node {node.name} takes part")
            self.assertEqual(self.people(node), ["Ada", "Grace"])
        self.nodes["a"].wait_for_line("the log is not begun anew")

    @until_a_lease_is_over
    def test_another_is_further(self):
        self.nodes["b"].kill()
        self.lose_but("b")
        self.ask(self.nodes["b"])
        _, errors = self.svc("cluster", "restore", "--yes", self.nodes["a"].url(), status=svc.REFUSED)
        self.assertRegex(errors, rf"node a has \d+ records that node b lacks; .*--url {self.nodes['a'].url()} ")
        self.ask(self.nodes["a"])
        said = self.svc_json("cluster", "restore", "--yes", *self.others())
        self.assertEqual(said[0]["Role"], "Leader")
        harness.wait_until(lambda: self.nodes["b"].is_ready() and self.people(self.nodes["b"]) == ["Ada", "Grace"],
                           "node b has what it lacked")

    @until_a_lease_is_over
    def test_one_that_has_more_comes_back(self):
        """It was not there to be asked, and what it has beyond the log is not what the log goes on with."""
        names = ("Ada", "Grace")
        for name in "ab":
            self.nodes[name].kill()
        harness.wait_until(self.nodes["c"].leads, "the one that is left leads")
        for person in names:
            self.assertTrue(self.person(self.nodes["c"], person))
        self.nodes["c"].kill()
        self.cluster.lose_etcd()
        for name in "ab":
            self.nodes[name].start()
            harness.wait_until(lambda name=name: self.is_lost(self.nodes[name]), f"node {name} says so")
        self.svc("cluster", "restore", "--yes", self.nodes["b"].url())
        for number in range(4):
            self.assertTrue(self.person(self.nodes["a"], str(number)))
        with self.assertRaisesRegex(AssertionError, "the log was restored behind serial"):
            self.nodes["c"].start()
            self.nodes["c"].process.wait(harness.DEADLINE_S)
            self.nodes["c"].read_rest()
            raise AssertionError("\n".join(self.nodes["c"].log))
        shutil.rmtree(self.nodes["c"].data)
        self.nodes["c"].start()
        harness.wait_until(lambda: self.nodes["c"].is_ready() and len(self.people(self.nodes["c"])) == 4, "it has a copy")

    def lose_but(self, name):
        """etcd is lost while one node is behind."""
        others = [node for node in self.nodes.values() if node.name != name]
        leader = harness.wait_until(lambda: next((node for node in others if node.leads()), None), "another leads")
        for person in ("Ada", "Grace"):
            self.assertTrue(self.person(leader, person))
        for node in others:
            harness.wait_until(lambda node=node: self.people(node) == ["Ada", "Grace"], f"node {node.name} has both")
        self.cluster.lose_etcd()
        self.nodes[name].start()
        for node in self.nodes.values():
            harness.wait_until(lambda node=node: self.is_lost(node), f"node {node.name} says so")


class Redirected(InACluster):
    """Two nodes whose follower sends changes on to the leader; it is the one that commands ask."""

    names = "ab"
    options = {"Redirect": True}

    def setUp(self):
        super().setUp()
        self.leader, self.asked = self.nodes["a"], self.nodes["b"]

    def url(self):
        return self.asked.url()

    def people(self):
        return [person["Name"] for person in self.leader.request("GET", "/Shop.Person").json()]

    def test_changes_are_made_at_the_leader(self):
        self.assertEqual(self.asked.request("POST", "/Shop.Person", {"Name": "Ada"}).status, 307)
        self.svc("post", "/Shop.Person", "--data", '{"Name":"Ada"}')
        self.assertEqual(self.people(), ["Ada"])
        self.svc("patch", "/Shop.Person/Name=Ada", "--data", '{"Name":"Grace"}')
        self.assertEqual(self.people(), ["Grace"])
        self.svc("delete", "/Shop.Person/Name=Grace")
        self.assertEqual(self.leader.request("GET", "/Shop.Person").status, 204)

    def test_what_the_leader_refuses(self):
        _, errors = self.svc("post", "/Shop.Person", "--data", '{"Nobody":1}', status=svc.REFUSED)
        self.assertIn("Nobody", errors)

    @harness.apart
    def test_it_hands_over(self):
        self.assertRegex(self.svc("cluster", "step-down", "--wait")[0], r"^node b leads")

    @harness.apart
    def test_the_leader_is_gone(self):
        self.leader.kill()
        _, errors = self.svc("post", "/Shop.Person", "--data", '{"Name":"Ada"}', status=svc.NOT_REACHED)
        self.assertIn(f"the cluster's leader, {self.leader.url()}, does not answer", errors)


class StandIns(unittest.TestCase):
    """What stands in for servers, one function for each."""

    KEY = "k-of-the-operator"

    def serve(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):  # noqa: N802
                answer(self)

            do_POST = do_GET

            def log_message(self, *_):
                pass

            def say(self, status, body, **fields):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", "Content-Length": len(body), **fields}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_port}"

    def run_svc(self, *words):
        environment = {**os.environ, "SVC_URL": self.server, "SVC_KEY": self.KEY}
        return subprocess.run([svc.SVC, *words], env=environment, capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, check=False)


class RemoveAnAddress(StandIns):
    """The node that is asked, and what answers at the address of the one to be removed."""

    def setUp(self):
        self.there, self.server = (self.serve(answer) for answer in (self.answer_there, self.answer))
        self.status, self.seen, self.lists = 200, [], []

    def answer_there(self, request):
        self.seen.append((request.path, request.headers.get("Authorization")))
        request.say(self.status, b"")

    def answer(self, request):
        """Each list of nodes once, the last one for ever."""
        if request.path == "/Svc.Health":
            request.say(200, b'{"Status":"ok","Cluster":{"Name":"prod","Node":"a"}}')
            return
        nodes = self.lists[0] if len(self.lists) == 1 else self.lists.pop(0)
        request.say(200, json.dumps([{"Name": name, "Role": role, "Url": self.there} for name, role in nodes]).encode())

    def remove(self, *lists):
        self.lists = list(lists)
        self.seen.clear()
        return self.run_svc("cluster", "remove", "b")

    def test_it_is_sent_no_key(self):
        done = self.remove([("a", "Leader"), ("b", "Follower")])
        self.assertEqual((done.returncode, done.stderr), (svc.REFUSED, "svc: node b lives: stop its svcd first\n"))
        self.assertEqual(self.seen, [("/livez", None)])

    def test_what_answers_is_something_else(self):
        self.status = 502
        known = [("a", "Leader"), ("b", "Follower")]
        done = self.remove(known, known, known, [("a", "Leader")])
        self.assertEqual(done.returncode, svc.DONE, done.stderr)
        self.assertRegex(done.stdout, r"^node b is forgotten, after \d+\.\d\d s$")

    def test_a_list_without_a_leader_proves_nothing(self):
        done = self.remove([("a", "Follower")], [("a", "Follower")], [("a", "Leader")])
        self.assertRegex(done.stdout, r"^node b is forgotten, after \d+\.\d\d s$")
        self.assertEqual((done.returncode, self.lists), (svc.DONE, [[("a", "Leader")]]))

    def test_an_address_that_is_none(self):
        self.there = "b:8080"
        self.assertEqual(self.remove([("a", "Leader"), ("b", "Follower")], [("a", "Leader")]).returncode, svc.DONE)
        self.assertEqual(self.seen, [])


class SentOn(StandIns):
    """What stands in for a server answers 307 with an address of its choice: the key does not go there."""

    def setUp(self):
        self.thief, self.server = (self.serve(answer) for answer in (self.take, self.answer))
        self.stolen, self.nodes, self.status = [], [], 200

    def take(self, request):
        self.stolen.append(request.headers.get("Authorization"))
        request.say(201, b'[{"Id":"00000000-0000-4000-8000-000000000000"}]')

    def answer(self, request):
        if request.command == "GET":
            request.say(self.status, json.dumps([{"Name": "a", "Url": url} for url in self.nodes]).encode())
        else:
            request.say(307, b"", Location=self.thief + request.path)

    def post(self):
        return self.run_svc("post", "/Shop.Person", "--data", '{"Name":"Ada"}')

    def test_only_a_node_gets_the_key(self):
        for self.nodes in [], [self.server], [self.thief[:-1]], [self.thief + "/else"], [""]:
            done = self.post()
            self.assertEqual((done.returncode, self.stolen), (svc.REFUSED, []), done.stderr)
            self.assertIn(f"changes are made at {self.thief}/Shop.Person", done.stderr)
            self.assertIn("no node of the cluster", done.stderr)
        for self.nodes in [self.server, self.thief], [self.thief + "/"]:
            self.stolen.clear()
            self.assertEqual(self.post().returncode, svc.DONE)
            self.assertEqual(self.stolen, ["apikey " + self.KEY])

    def test_nodes_that_cannot_be_read(self):
        self.nodes, self.status = [self.thief], 403
        done = self.post()
        self.assertEqual((done.returncode, self.stolen), (svc.REFUSED, []))
        self.assertIn("the cluster's nodes cannot be read", done.stderr)

    def test_never_in_plain_text_after_a_socket(self):
        """As after TLS: a local socket shows the key to nobody."""
        directory = tempfile.mkdtemp(prefix="svcd-socket-")
        self.addCleanup(shutil.rmtree, directory)
        path, port = os.path.join(directory, "s"), int(self.server.rpartition(":")[2])
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen()
        threading.Thread(target=self.pass_on, args=(listener, port), daemon=True).start()
        self.nodes, self.server = [self.thief], "unix:" + path
        done = self.post()
        self.assertEqual((done.returncode, self.stolen), (svc.REFUSED, []), done.stderr)
        self.assertIn("in plain text", done.stderr)

    @staticmethod
    def pass_on(listener, port):
        """One request, whole, and its answer."""
        near, _ = listener.accept()
        with near, socket.create_connection(("127.0.0.1", port)) as far:
            received = b""
            while not received.endswith(b"}"):
                received += near.recv(65536)
            far.sendall(received)
            near.sendall(far.recv(65536))


class Alone(svc.SvcCase):
    compares_digest = False

    def test_no_node_of_a_cluster(self):
        for words in (["status"], ["step-down"], ["remove", "b"], ["restore", "--yes"]):
            out, errors = self.svc("cluster", *words, status=svc.REFUSED)
            self.assertEqual((out, errors), ("", f"svc: {self.url()} is no node of a cluster\n"))


if __name__ == "__main__":
    unittest.main()

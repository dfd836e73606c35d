"""What the tests of a cluster seen from outside share: nodes, as processes, over a real etcd of one member."""
import http.client
import os
import shutil
import sys
import tempfile

import harness

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
import machines  # noqa: E402

LEASE_S = 20  # so that a node on a loaded machine may stand still
SHORT_LEASE_S = 6  # where a test waits for the end of one


def free_port():
    """One that no connection and no other process of tests takes: a program may be told to listen there."""
    return machines.free_ports(1)[0]


class Node(harness.Server):
    """A server at a port that stays its own, as others know it by that."""

    def __init__(self, name, member, port, **cluster):
        super().__init__()
        self.name, self.port_of_its_own = name, port
        self.listen = [f"127.0.0.1:{port}"]
        self.config["Cluster"] = {"Name": "prod", "Node": name, "Url": self.url(), "Etcd": [member.url],
                                  **{"LeaseSeconds": LEASE_S, **cluster}}

    def url(self):
        return f"http://127.0.0.1:{self.port_of_its_own}"

    def says(self, target):
        """200? One that starts anew may not answer."""
        try:
            return self.request("GET", target).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def leads(self):
        return self.says("/readyz?leader")

    def is_ready(self):
        return self.says("/readyz")


class Cluster:
    """Node `a` leads, as it is the first one, and all know of each other. `nodes` by their names. What is to be done at
    its end is given to `at_end`, a test's addCleanup or that of its class."""

    def __init__(self, at_end, names="abc", **cluster):
        self.directory = tempfile.mkdtemp(prefix="svcd-cluster-")
        at_end(shutil.rmtree, self.directory, ignore_errors=True)
        client, peer, *ports = machines.free_ports(2 + len(names))
        self.member = machines.Member(0, self.directory, client, [peer], None)
        self.nodes = {name: Node(name, self.member, port, **cluster) for name, port in zip(names, ports)}
        for node in self.nodes.values():
            at_end(node.remove)
        at_end(self.end_etcd)
        self.start_etcd()
        for node in self.nodes.values():
            node.start()
            harness.wait_until(node.leads if node.name == names[0] else node.is_ready, f"node {node.name} is ready")
        self.wait_until_known()

    def wait_until_known(self):
        """Who leads, and that all others follow, to each node."""
        roles = ["Follower"] * (len(self.nodes) - 1) + ["Leader"]
        for node in self.nodes.values():
            harness.wait_until(lambda node=node: self.roles(node) == roles, f"node {node.name} knows of all")

    def start_etcd(self):
        self.member.start()
        harness.wait_until(self.member.is_well, "etcd answers")

    def end_etcd(self):
        if self.member.process.poll() is None:
            self.member.kill()

    def lose_etcd(self):
        """With all that it had."""
        self.end_etcd()
        shutil.rmtree(os.path.join(self.directory, self.member.name))
        self.start_etcd()

    @staticmethod
    def roles(node):
        """Of the nodes that it knows."""
        return sorted(one["Role"] for one in node.request("GET", "/Svc.Admin.Node").json())

    def leader(self):
        """The node that leads, once there is one."""
        return harness.wait_until(lambda: next((n for n in self.nodes.values() if n.leads()), None), "a node leads")

    def follower(self):
        leader = self.leader()
        return next(node for node in self.nodes.values() if node is not leader)

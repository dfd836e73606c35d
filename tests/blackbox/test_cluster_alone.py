"""A node of a cluster whose etcd is not there: it says so, answers reads, takes no change, and ends when it is told to.
What only a node has, a server that is alone has not."""
import json
import unittest

import harness


class WithoutEtcd(harness.ServerCase):
    compares_digest = False

    config = {"Cluster": {"Name": "prod", "Node": "a", "Url": "http://127.0.0.1:1", "Etcd": [harness.nobody()]}}

    def test_it_reads_and_takes_no_change(self):
        harness.wait_until(lambda: any("etcd is not reached" in line for line in self.server.log), "it says so")
        self.assertEqual(self.server.request("GET", "/Svc.Admin.Webhook").status, 204)
        answer = self.server.request("POST", "/Svc.Admin.Resource", {"Name": "A.B", "Kind": "EntityResource"})
        self.assertEqual(answer.status, 503)
        self.assertEqual(json.loads(answer.body)["ErrorCode"], "NoLeader")
        self.assertGreaterEqual(int(answer.headers["Retry-After"]), 1)
        self.assertEqual(self.server.request("GET", "/readyz").status, 503)
        self.assertEqual(self.server.request("GET", "/livez").status, 200)
        self.assertEqual(self.server.stop(), 0)

    def test_it_knows_itself(self):
        said = self.server.request("GET", "/Svc.Admin.Node").json()
        self.assertEqual([list(one) for one in said], [["Name", "Url", "Role", "Applied", "Lag", "Since", "Version"]])
        self.assertEqual([said[0][name] for name in ("Name", "Url", "Role", "Applied", "Lag")],
                         ["a", "http://127.0.0.1:1", "Joining", 0, 0])
        self.assertEqual(said[0]["Version"], self.server.request("GET", "/").headers["Svc-version"])
        self.assertEqual(self.server.request("REPORT", "/Svc.Admin.Node/Role=Leader").json(), [{"Count": 0}])
        self.assertEqual([one["Methods"] for one in self.server.request("GET", "/").json() if one["Name"] == "Svc.Admin.Node"],
                         [["GET", "PATCH", "REPORT", "HEAD"]])
        paths = self.server.request("GET", "/openapi.json").json()["paths"]
        self.assertIn("202", paths["/Svc.Admin.Node"]["patch"]["responses"])

    def test_what_it_cannot_do_is_refused(self):
        for members, status, why in (({"Role": "Follower"}, 409, "node 'a' is Joining"),
                                     ({"Role": "Leader"}, 400, "another node is to lead"),
                                     ({"RestoreFrom": 0}, 409, "the log in etcd is not lost"), ({}, 400, "none of the two")):
            answer = self.server.request("PATCH", "/Svc.Admin.Node/Name=a", members)
            self.assertEqual(answer.status, status, answer.body)
            self.assertIn(why, answer.headers["Svc-info"])
        self.assertEqual(self.server.request("PATCH", "/Svc.Admin.Node/Name=b", {"Role": "Follower"}).status, 404)


class Alone(harness.ServerCase):
    def test_it_has_no_nodes(self):
        for method in ("GET", "PATCH", "REPORT"):
            answer = self.server.request(method, "/Svc.Admin.Node/Name=a", {"Role": "Follower"})
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (404, "UnknownResource"))
        self.assertNotIn("Svc.Admin.Node", [one["Name"] for one in self.server.request("GET", "/").json()])
        self.assertNotIn(b"Svc.Admin.Node", self.server.request("GET", "/openapi.json").body)
        self.assertNotIn(b"svc_cluster_", self.server.request("GET", "/Svc.Metrics").body)


if __name__ == "__main__":
    unittest.main()

"""The command line, the configuration's errors, signals."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import unittest

import harness

CLUSTER = {"Name": "prod", "Node": "a", "Url": "http://a:8080", "Etcd": ["http://127.0.0.1:2379"]}


def run(*arguments, stdin=b""):
    return subprocess.run([harness.SVCD, *arguments], input=stdin, capture_output=True, timeout=harness.DEADLINE_S,
                          check=False)


def keys(*entries):
    return [{"Name": "x", "KeySha256": "0" * 64, "AllowAccess": list(entries)}]


class CommandLine(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="svcd-test-")
        self.addCleanup(self.directory.cleanup)

    def write(self, text):
        path = os.path.join(self.directory.name, "config.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        os.chmod(path, 0o600)
        return path

    def test_version(self):
        result = run("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, rb"^svcd \d+\.\d+\.\d+\n$")

    def test_hash_key(self):
        result = run("hash-key", stdin=b"secret\n")
        self.assertEqual(result.stdout.strip(),
                         b"2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b")
        self.assertEqual(run("hash-key").returncode, 2)

    def test_the_example_is_good(self):
        result = run("--config", harness.SHOP, "--check")
        self.assertEqual((result.returncode, result.stderr), (0, b""))

    def test_unknown_option(self):
        result = run("--no-such-option")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"usage:", result.stderr)

    def test_good_origins_and_rights(self):
        for members in ({"AllowedCorsOrigins": ["https://a.example", "http://localhost:3000", "http://[::1]:8", "*"]},
                        {"BasePath": "/a-1/b_2.c"},
                        {"ApiKeys": keys({"Resources": ["Svc.*", "Svc.Admin.*", "A.Later"], "Methods": ["DELETE"]})}):
            self.assertEqual(run("--check", "--config", self.write(members)).returncode, 0, members)

    def test_bad_configurations(self):
        """Exit status 2, and a line that names file, member and reason."""
        person = {"Name": "A.B", "Kind": "EntityResource"}
        cases = [
            ("{", "line 1"),
            ('// comment\n{\n// another\n"Listen": [],\n "Log" 1}', "line 5, column 8"),
            ('{"Limits": {"Requests": 1, "requests": 2}}', "requests"),
            ("[]", "config.json: it must be a JSON object"),
            ({"Lissen": []}, "Lissen: there is no such member, is 'Listen' meant?"),
            ({"Listen": []}, "Listen: must have 1 to 16"),
            ({"Id": 1}, "Id: there is no such member"),
            ({"Listen": "127.0.0.1:80"}, "Listen: must be of type array"),
            ({"Listen": ["nonsense"]}, "Listen[0]: listen address 'nonsense' lacks a port"),
            ({"Listen": ["127.0.0.1:0", 80]}, "Listen[1]: listen address '80' lacks a port"),
            ({"Listen": [{"ProxyProtocol": True}]}, "Listen[0].Address: is required"),
            ({"Listen": [{"Address": "x"}]}, "Listen[0].Address: listen address 'x' lacks a port"),
            ({"Listen": [{"Addres": "x"}]}, "Listen[0].Addres: there is no such member, is 'Address'"),
            ({"Listen": ["0.0.0.0:8080"]}, "RequireApiKey: must be true to listen on 0.0.0.0:8080"),
            ({"BasePath": "x"}, "BasePath: must begin with '/'"),
            ({"BasePath": "/x/"}, "BasePath: must begin with '/'"),
            ({"BasePath": "/a b"}, "BasePath: must begin with '/'"),
            ({"AllowedCorsOrigins": ["https://a.example/"]}, "AllowedCorsOrigins[0]: 'https://a.example/' is no origin"),
            ({"AllowedCorsOrigins": ["*", "not a url"]}, "AllowedCorsOrigins[1]: 'not a url' is no origin"),
            ({"AllowedCorsOrigins": ["https://a.example:x"]}, "is no origin"),
            ({"AllowedCorsOrigins": ["https://a.example:65536"]}, "is no origin"),
            ({"AllowedCorsOrigins": ["https://:80"]}, "is no origin"),
            ({"AllowedCorsOrigins": ["https://*.a.example"]}, "is no origin"),
            ({"AllowedCorsOrigins": ["https://[::1"]}, "is no origin"),
            ({"AllowedCorsOrigins": ["1://a"]}, "is no origin"),
            ({"ApiKeys": keys({"Resources": [], "Methods": ["GET"]})},
             "ApiKeys[0].AllowAccess[0].Resources: has none, so that nothing is allowed"),
            ({"ApiKeys": keys({"Resources": ["*"], "Methods": ["GET"]}, {"Resources": ["*"], "Methods": []})},
             "ApiKeys[0].AllowAccess[1].Methods: has none, so that nothing is allowed"),
            ({"ApiKeys": keys({"Resources": ["Svc.Admin.Webhok"], "Methods": ["GET"]})},
             "ApiKeys[0].AllowAccess[0].Resources[0]: there is no built-in resource 'svc.admin.webhok'"),
            ({"ApiKeys": keys({"Resources": ["Svc.Metrics"], "Methods": ["POST"]})},
             "ApiKeys[0].AllowAccess[0].Resources[0]: 'Svc.Metrics' has none of the Methods, but GET, HEAD"),
            ({"DataDirectory": ""}, "DataDirectory: must neither be empty nor hold a NUL"),
            ({"User": "ro\0ot"}, "User: must neither be empty nor hold a NUL"),
            ({"Fsync": "sometimes"}, "Fsync: 'sometimes' is not one of always, everysec, no"),
            ({"SegmentBytes": 4096}, "SegmentBytes: is 4096, it must be between 65536 and 1073741824"),
            ({"SegmentBytes": 65537}, "SegmentBytes: is 65537, it must be a multiple of 4096"),
            ({"RequireApiKey": 1}, "RequireApiKey: must be of type boolean"),
            ({"TrustedProxies": ["::1", 1]}, "TrustedProxies[1]: must be of type string"),
            ({"Limits": []}, "Limits: must be of type object"),
            ({"Limits": {"BodyBytes": -1}}, "Limits.BodyBytes: is -1, it must be between"),
            ({"Limits": {"BodyBytes": 1.5}}, "Limits.BodyBytes: must be of type integer"),
            ({"Limits": {"BodyByte": 1}}, "Limits.BodyByte: there is no such member, is 'BodyBytes'"),
            ({"Retention": {"Errors": "many"}}, "Retention.Errors: must be of type integer"),
            ({"Delivery": {"Egress": {"Preset": "none"}}},
             "Delivery.Egress.Preset: 'none' is not one of local-network, public-only"),
            ({"Delivery": {"Egress": {"Deny": ["10.0.0.0/33"]}}}, "Delivery.Egress.Deny[0]: '10.0.0.0/33' "),
            ({"Delivery": {"NameServers": "127.0.0.1"}}, "Delivery.NameServers: must be of type array"),
            ({"Delivery": {"MaxInFlight": 0}}, "Delivery.MaxInFlight: is 0, it must be between 1 and"),
            ({"Delivery": {"NameServers": ["no address"]}}, "Delivery: NameServers: 'no address': "),
            ({"Delivery": {"Proxy": "nonsense"}}, "Delivery: Proxy: should be"),
            ({"Delivery": {"CaFile": "/does/not/exist"}}, "Delivery: CaFile: '/does/not/exist': "),
            ({"Delivery": {"HostsFile": "/does/not/exist"}}, "Delivery: HostsFile: '/does/not/exist': No such file"),
            ({"Log": {"Level": "loud"}}, "Log.Level: 'loud' is not one of debug, info, warn, error"),
            ({"Cluster": 5}, "Cluster: must be of type object"),
            ({"Cluster": dict(CLUSTER, LeaseSecond=5)}, "Cluster.LeaseSecond: there is no such member, is 'LeaseSeconds'"),
            ({"Cluster": dict(CLUSTER, Etcd=[])}, "Cluster.Etcd: must have 1 to 16 addresses"),
            ({"Cluster": dict(CLUSTER, PasswordFile="/does/not/exist", User="u")},
             "Cluster.PasswordFile: file '/does/not/exist': No such file"),
            ({"Cluster": CLUSTER, "Fsync": "everysec"}, "Cluster: needs Fsync 'always', and Fsync is 'everysec'"),
            ({"Cluster": CLUSTER, "Fsync": "no"}, "Cluster: needs Fsync 'always', and Fsync is 'no'"),
            ({"ApiKeys": [5]}, "ApiKeys[0]: must be of type object"),
            ({"ApiKeys": [{"Name": "x"}]}, "ApiKeys[0].KeySha256: is required"),
            ({"ApiKeys": [{"Name": "x", "KeySha256": "0" * 64, "AllowAccess": [{"Resources": []}]}]},
             "ApiKeys[0].AllowAccess[0].Methods: is required"),
            ({"Resources": {}}, "Resources: must be of type array"),
            ({"Resources": [[]]}, "Resources[0]: must be of type object"),
            ({"Resources": [{"Name": "NoDot", "Kind": "EntityResource"}]}, "Resources[0]: Name: "),
            ({"Resources": [{"Name": "Svc.Mine", "Kind": "EntityResource"}]}, "the server's own"),
            ({"Resources": [person, person]}, "there is a resource 'A.B' already"),
            ({"Resources": [{"Name": "A.B", "Kind": "Nothing"}]}, "Kind: 'Nothing' is not one of"),
            ({"Resources": [dict(person, Events={"Inserted": "A.None"})]}, "is no event resource"),
            ({"Resources": [dict(person, Indexes=["x"])]}, "Indexes: 'x' is no declared property"),
            ({"Resources": [{"Name": "A.T", "Kind": "BinaryResource", "File": "none.txt"}]},
             "No such file"),
            ({"Resources": [{"Name": "A.T", "Kind": "BinaryResource", "File": "../x"}]},
             "leads out of"),
        ]
        for text, words in cases:
            with self.subTest(text=text):
                path = self.write(text)
                result = run("--config", path, "--check")
                message = result.stderr.decode()
                self.assertEqual(result.returncode, 2, message)
                self.assertIn(words, message)
                self.assertIn(path, message)

    def test_a_cluster_is_checked(self):
        path = self.write({"Cluster": CLUSTER, "Listen": ["127.0.0.1:0"], "DataDirectory": self.directory.name + "/data"})
        result = run("--config", path, "--check")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertFalse(os.path.exists(self.directory.name + "/data"))

    def test_a_missing_file(self):
        result = run("--config", "/does/not/exist.json")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"/does/not/exist.json: No such file or directory", result.stderr)

    def test_an_address_in_use(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            result = run("--listen", f"127.0.0.1:{port}", "--data", self.directory.name + "/data")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(f"127.0.0.1:{port}".encode(), result.stderr)


class Signals(harness.ServerCase):
    def drain(self):
        """SIGTERM, once what was sent before has been read: this request came later."""
        self.assertEqual(self.get("/Svc.Health").status, 200)
        self.server.process.send_signal(signal.SIGTERM)
        harness.wait_until(lambda: any("draining" in line for line in self.server.log), "it drains")

    def test_the_data_directory_is_locked(self):
        result = run("--data", self.server.data, "--listen", "127.0.0.1:0")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn(self.server.data.encode(), result.stderr)

    def test_sigterm_finishes_what_was_begun(self):
        """A request whose body is still coming is answered before the server ends."""
        body = b'{"No": 1}'
        head = (f"POST /Shop.Message HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(head + body[:4])
            self.drain()
            s.sendall(body[4:])
            answer = b""
            while part := s.recv(65536):
                answer += part
        self.assertTrue(answer.startswith(b"HTTP/1.1 201 Created\r\n"), answer)
        self.assertIn(b"Connection: close", answer)
        self.assertEqual(self.server.process.wait(timeout=harness.DEADLINE_S), 0)

    def test_a_second_signal_exits_at_once(self):
        with socket.create_connection(("127.0.0.1", self.server.port)) as s:
            s.sendall(b"POST /Shop.Message HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n")
            self.drain()
            self.assertIsNone(self.server.process.poll(), "it waits for the request")
            self.server.process.send_signal(signal.SIGTERM)
            self.assertEqual(self.server.process.wait(timeout=harness.DEADLINE_S), 1)


class Listening(unittest.TestCase):
    def test_each_address_is_told_with_its_own_port(self):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            path = os.path.join(directory, "socket")
            addresses = [f"unix:{path}", "127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0"]
            options = [option for address in addresses for option in ("--listen", address)]
            with subprocess.Popen([harness.SVCD, *options, "--data", os.path.join(directory, "data")],
                                  stderr=subprocess.PIPE, text=True) as process:
                try:
                    told = []
                    while len(told) < len(addresses):
                        found = re.search(r" listening on (\S+?)(?:, port (\d+))?$", process.stderr.readline())
                        if found:
                            told.append(found.groups())
                    self.assertEqual([address for address, _ in told], addresses)
                    self.assertIsNone(told[0][1])
                    self.assertEqual(len({port for _, port in told}), len(addresses))
                    for address, port in told[1:]:
                        socket.create_connection((address.split(":")[0], int(port))).close()
                finally:
                    process.kill()


class UnixSocket(unittest.TestCase):
    @staticmethod
    def connect(path):
        """None while nobody listens."""
        connection = socket.socket(socket.AF_UNIX)
        if connection.connect_ex(path) == 0:
            return connection
        connection.close()
        return None

    def test_requests_over_a_unix_socket(self):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            path = os.path.join(directory, "socket")
            process = subprocess.Popen([harness.SVCD, "--listen", f"unix:{path}", "--data",
                                        os.path.join(directory, "data")], stderr=subprocess.DEVNULL)
            try:
                with harness.wait_until(lambda: self.connect(path), "the socket listens") as s:
                    s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                    answer = b""
                    while part := s.recv(65536):
                        answer += part
                self.assertTrue(answer.startswith(b"HTTP/1.1 200 OK\r\n"), answer)
                process.terminate()
                self.assertEqual(process.wait(timeout=harness.DEADLINE_S), 0)
            finally:
                if process.poll() is None:
                    process.kill()
                    process.wait()


if __name__ == "__main__":
    unittest.main()

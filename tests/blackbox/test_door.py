"""Who comes in, and what is looked at before anything else: keys before bodies, connections that do not
read, proxies and what is none, files that others may write."""
import hashlib
import json
import os
import signal
import socket
import subprocess
import unittest

import harness
from harness import ADMIN

HEAD = b"POST /Shop.Message HTTP/1.1\r\nHost: x\r\n"


def key(name, secret, *access):
    return {"Name": name, "KeySha256": hashlib.sha256(secret.encode()).hexdigest(),
            "AllowAccess": [{"Resources": resources, "Methods": methods}
                            for resources, methods in access]}


def status_of(answer):
    return int(answer.split()[1]) if answer else 0


class Bodies(harness.ServerCase):
    shares_server = True
    limits = {"IncomingBytes": 1000000}

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, Limits=self.limits,
                    ApiKeys=[key("admin", "admin-key", (["*"], ["*"]))])

    def connect(self, data):
        connection = socket.create_connection(("127.0.0.1", self.server.port),
                                              timeout=harness.DEADLINE_S)
        self.addCleanup(connection.close)
        connection.sendall(data)
        return connection

    def test_without_a_key_no_body_is_waited_for(self):
        for line in (b"", b"Authorization: apikey wrong\r\n", b"Expect: 100-continue\r\n"):
            connection = self.connect(HEAD + line + b"Content-Length: 1000000\r\n\r\n")
            answer = connection.recv(65536)
            self.assertEqual(status_of(answer), 401, answer)
            self.assertIn(b"Connection: close", answer)
        connection = self.connect(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n")
        self.assertEqual(status_of(connection.recv(65536)), 401)

    def test_with_a_key_it_is(self):
        connection = self.connect(HEAD + b"Authorization: apikey admin-key\r\nContent-Length: 2\r\n"
                                  b"Expect: 100-continue\r\n\r\n")
        self.assertEqual(status_of(connection.recv(65536)), 100)
        connection.sendall(b"{}")
        self.assertIn(status_of(connection.recv(65536)), (201, 400))

    def test_what_comes_before_is_answered_first(self):
        asked = (b"GET /Svc.Health HTTP/1.1\r\nHost: x\r\nAuthorization: apikey admin-key\r\n\r\n")
        answer = self.server.raw(asked + HEAD + b"Content-Length: 100\r\n\r\nabc")
        self.assertEqual(status_of(answer), 200)
        self.assertIn(b"HTTP/1.1 401 ", answer)

    def test_who_holds_most_makes_room(self):
        line = b"Authorization: apikey admin-key\r\n"
        body = json.dumps({"Text": "x" * 80}).encode()
        small = self.connect(HEAD + line + b"Content-Length: %d\r\n\r\n" % len(body) + body[:4])
        large = self.connect(HEAD + line + b"Content-Length: 900000\r\n\r\n" + b" " * 500000)
        harness.wait_until(lambda: self.incoming() > 500000, "the large one has come")
        more = [self.connect(HEAD + line + b"Content-Length: 400000\r\n\r\n" + b" " * 200000)
                for _ in range(3)]
        self.assertEqual(status_of(large.recv(65536)), 503)
        small.sendall(body[4:])
        self.assertEqual(status_of(small.recv(65536)), 201, "which came first, and holds least")
        del more

    def incoming(self):
        for line in self.get("/Svc.Metrics", ADMIN).body.decode().splitlines():
            if line.startswith("svc_incoming_bytes "):
                return float(line.split()[1])
        raise AssertionError("svc_incoming_bytes is missing")

    def test_two_keys_are_none(self):
        answer = self.server.raw(b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\nAuthorization: apikey wrong\r\n"
                                 b"authorization: apikey admin-key\r\n\r\n")
        self.assertEqual(status_of(answer), 400)
        self.assertIn(b"Authorization", answer)


class Unread(harness.ServerCase):
    """Who does not read answers is not asked for more."""
    LARGE = 100000

    def test_no_further_request_is_read(self):
        self.created("/Shop.Message", {"Text": "x" * self.LARGE})
        asked = b"GET /Shop.Message HTTP/1.1\r\nHost: x\r\n\r\n"
        clients = [socket.socket() for _ in range(5)]
        for client in clients:
            self.addCleanup(client.close)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
            client.connect(("127.0.0.1", self.server.port))
            client.sendall(asked * 60)
        harness.wait_until(lambda: self.metric("svc_unread_bytes") > 5 * 262144, "they are full")
        self.get("/Svc.Health")
        most = 5 * (262144 + 2 * self.LARGE)
        self.assertLess(self.metric("svc_unread_bytes"), most)
        # Who reads at last gets all of it.
        got = b""
        while got.count(b"HTTP/1.1 200 OK") < 60 or not got.endswith(b"]"):
            part = clients[0].recv(1 << 20)
            self.assertTrue(part, "closed")
            got += part
        self.assertEqual(got.count(b"HTTP/1.1 200 OK"), 60)

    def metric(self, name):
        for line in self.get("/Svc.Metrics").body.decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[1])
        raise AssertionError(name)


class OwnConnections(harness.KeyedCase):
    """What a webhook sends to this server itself is no proxy's."""

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True,
                    Limits={"FailedSignInsPerMinute": 5},
                    ApiKeys=[key("admin", "admin-key", (["*"], ["*"]))])

    def test_they_lock_nobody_out(self):
        victim = "192.0.2.77"
        webhook = {"Destination": f"http://127.0.0.1:{self.server.port}/Shop.Message",
                   "EventSelector": "/Shop.OrderPlaced", "Headers": {"Authorization": "apikey wrong"},
                   "Delivery": {"RetrySchedule": []}}
        for name in ("X-Forwarded-For", "Forwarded", "x-real-ip"):
            bad = dict(webhook, Headers=dict(webhook["Headers"], **{name: victim}))
            self.assertEqual(self.post("/Svc.Admin.Webhook", bad, ADMIN).status, 400, name)
        self.created("/Svc.Admin.Webhook", webhook, ADMIN)
        for total in range(6):
            self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": total}},
                         ADMIN)
        harness.wait_until(lambda: self.refused() == 6, "they are refused")
        statuses = {entry["ResponseStatus"]
                    for entry in self.get("/Svc.Admin.WebhookLog", ADMIN).json()}
        self.assertIn("Too Many Requests", statuses, "they count for the address that they come from, "
                                     "and not as a proxy's, for nobody")
        for client in (victim, "127.0.0.1"):
            headers = dict(ADMIN, **{"X-Forwarded-For": client})
            self.assertEqual(self.get("/Svc.Health", headers).status, 200, client)
        self.assertEqual(self.get("/Svc.Health", ADMIN).status, 200)

    def refused(self):
        answer = self.server.request("REPORT", "/Svc.Admin.WebhookLog/IsSuccess=false", headers=ADMIN)
        return answer.json()[0]["Count"]


class Sites(harness.ServerCase):
    """Failed sign-ins of addresses that are one network's."""

    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True,
                    Limits={"FailedSignInsPerMinute": 2},
                    ApiKeys=[key("admin", "admin-key", (["*"], ["*"]))])

    def guess(self, client):
        headers = {"X-Forwarded-For": client, "Authorization": "apikey wrong"}
        return self.get("/Shop.Message", headers).status

    def test_a_48_has_ten_times_as_many(self):
        statuses = [self.guess(f"2001:db8:7:{number:x}::1") for number in range(30)]
        self.assertEqual(statuses[:20], [401] * 20)
        self.assertIn(429, statuses[20:])
        self.assertEqual(self.guess("2001:db8:8::1"), 401, "another one")
        self.assertEqual([self.guess(f"192.0.2.{number}") for number in range(30)], [401] * 30)


class Files(harness.ServerCase):
    """Whoever may write them is the server's master."""
    shares_server = True

    def refusal(self, *arguments):
        done = subprocess.run([harness.SVCD, *arguments], stderr=subprocess.PIPE, timeout=harness.DEADLINE_S,
                              check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr.decode()

    def test_a_configuration_that_everybody_may_write(self):
        path = self.server.write_config()
        os.chmod(path, 0o602)
        self.assertIn("everybody may write it", self.refusal("--check", "--config", path))
        os.chmod(path, 0o600)

    @unittest.skipUnless(os.geteuid() == 0, "files of others can be made by root only")
    def test_files_of_another_user(self):
        path = self.server.write_config()
        os.chown(path, 12345, -1)
        self.assertIn("belongs to user 12345", self.refusal("--check", "--config", path))
        os.chown(path, 0, -1)
        data = os.path.join(self.server.directory, "other")
        os.mkdir(data, 0o700)
        os.chown(data, 12345, -1)
        text = self.refusal("--data", data, "--listen", "127.0.0.1:0")
        self.assertIn("belongs to user 12345", text)

    def test_a_data_directory_where_everybody_may_write(self):
        data = os.path.join(self.server.directory, "open")
        os.mkdir(data)
        os.chmod(data, 0o777)
        text = self.refusal("--data", data, "--listen", "127.0.0.1:0")
        self.assertIn("everybody may write there", text)

    def test_a_fifo_stops_nothing(self):
        path = os.path.join(self.server.directory, "config.json")
        os.remove(path)
        os.mkfifo(path)
        self.server.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: any("nothing has changed" in line for line in self.server.log),
                           "it is refused")
        self.assertEqual(self.get("/Svc.Health").status, 200)
        os.remove(path)

    def test_names_that_lead_nowhere(self):
        def check(**members):
            path = os.path.join(self.server.directory, "checked.json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(dict(harness.load_config(harness.SHOP), **members), file)
            os.chmod(path, 0o600)
            done = subprocess.run([os.path.abspath(harness.SVCD), "--check", "--config", path], check=False,
                                  timeout=harness.DEADLINE_S, stderr=subprocess.PIPE, cwd=self.server.directory)
            return done.returncode, done.stderr.decode()

        def rights(*resources):
            return [key("admin", "admin-key", (list(resources), ["GET"]))]
        status, text = check(ApiKeys=rights("Shop.Person", "Svc.Admin.Webhok"))
        self.assertEqual(status, 2, text)
        self.assertIn("ApiKeys[0].AllowAccess[0].Resources[1]: there is no built-in resource "
                      "'svc.admin.webhok'", text)
        self.assertEqual(check(ApiKeys=rights("Svc.Nothing.*"))[0], 2)
        status, text = check(ApiKeys=rights("Shop.Persn"))
        self.assertEqual(status, 0, text)
        self.assertIn("'shop.persn', which the configuration does not declare", text)
        status, text = check(ApiKeys=rights("*", "Svc.*", "Svc.Admin.*", "Svc.Echo", "Shop.*", "Shop.Person"))
        self.assertEqual((status, text), (0, ""))
        for origin in ("https://a.example/", "not a url", "a.example", "https://", "null", ""):
            status, text = check(AllowedCorsOrigins=["https://a.example:8443", origin])
            self.assertEqual(status, 2, origin)
            self.assertIn("AllowedCorsOrigins[1]", text)
        for path in ("/a b", "a", "/a/", "/a//b", "/a/../b", "/a?b", "/%61", ""):
            status, text = check(BasePath=path)
            self.assertEqual(status, 2, path)
            self.assertIn("BasePath", text)
        self.assertEqual(check(BasePath="/hooks/v1.0")[0], 0)
        for host in ("a.example:80", "http://a.example", "[::1]", "", "*"):
            status, text = check(Hosts=["::1", host])
            self.assertEqual(status, 2, host)
            self.assertIn("Hosts[1]", text)
        status, text = check(Listen=["0.0.0.0:8080"])
        self.assertEqual(status, 2)
        self.assertIn("RequireApiKey: must be true to listen on 0.0.0.0:8080", text)


class Names(harness.ServerCase):
    """What is declared changes nothing of what built-in resources are called."""

    def test_a_declaration_catches_nothing(self):
        for name in ("Admin.Webhook", "admin.webhook"):
            answer = self.post("/Svc.Admin.Resource", {"Name": name, "Kind": "EntityResource"})
            self.assertEqual(answer.status, 400, name)
            self.assertIn("'Svc.Admin.Webhook'", answer.json()["detail"])
        for name in ("X.Echo", "X.Admin.Webhook", "Webhooks.Webhook"):
            self.created("/Svc.Admin.Resource", {"Name": name, "Kind": "EntityResource"})
        self.assertEqual(self.get("/echo/a=1").json(), [{"a": 1}])
        self.assertEqual(self.server.request("OPTIONS", "/webhook").json()[0]["Resource"],
                         "Svc.Admin.Webhook")
        self.assertEqual(self.server.request("OPTIONS", "/Admin.Webhook").json()[0]["Resource"],
                         "Svc.Admin.Webhook")
        self.assertEqual(self.server.request("OPTIONS", "/x.echo").json()[0]["Resource"], "X.Echo")


class Terminals(harness.ServerCase):
    """Nobody moves the cursor of who reads what was stored."""

    def test_dumps_hold_no_controls(self):
        text = "a\x9b2Jb\u202ec\u2066d\x7f"
        self.created("/Shop.Message", json.dumps({"Text": text}, ensure_ascii=False))
        self.assertEqual(self.server.stop(), 0)
        tool = os.path.join(os.path.dirname(harness.SVCD), "svc-journal")
        dump = subprocess.run([tool, "dump", self.server.data], stdout=subprocess.PIPE, timeout=harness.DEADLINE_S,
                              check=True).stdout.decode()
        self.assertFalse([c for c in dump if c in text and not c.isalnum()])
        self.assertIn(r"a\u009b2Jb\u202ec\u2066d\u007f", dump)
        lines = [json.loads(line) for line in dump.splitlines()]
        self.assertTrue([line for line in lines if "Shop.Message" in json.dumps(line)
                         and text in json.dumps(line, ensure_ascii=False).replace("\\u007f", "\x7f")])


if __name__ == "__main__":
    unittest.main()

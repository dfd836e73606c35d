"""svc, the command line: each command against the server, what scripts and people are shown, keys,
exit statuses. `listen` and `events tail` are in test_listen."""
import base64
import hashlib
import hmac
import json
import os
import pty
import re
import socket
import subprocess
import threading
import time
import unittest

import harness
import svc

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def sign(body, age_s=0, event_id="event-1", secret=SECRET):
    timestamp = str(int(time.time()) - age_s)
    key = base64.b64decode(secret.removeprefix("whsec_"))
    digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)
    return {"webhook-id": event_id, "webhook-timestamp": timestamp,
            "webhook-signature": "v1," + base64.b64encode(digest).decode()}


class Interface(svc.SvcCase):
    """get, report, delete, post, patch, put."""

    def test_what_the_server_said(self):
        out, _ = self.svc("post", "/Shop.Person", "--data", '{"Name":"Ada Lovelace","Age":36}', "--json")
        person = json.loads(out)[0]
        self.assertEqual((person["Name"], person["Age"]), ("Ada Lovelace", 36))
        self.assertEqual(self.svc("get", "Shop.Person/Name=Ada Lovelace", "--json")[0].encode(),
                         self.get("/Shop.Person/Name=Ada%20Lovelace").body + b"\n")
        self.assertEqual(self.svc_json("patch", f"/Shop.Person/Id={person['Id']}", "--data", '{"Age":37}')[0]["Age"], 37)
        self.assertEqual(self.svc_json("put", "/Shop.Person/Name=Bob", "--data", '{"Name":"Bob"}')[0]["Name"], "Bob")
        self.assertEqual(self.svc_json("report", "/Shop.Person"), [{"Count": 2}])
        self.svc("delete", "/Shop.Person/Name=Bob", "--json")
        self.assertEqual(self.svc("get", "/Shop.Person/Name=Bob", "--json")[0], "[]\n")

    def test_what_people_are_shown(self):
        out, _ = self.svc("post", "/Shop.Person", "--data", '[{"Name":"Ada","Age":36},{"Name":"Grace","Age":85}]')
        self.assertEqual(out.splitlines()[-1], "2 entities inserted into 'Shop.Person'")
        self.assertEqual(self.svc("get", "/Shop.Person/_/order_asc=Name&select=Name,Age")[0],
                         "Name   Age\nAda     36\nGrace   85\n")
        self.assertEqual(self.svc("get", "/Shop.Person/Name=Ada/select=Name,Age")[0], "Name  Ada\nAge   36\n")
        self.assertEqual(self.svc("report", "/Shop.Person")[0], "2\n")
        self.assertEqual(self.svc("delete", "/Shop.Person/Name=Ada")[0], "1 entity deleted from 'Shop.Person'\n")
        out, errors = self.svc("get", "/Shop.Person/Name=None")
        self.assertEqual((out, errors), ("", "nothing was found\n"))

    def test_numbers_stay_what_they_are(self):
        text = '{"a":12345678901234567890,"b":1.10}'
        self.svc("post", "/Shop.Message", "--data", text)
        self.assertIn('"a":12345678901234567890,"b":1.10', self.svc("get", "/Shop.Message", "--json")[0])
        self.assertIn("1.10", self.svc("get", "/Shop.Message")[0])

    def test_bodies(self):
        path = self.path("body.json", '{"Name":"of a file"}')
        self.svc("post", "/Shop.Person", "--data", "@" + path)
        self.svc("post", "/Shop.Person", "--data", "@-", stdin=b'{"Name":"of a pipe"}')
        self.assertEqual([person["Name"] for person in self.get("/Shop.Person").json()], ["of a file", "of a pipe"])
        _, errors = self.svc("post", "/Shop.Person", "--data", "@/none", status=svc.MISUSE)
        self.assertIn("/none: No such file", errors)

    def test_operators_and_what_is_not_ascii(self):
        self.created("/Shop.Person", [{"Name": "Zoé & co", "Age": 5}, {"Name": "b", "Age": 50}])
        self.assertEqual([p["Age"] for p in self.svc_json("get", "/Shop.Person/Age>=40")], [50])
        self.assertEqual([p["Age"] for p in self.svc_json("get", "/Shop.Person/Name=Zoé %26 co")], [5])
        self.assertEqual([p["Age"] for p in self.svc_json("get", "/Shop.Person/Age>1&Age<9")], [5])

    def test_nothing_in_an_array(self):
        """The query form is answered [] where there is nothing."""
        self.assertEqual(self.svc("get", "/Shop.Person?limit=1"), ("", "nothing was found\n"))
        self.assertEqual(self.svc("get", "/Shop.Person?limit=1", "--json")[0], "[]\n")
        self.assertEqual(self.svc("post", "/Shop.Person", "--data", "[]")[0], "0 entities inserted into 'Shop.Person'\n")

    def test_bytes_come_as_they_are(self):
        self.assertEqual(self.svc("get", "/Shop.Terms")[0].rstrip("\n"),
                         self.get("/Shop.Terms").body.decode().rstrip("\n"))
        self.assertIn("svc_requests_total", self.svc("get", "Svc.Metrics")[0])

    def test_refusals_in_the_servers_words(self):
        out, errors = self.svc("get", "/Nothing", status=svc.REFUSED)
        self.assertEqual((out, errors), ("", "svc: Svc could not locate any resource by 'Nothing'. "
                                             "(404 UnknownResource)\n"))
        _, errors = self.svc("post", "/Shop.Person", "--data", '{"Nme":"x"}', status=svc.REFUSED)
        self.assertRegex(errors, r"Nme.*Name.*\(400 UnknownProperty\)")

    def test_there_are_more(self):
        self.created("/Shop.Message", [{"No": number} for number in range(3)])
        _, errors = self.svc("get", "/Shop.Message/_/limit=2")
        target = re.search(r"svc get '(\S+)'", errors).group(1)
        self.assertEqual([m["No"] for m in self.svc_json("get", target)], [2])


class Misuse(svc.SvcCase):
    shares_server = True
    compares_digest = False

    def test_misuse(self):
        for words, part in ((["gt"], "'gt'"), (["webhooks", "lst"], "is 'webhooks list' meant?"),
                            (["events"], "has to follow: tail, show, resend"),
                            (["events", "nope"], "there is no command 'events nope'"),
                            (["get"], "there is no URI; usage: svc get URI"),
                            (["explain", "x"], "there is no WEBHOOK-ID; usage"), (["get", "/a", "/b"], "unexpected /b"),
                            (["get", "/a", "--sign"], "it takes no --sign"), (["post", "/a"], "it needs --data"),
                            (["get", "/a", "--lable", "x"], "is --label meant?"),
                            (["get", "/a", "--key", "x"], "--key-file, SVC_KEY"),
                            (["get", "http://127.0.0.1/a"], "is a URL"),
                            (["get", "/a", "--url", "ftp://x"], "none of http://"),
                            (["get", "/a", "--url", "http://"], "No host"),
                            (["get", "/a", "--url", "http://a b"], "Bad hostname"),
                            (["get", "/a", "--url", "http://a:99999"], "Port number"),
                            (["get", "/a", "--url", "http://a/?b"], "has a '?' or '#'"),
                            (["get", "/a", "--url", "http://a/#b"], "has a '?' or '#'"),
                            (["get", "/a", "--url", "http://name:word@a"], "--key-file, SVC_KEY"),
                            (["get", "/a", "--url", "unix:"], "names no socket"),
                            (["listen", "--forward", "localhost:3000"], "--forward: 'localhost:3000' begins with neither"),
                            (["listen", "--forward", "http://"], "--forward 'http://': No host"),
                            (["keys", "add", "n", "--allow", "all"], "is not RESOURCES:METHODS"),
                            (["replay", "--webhook", "w"], "it needs --since"),
                            (["sink", "--port", "x"], "--port: 'x'"), (["sink", "--fail", "101"], "from 0 to 100"),
                            (["verify", "--secret", "x"], "begins with"),
                            (["import", "/none"], "/none")):
            out, errors = self.svc(*words, status=svc.MISUSE)
            self.assertEqual(out, "")
            self.assertIn(part, errors)

    def test_no_command_is_a_misuse_that_helps(self):
        self.assertIn("webhooks list", self.svc(status=svc.MISUSE)[0])

    def test_not_reached(self):
        _, errors = self.svc("get", "/a", "--url", "http://127.0.0.1:1", status=svc.NOT_REACHED)
        self.assertRegex(errors, "http://127.0.0.1:1 is not reached: .*connect")
        _, errors = self.svc("get", "/a", "--url", "unix:/none", status=svc.NOT_REACHED)
        self.assertIn("unix:/none is not reached", errors)

    def test_what_is_closed_is_an_error(self):
        """Nobody reads what is printed."""
        reading, writing = os.pipe()
        os.close(reading)
        process = subprocess.run([svc.SVC, "get", "/Svc.AvailableResource"], stdout=writing, check=False,
                                 stderr=subprocess.PIPE, env=self.environment(), timeout=harness.DEADLINE_S)
        os.close(writing)
        self.assertEqual((process.returncode, process.stderr), (svc.REFUSED, b""))

    def test_what_cannot_be_written_is_told(self):
        for words in (["get", "/Svc.AvailableResource"], ["help"]):
            with open("/dev/full", "wb") as full:
                process = subprocess.run([svc.SVC, *words], stdout=full, check=False, stderr=subprocess.PIPE,
                                         env=self.environment(), timeout=harness.DEADLINE_S)
            self.assertEqual((process.returncode, process.stderr),
                             (svc.REFUSED, b"svc: what is printed cannot be written: No space left on device\n"))


class BasePath(svc.SvcCase):
    def make_config(self):
        return {**harness.load_config(harness.SHOP), "BasePath": "/api"}

    def settle(self):
        pass

    def test_below_a_base_path(self):
        for url in (self.url() + "/api", self.url() + "/api/"):
            names = [r["Name"] for r in self.svc_json("get", "/Svc.AvailableResource", "--url", url)]
            self.assertIn("Shop.Person", names)


class UnixSocket(svc.SvcCase):
    def prepare(self):
        self.server.listen = ["127.0.0.1:0", "unix:" + os.path.join(self.server.directory, "socket")]

    def test_a_unix_socket(self):
        url = "unix:" + os.path.join(self.server.directory, "socket")
        self.assertTrue(self.svc_json("get", "/Svc.AvailableResource", "--url", url))


class Keys(svc.SvcCase):
    shares_server = True
    compares_digest = False

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config.update(RequireApiKey=True, ApiKeys=[
            {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(),
             "AllowAccess": [{"Resources": ["*"], "Methods": methods}]}
            for name, methods in (("root-key", ["*"]), ("reader-key", ["GET"]))])
        return config

    def test_where_a_key_comes_from(self):
        _, errors = self.svc("get", "/Shop.Person", status=svc.REFUSED)
        self.assertIn("(401 NotSignedIn)", errors)
        self.svc("get", "/Shop.Person", SVC_KEY="root-key")
        path = self.path("key", "root-key\n")
        self.svc("get", "/Shop.Person", "--key-file", path)
        self.svc("get", "/Shop.Person", "--key-file", path, SVC_KEY="wrong")
        self.path(".config/svc/config.json", json.dumps({"Url": self.url(), "Key": "root-key"}))
        self.svc("get", "/Shop.Person", SVC_URL="")
        _, errors = self.svc("get", "/Shop.Person", SVC_KEY="wrong", status=svc.REFUSED)
        self.assertIn("401", errors)
        self.path("other/svc/config.json", json.dumps({"Key": "wrong"}))
        self.svc("get", "/Shop.Person", XDG_CONFIG_HOME=os.path.join(self.home, "other"), status=svc.REFUSED)

    def test_files_that_others_may_read(self):
        path = self.path("key", "root-key", 0o640)
        _, errors = self.svc("get", "/Shop.Person", "--key-file", path, status=svc.MISUSE)
        self.assertIn(f"{path}: others may read the key in it", errors)
        path = self.path(".config/svc/config.json", '{"Key":"root-key"}', 0o604)
        _, errors = self.svc("get", "/Shop.Person", status=svc.MISUSE)
        self.assertIn(f"{path}: others may read the key in it", errors)
        self.path(".config/svc/config.json", json.dumps({"Url": self.url()}), 0o644)  # no key is in it
        self.svc("get", "/Shop.Person", SVC_URL="", SVC_KEY="root-key")

    def test_bad_files(self):
        for text, part in (("{", "config.json"), ("[]", "is no JSON object"), ('{"Kye":"x"}', "'Kye'"),
                           ('{"Key":1}', "Key: is no text"), ('{"Key":"a b"}', "blanks")):
            self.path(".config/svc/config.json", text)
            _, errors = self.svc("get", "/Shop.Person", status=svc.MISUSE)
            self.assertIn(part, errors)
        _, errors = self.svc("get", "/Shop.Person", "--key-file", self.path("empty", "\n"), status=svc.MISUSE)
        self.assertIn("empty: is empty", errors)

    def test_no_key_is_shown_to_others(self):
        """Not in the words of the process, while it waits for its answer."""
        with socket.create_server(("127.0.0.1", 0)) as silent:
            command = self.background("get", "/a", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}",
                                      "--key-file", self.path("key", "root-key"))
            connection, _ = silent.accept()
            with connection:
                self.assertIn(b"Authorization: apikey root-key\r\n", connection.recv(4096))
                with open(f"/proc/{command.process.pid}/cmdline", "rb") as file:
                    self.assertNotIn(b"root-key", file.read())

    def test_add_list_delete(self):
        def keys(*words, **options):
            return self.svc("keys", *words, SVC_KEY="root-key", **options)
        out, errors = keys("add", "portal", "--tenant", "acme", "--expires", "30d", "--allow",
                           "Shop.*,Svc.Event:GET,POST", "Svc.Metrics:GET")
        self.assertRegex(out, r"^svck_[\w-]{43}\n$")
        self.assertIn("which is not shown again", errors)
        self.svc("get", "/Svc.Event", SVC_KEY=out.strip())
        self.assertRegex(keys("list")[0], r"portal +acme +Shop.\*,Svc.Event:GET,POST  Svc.Metrics:GET")
        listed = {key["Name"]: key for key in json.loads(keys("list", "--json")[0])}
        self.assertEqual(listed["portal"]["AllowAccess"],
                         [{"Resources": ["Shop.*", "Svc.Event"], "Methods": ["GET", "POST"]},
                          {"Resources": ["Svc.Metrics"], "Methods": ["GET"]}])
        days = (time.mktime(time.strptime(listed["portal"]["ExpiresAt"][:19], "%Y-%m-%dT%H:%M:%S")) - time.time()) / 86400
        self.assertAlmostEqual(days, 30, delta=1.1)
        self.assertEqual(json.loads(keys("add", "more", "--allow", "*:*", "--json")[0])[0]["Key"][:5], "svck_")
        _, errors = keys("add", "portal", "--tenant", "acme", "--allow", "*:*", status=svc.REFUSED)
        self.assertIn("409 Conflict", errors)
        self.assertIn("1 entity deleted", keys("delete", "portal")[0])
        self.svc("get", "/Svc.Event", SVC_KEY=out.strip(), status=svc.REFUSED)
        self.assertIn("0 entities deleted", keys("delete", "portal")[0])

    def test_an_example_without_the_right_to_declarations(self):
        self.svc("keys", "add", "raiser", "--allow", "Svc.Event:*", "Shop.*:*", SVC_KEY="root-key")
        key = self.svc("keys", "add", "other", "--allow", "Svc.Event:*", "Shop.*:*", SVC_KEY="root-key")[0].strip()
        self.assertIn("an example: {}", self.svc("trigger", "OrderPlaced", SVC_KEY=key)[1])


class Events(svc.SvcCase):
    shares_server = True

    def test_trigger(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.PersonCreated/Age>0&Born>2020-01-01")
        out, errors = self.svc("trigger", "personcreated")
        self.assertRegex(out, r"^[0-9a-f-]{36}  Shop.PersonCreated  matched 1 webhook\n$")
        self.assertIn('an example: {"Name":"Name","Email":"Email","Age":1,"Born":', errors)
        self.assertEqual(receiver.take().json()[0]["Age"], 1)

    def test_trigger_with_data(self):
        event = self.svc_json("trigger", "Shop.OrderPlaced", "--data", '{"Total": 1.10}')[0]
        self.assertEqual(self.get(f"/Svc.Event/Id={event['Id']}").body.count(b'"Total": 1.10'), 1)
        event = self.svc_json("trigger", "ReportReady", "--data", "@" + self.path("x.pdf", "%PDF-1.4"))[0]
        stored = self.get(f"/Svc.Event/Id={event['Id']}").json()[0]
        self.assertEqual((stored["ContentType"], base64.b64decode(stored["Payload"])), ("application/pdf", b"%PDF-1.4"))

    @harness.apart
    def test_what_cannot_be_triggered(self):
        _, errors = self.svc("trigger", "Nothing", status=svc.REFUSED)
        self.assertIn("there is no event resource 'Nothing'", errors)
        _, errors = self.svc("trigger", "ReportReady", status=svc.MISUSE)
        self.assertIn("application/pdf", errors)
        self.created("/Svc.Admin.Resource", {"Name": "Zoo.OrderPlaced", "Kind": "EventResource"})
        _, errors = self.svc("trigger", "OrderPlaced", status=svc.REFUSED)
        self.assertIn("could be Shop.OrderPlaced, Zoo.OrderPlaced", errors)

    def deliveries(self, event):
        return self.get(f"/Svc.Admin.Delivery/EventId={event['Id']}").json()

    def wait_for(self, event, state):
        harness.wait_until(lambda: {d["State"] for d in self.deliveries(event)} == {state}, state)

    def test_show_and_resend(self):
        receivers = [self.receiver(), self.receiver()]
        hooks = [self.webhook(Destination=r.url(), EventSelector="/Shop.OrderPlaced", Label=label)
                 for r, label in zip(receivers, ("one", "two"))]
        event = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})
        self.wait_for(event, "Delivered")
        out, _ = self.svc("events", "show", event["Id"])
        self.assertRegex(out, r"Payload +\[\{\"No\":1\}\]")
        for hook in hooks:
            self.assertRegex(out, rf"{hook['Id']}  Delivered +1  200")
        self.assertEqual(self.svc_json("events", "show", event["Id"])[0]["Id"], event["Id"])
        for receiver in receivers:
            receiver.take()
        self.assertIn("1 entity updated", self.svc("events", "resend", event["Id"], "--webhook", "two")[0])
        receivers[1].take()
        self.assertTrue(receivers[0].nothing())
        self.wait_for(event, "Delivered")
        self.svc("events", "resend", event["Id"])
        for receiver in receivers:
            self.assertEqual(receiver.take().headers["webhook-id"], event["Id"])
        _, errors = self.svc("events", "show", "01a20566-eb9d-7d66-882b-12a399fc333b", status=svc.REFUSED)
        self.assertIn("there is no event", errors)

    def test_explain(self):
        hook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced/Total>10&Name=x", Label="h")
        event = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 12, "Name": "y"}})
        out, _ = self.svc("explain", event["Id"], "h")
        self.assertIn("does not match", out)
        self.assertRegex(out, r"(?m)^Total>10 +12 +true$")
        self.assertRegex(out, r'(?m)^Name=x +"y" +false$')
        self.assertFalse(self.svc_json("explain", event["Id"], hook["Id"])[0]["Matches"])


class Webhooks(svc.SvcCase):
    def test_no_keys(self):
        self.assertEqual(self.svc("keys", "list"), ("", "there are no keys\n"))
        self.assertEqual(self.svc("keys", "list", "--json"), ("[]\n", ""))

    def test_add_list_show_delete(self):
        receiver = self.receiver()
        out, errors = self.svc("webhooks", "add", receiver.url(), "--events", "/Shop.OrderPlaced/Total>1",
                               "--label", "orders", "--sign")
        self.assertIn("1 entity inserted into 'Svc.Admin.Webhook'", out)
        secret = re.search(r"whsec_\S+", errors).group(0)
        self.svc("trigger", "OrderPlaced", "--data", '{"Total":2}')
        request = receiver.take()
        text = "".join(f"{name}: {value}\n" for name, value in request.headers.items()) + "\n" + request.body.decode()
        self.assertEqual(self.svc("verify", "--secret", secret, stdin=text.encode())[0], "good\n")
        self.assertRegex(self.svc("webhooks", "list")[0], r"[0-9a-f-]{36}  orders  Active  /Shop.OrderPlaced/Total>1")
        listed = self.svc_json("webhooks", "list")
        self.assertEqual([(h["Label"], h["Status"]["State"]) for h in listed], [("orders", "Active")])
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog").status == 200, "the attempt is logged")
        for name in ("orders", listed[0]["Id"]):
            out, _ = self.svc("webhooks", "show", name)
            self.assertRegex(out, r"Destination +http://")
            self.assertRegex(out, r"(?m)  200 +\d")
        self.assertEqual(self.svc_json("webhooks", "show", "orders")[0]["Label"], "orders")
        self.assertIn("1 entity deleted", self.svc("webhooks", "delete", "orders")[0])
        _, errors = self.svc("webhooks", "delete", "orders", status=svc.REFUSED)
        self.assertIn("there is no webhook 'orders'", errors)
        self.assertEqual(self.svc("webhooks", "list"), ("", "there are no webhooks\n"))

    def test_pause_and_resume(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced", Label="it's #1")
        self.svc("webhooks", "pause", "it's #1")
        self.assertTrue(self.get("/Svc.Admin.Webhook").json()[0]["IsPaused"])
        self.svc("webhooks", "resume", "it's #1")
        self.assertFalse(self.get("/Svc.Admin.Webhook").json()[0]["IsPaused"])

    def test_rotate(self):
        """The new secret signs. A server that makes none says so."""
        receiver = self.receiver()
        hook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Label="orders",
                            Signing={"Secrets": [SECRET]})
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={hook['Id']}", {"Signing": {"Rotate": True}})
        if answer.status != 200:
            _, errors = self.svc("webhooks", "rotate", "orders", status=svc.REFUSED)
            self.assertEqual(errors, f"svc: {answer.json()['detail']} ({answer.status} {answer.json()['ErrorCode']})\n")
            return
        out, _ = self.svc("webhooks", "rotate", "orders")
        self.svc("trigger", "OrderPlaced")
        request = receiver.take()
        text = "".join(f"{name}: {value}\n" for name, value in request.headers.items()) + "\n" + request.body.decode()
        self.assertRegex(self.svc("webhooks", "show", "orders")[0], r"Signing.Expires +\d{4}-\d\d-\d\d [\d:]{8}, .*null\n")
        for secret in (SECRET, out.splitlines()[-1]):
            self.svc("verify", "--secret", secret, stdin=text.encode())

    def test_a_label_of_two(self):
        for _ in range(2):
            self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced", Label="same")
        _, errors = self.svc("webhooks", "pause", "same", status=svc.REFUSED)
        self.assertIn("'same' is the name of 2 of them", errors)
        self.assertEqual([h["IsPaused"] for h in self.get("/Svc.Admin.Webhook").json()], [False, False])

    def test_many_are_listed_page_by_page(self):
        self.created("/Svc.Admin.Webhook", [
            {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced", "Label": f"w{number:04}"}
            for number in range(1201)])
        self.assertEqual(sorted(h["Label"] for h in self.svc_json("webhooks", "list")),
                         [f"w{number:04}" for number in range(1201)])

    def test_failing(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced", Label="bad")
        self.webhook(Destination=self.receiver().url(), EventSelector="/Shop.OrderPlaced", Label="good")
        self.svc("trigger", "OrderPlaced")
        harness.wait_until(lambda: self.svc_json("webhooks", "list", "--failing"), "it fails")
        self.assertEqual([h["Label"] for h in self.svc_json("webhooks", "list", "--failing")], ["bad"])
        harness.wait_until(lambda: "100%" in self.svc("webhooks", "list")[0], "the other one succeeds")
        self.assertRegex(self.svc("webhooks", "list", "--failing")[0], r" 0% +\d")

    def test_a_test(self):
        """It is sent to that webhook alone, with what its selector finds."""
        status = {"now": 204}
        receiver, other = self.receiver(lambda _: status["now"]), self.receiver()
        self.webhook(Destination=other.url(), EventSelector="/Shop.OrderPlaced")
        self.webhook(Destination=receiver.url(), Label="orders",
                     EventSelector="/Shop.OrderPlaced/Total>=100&Customer.Name.Length>5&Tags.*=blue&Kind!=null")
        out, _ = self.svc("webhooks", "test", "orders")
        self.assertRegex(out, r"^204  \d+ ms\n$")
        self.assertGreaterEqual(receiver.take().json()[0]["Total"], 100)
        status["now"] = 500
        _, errors = self.svc("webhooks", "test", "orders", status=svc.REFUSED)
        self.assertIn("the test failed: answered 500", errors)
        self.assertFalse(self.svc_json("webhooks", "test", "orders", status=svc.REFUSED)[0]["IsSuccess"])
        self.assertTrue(other.nothing())
        _, errors = self.svc("webhooks", "test", "orders", "--data", '{"Total":1}', status=svc.REFUSED)
        self.assertIn('its selector does not find {"Total":1}', errors)

    def test_a_test_of_nobody(self):
        self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.PersonCreated/Name.Length>10", Label="x")
        _, errors = self.svc("webhooks", "test", "x", status=svc.REFUSED)
        self.assertIn("the test failed", errors)


class Replay(svc.SvcCase):
    EVENTS = 2300  # more than two batches

    def dead(self):
        return self.server.request("REPORT", "/Svc.Admin.Delivery/State=Dead").json()[0]["Count"]

    def test_an_outage(self):
        hook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced", Label="orders",
                            Delivery={"RetrySchedule": [], "DisableAfterDays": 0, "MaxInFlight": 1024})
        other = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.PersonCreated",
                             Delivery={"RetrySchedule": []})
        self.created("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": n}} for n in range(self.EVENTS)])
        self.created("/Svc.Event", {"Resource": "Shop.PersonCreated", "Payload": {"Name": "x"}})
        harness.wait_until(lambda: self.dead() == self.EVENTS + 1, "all are dead")
        receiver = self.receiver()
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={hook['Id']}", {"Destination": receiver.url()})
        out, _ = self.svc("replay", "--webhook", "orders", "--since", "1h", "--dry-run")
        self.assertEqual(out, f"{self.EVENTS} deliveries would be sent again\n")
        self.assertTrue(receiver.nothing())
        self.assertEqual(self.svc_json("replay", "--webhook", "orders", "--since", "2099-01-01"), [{"Count": 0}])
        self.assertEqual(self.svc_json("replay", "--webhook", "orders", "--since", "1h", "--until", "1h"), [{"Count": 0}])
        out, _ = self.svc("replay", "--webhook", "orders", "--since", "1h")
        self.assertEqual(out, f"{self.EVENTS} deliveries sent again\n")
        seen = {receiver.take().json()[0]["No"] for _ in range(self.EVENTS)}
        self.assertEqual(seen, set(range(self.EVENTS)))
        harness.wait_until(lambda: self.dead() == 1, "the other webhook's is left")
        self.assertEqual(self.svc("replay", "--webhook", other["Id"], "--since", "1h", "--state", "Delivered")[0],
                         "0 deliveries sent again\n")

    def test_what_dies_again_is_sent_once(self):
        hook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced",
                            Delivery={"RetrySchedule": [], "DisableAfterDays": 0})
        self.created("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {"No": n}} for n in range(1500)])
        harness.wait_until(lambda: self.dead() == 1500, "all are dead")
        self.assertEqual(self.svc_json("replay", "--webhook", hook["Id"], "--since", "1d"), [{"Count": 1500}])
        harness.wait_until(lambda: self.dead() == 1500, "all are dead again")
        attempts = {d["Attempts"] for d in self.get("/Svc.Admin.Delivery").json()}
        self.assertEqual(len(attempts), 1)

    def test_bad_times(self):
        hook = self.webhook(Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced")
        _, errors = self.svc("replay", "--webhook", hook["Id"], "--since", "yesterday", status=svc.MISUSE)
        self.assertIn("--since: 'yesterday' is no time", errors)


class Transfer(svc.SvcCase):
    """export and import."""
    shares_server = True

    def fill(self):
        self.created("/Svc.Admin.Resource", [
            {"Name": "Zoo.Animal", "Kind": "EntityResource", "Properties": [{"Name": "Legs", "Type": "integer"}],
             "Events": {"Inserted": "Zoo.Born"}},
            {"Name": "Zoo.Born", "Kind": "EventResource", "Payload": {"Resource": "Zoo.Animal"}}])
        self.created("/Svc.Admin.ApiKey", {"Name": "portal", "AllowAccess": [{"Resources": ["*"], "Methods": ["GET"]}]})
        self.webhook(Label="zoo", Destination="http://127.0.0.1:1/", EventSelector="/Zoo.Born/Legs>2",
                     Headers={"Authorization": "Bearer of-the-receiver", "X-Kept": "yes"}, Signing={"Secrets": [SECRET]})

    def export(self):
        return self.svc("export")[0]

    def actions(self, out):
        return {row["Name"]: row["Action"] for row in out if row["Action"] != "unchanged"}

    @harness.apart
    def test_there_and_back(self):
        self.fill()
        exported = self.export()
        self.assertNotIn(SECRET, exported)
        self.assertNotIn("of-the-receiver", exported)
        document = json.loads(exported)
        self.assertEqual({name: len(rows) for name, rows in document.items()},
                         {"Resources": 8, "Keys": 1, "Webhooks": 1})
        path = self.path("export.json", exported)
        before = self.get("/Svc.Admin.Webhook").body
        self.assertEqual(self.actions(self.svc_json("import", path)), {})
        self.assertEqual(self.get("/Svc.Admin.Webhook").body, before)
        # To a server that has none of it.
        for resource in ("Webhook", "ApiKey"):
            self.server.request("DELETE", f"/Svc.Admin.{resource}/_/unsafe=true")
        self.server.request("DELETE", "/Svc.Admin.Resource/Name>Zoo/unsafe=true")
        out, _ = self.svc("import", path, "--dry-run")
        self.assertRegex(out, r"(?m)^webhook +zoo +create$")
        self.assertEqual(self.get("/Svc.Admin.Webhook").status, 204)
        out = self.svc_json("import", path)
        self.assertEqual(self.actions(out), {"Zoo.Animal": "created", "Zoo.Born": "created", "portal": "created",
                                             "zoo": "created"})
        self.assertEqual(self.export(), exported)
        new = {row["Name"]: row.get("New") for row in out}
        self.assertRegex(new["portal"]["Key"], "^svck_")
        self.assertEqual(set(new["zoo"]), {"Signing.Secrets.0", "Headers.Authorization"})
        self.assertRegex(new["zoo"]["Signing.Secrets.0"], "^whsec_")
        self.assertEqual(self.actions(self.svc_json("import", path)), {})

    def test_a_new_secret_signs(self):
        receiver = self.receiver()
        path = self.path("one.json", json.dumps({"Webhooks": [
            {"Label": "a", "Destination": receiver.url(), "EventSelector": "/Shop.OrderPlaced",
             "Signing": {"Secrets": ["*******"]}}]}))
        out, _ = self.svc("import", path)
        secret = re.search(r"new: webhook 'a' Signing.Secrets.0 (whsec_\S+)", out).group(1)
        self.svc("trigger", "OrderPlaced")
        request = receiver.take()
        text = "".join(f"{name}: {value}\n" for name, value in request.headers.items()) + "\n" + request.body.decode()
        self.svc("verify", "--secret", secret, stdin=text.encode())

    @harness.apart
    def test_what_differs_is_updated(self):
        self.fill()
        document = json.loads(self.export())
        document["Webhooks"][0].update(Destination="http://127.0.0.1:2/", Headers={"Authorization": "*******"})
        document["Keys"][0]["AllowAccess"] = [{"Resources": ["Zoo.*"], "Methods": ["*"]}]
        path = self.path("changed.json", json.dumps(document))
        self.assertEqual(self.actions(self.svc_json("import", path, "--dry-run")), {"zoo": "update", "portal": "update"})
        self.assertEqual(self.actions(self.svc_json("import", path)), {"zoo": "updated", "portal": "updated"})
        hook = self.get("/Svc.Admin.Webhook").json()[0]
        self.assertEqual((hook["Destination"], hook["Headers"]), ("http://127.0.0.1:2/", {"Authorization": "*******"}))
        self.assertEqual(self.actions(self.svc_json("import", path)), {})

    def test_webhooks_without_a_label(self):
        """Destination and selector tell them apart, several selectors too."""
        for selectors in (["/Shop.OrderPlaced"], ["/Shop.OrderPlaced", "/Shop.PersonCreated"]):
            self.webhook(Destination="http://127.0.0.1:1/", EventSelectors=selectors)
        path = self.path("export.json", self.export())
        self.assertEqual(self.actions(self.svc_json("import", path)), {})

    def test_not_reached(self):
        path = self.path("one.json", '{"Webhooks":[{"Label":"a"}]}')
        out, errors = self.svc("import", path, "--url", "http://127.0.0.1:1", status=svc.NOT_REACHED)
        self.assertEqual((out, len(errors.splitlines())), ("", 1))
        self.assertEqual(self.svc("import", self.path("none.json", "{}")), ("", "there is nothing in it\n"))

    def test_what_is_refused_is_told(self):
        path = self.path("bad.json", json.dumps({"Webhooks": [
            {"Label": "bad", "Destination": "ftp://x", "EventSelector": "/Shop.OrderPlaced"},
            {"Label": "good", "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced"}]}))
        out, _ = self.svc("import", path, status=svc.REFUSED)
        self.assertRegex(out, r"(?m)^webhook +bad +refused +Destination: ")
        self.assertRegex(out, r"(?m)^webhook +good +created$")

    def test_bad_files(self):
        for text, part in (("{", "bad.json: "), ("[]", "no JSON object"), ('{"Webhook":[]}', "'Webhook'"),
                           ('{"Keys":{}}', "Keys: is no array"), ('{"Keys":[1]}', "no object")):
            _, errors = self.svc("import", self.path("bad.json", text), status=svc.MISUSE)
            self.assertIn(part, errors)


class Sink(svc.SvcCase):
    shares_server = True

    def start(self, *words):
        sink = self.background("sink", "--port", "0", *words)
        sink.wait_error("listening on")
        self.port = int(re.search(r":(\d+)/", sink.errors[0]).group(1))
        return sink

    def ask(self, path="/", body=b"{}", headers=None, method="POST"):
        connection = harness.http.client.HTTPConnection("127.0.0.1", self.port, timeout=harness.DEADLINE_S)
        try:
            connection.request(method, path, body, headers or {})
            return connection.getresponse().status
        finally:
            connection.close()

    def test_it_prints_what_comes(self):
        sink = self.start()
        self.webhook(Destination=f"http://127.0.0.1:{self.port}/hook", EventSelector="/Shop.OrderPlaced")
        self.svc("trigger", "OrderPlaced", "--data", '{"Total":1.10}')
        harness.wait_until(lambda: any('[{"Total":1.10}]' in line for line in sink.lines), "it is printed")
        self.assertEqual(sink.lines[0], "<- POST /hook")
        self.assertIn("   Svc-event: Shop.OrderPlaced", sink.lines)
        self.assertEqual(sink.interrupt(), svc.DONE)

    def test_it_answers_as_the_path_asks(self):
        self.start()
        self.assertEqual([self.ask(path) for path in ("/", "/status/503", "/gone", "/slow/0", "/status/5")],
                         [200, 503, 410, 200, 200])
        self.assertEqual(self.ask("/", None, method="GET"), 200)

    def test_it_fails_as_often_as_it_is_told(self):
        self.start("--fail", "100")
        self.assertEqual({self.ask() for _ in range(20)}, {500})

    def test_some_fail(self):
        self.start("--fail", "50")
        self.assertEqual({self.ask() for _ in range(64)}, {200, 500})

    def test_it_verifies(self):
        sink = self.start("--verify", SECRET)
        self.assertEqual(self.ask(headers=sign(b"{}")), 200)
        self.assertEqual(self.ask(headers=sign(b"{ }")), 400)
        self.assertEqual(self.ask(headers=sign(b"{}", age_s=600)), 400)
        self.assertEqual(self.ask(), 400)
        def verdicts():
            return [line.split()[1] for line in sink.lines if line.startswith("   signature ")]
        harness.wait_until(lambda: len(verdicts()) == 4, "all are printed")
        self.assertEqual(verdicts(), ["good", "bad:", "bad:", "bad:"])
        with open(f"/proc/{sink.process.pid}/cmdline", "rb") as file:
            self.assertNotIn(SECRET.encode(), file.read())

    def test_for_scripts(self):
        sink = self.start("--json")
        self.ask("/a", b"x\x1b", {"A": "b"})
        request = json.loads(sink.wait_lines(1)[0])
        self.assertEqual((request["Method"], request["Path"], request["Body"], request["Status"]), ("POST", "/a", "x\x1b", 200))
        self.assertEqual(request["Headers"]["A"], "b")

    def test_requests_in_pieces_and_in_a_row(self):
        self.start()
        request = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
        with socket.create_connection(("127.0.0.1", self.port), timeout=harness.DEADLINE_S) as s:
            for byte in request:
                s.sendall(bytes([byte]))
            s.sendall(request * 2 + b"nonsense\r\n\r\n")
            received = b""
            while part := s.recv(4096):
                received += part
        self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", received), [b"200", b"200", b"200", b"400"])

    def test_a_port_that_is_taken(self):
        self.start()
        _, errors = self.svc("sink", "--port", str(self.port), status=svc.REFUSED)
        self.assertIn(f"127.0.0.1:{self.port}: Address already in use", errors)

    def test_no_cursor_is_moved(self):
        sink = self.start()
        self.ask("/", b"\x1b[2J\xff")
        harness.wait_until(lambda: any("\\u001b[2J\ufffd" in line for line in sink.lines), "controls are escaped")


class Verify(svc.SvcCase):
    shares_server = True
    compares_digest = False

    def text(self, headers, body=b"{}", first="POST /hook HTTP/1.1\r\n"):
        return (first + "".join(f"{n}: {v}\r\n" for n, v in headers.items()) + "\r\n").encode() + body

    def test_good_and_bad(self):
        good = self.text(sign(b"{}"))
        self.assertEqual(self.svc("verify", "--secret", SECRET, stdin=good)[0], "good\n")
        self.assertEqual(self.svc("verify", "--secret", "@" + self.path("secret", SECRET + "\n"), stdin=good)[0], "good\n")
        self.assertEqual(self.svc_json("verify", "--secret", SECRET, stdin=good), {"Good": True})
        for stdin, part in ((self.text(sign(b"{ }")), "no signature"), (self.text({}), "there is no webhook-id"),
                            (self.text(sign(b"{}", age_s=301)), "s old"),
                            (self.text(sign(b"{}", age_s=-330)), "ahead")):
            _, errors = self.svc("verify", "--secret", SECRET, stdin=stdin, status=svc.REFUSED)
            self.assertIn("bad: ", errors)
            self.assertIn(part, errors)

    def test_any_time(self):
        old = self.text(sign(b"{}", age_s=1000000))
        self.assertEqual(self.svc("verify", "--secret", SECRET, "--any-time", stdin=old)[0], "good\n")

    def test_content_length_says_where_the_body_ends(self):
        headers = {**sign(b"{}"), "Content-Length": "2"}
        self.svc("verify", "--secret", SECRET, stdin=self.text(headers, b"{}\n"))
        _, errors = self.svc("verify", "--secret", SECRET, stdin=self.text(headers, b"{"), status=svc.MISUSE)
        self.assertIn("Content-Length says 2", errors)

    def test_no_request(self):
        _, errors = self.svc("verify", "--secret", SECRET, stdin=b"hello", status=svc.MISUSE)
        self.assertIn("no empty line", errors)


class People(svc.SvcCase):
    """On a terminal: lines that fit, colours, none when NO_COLOR says so; in a pipe everything."""

    def fill(self):
        self.webhook(Label="日本 orders", Destination="http://127.0.0.1:1/" + "x" * 200, EventSelector="/Shop.OrderPlaced")

    def test_tables_fit(self):
        self.fill()
        for columns in (80, 120, 160):
            lines = self.on_terminal("webhooks", "list", columns=columns, NO_COLOR="1").splitlines()
            self.assertEqual(len(lines), 2)
            self.assertTrue(all(len(line) <= columns for line in lines), lines)
            self.assertIn("…", lines[1])
            self.assertRegex(lines[1], "^[0-9a-f-]{36}  ")
        self.assertNotIn("…", self.svc("webhooks", "list")[0])
        self.assertIn("x" * 200, self.svc("webhooks", "list")[0])

    def test_colours(self):
        self.fill()
        self.assertIn("\x1b[32mActive\x1b[0m", self.on_terminal("webhooks", "list"))
        self.assertNotIn("\x1b", self.on_terminal("webhooks", "list", NO_COLOR="1"))
        self.assertNotIn("\x1b", self.on_terminal("webhooks", "list", TERM="dumb"))
        self.assertNotIn("\x1b", self.svc("webhooks", "list")[0])
        self.assertNotIn("\x1b", self.on_terminal("webhooks", "list", "--json"))

    def test_long_values_go_on_below_themselves(self):
        self.fill()
        lines = self.on_terminal("webhooks", "show", "日本 orders", NO_COLOR="1").splitlines()
        self.assertTrue(all(len(line) <= 80 for line in lines), lines)
        start = next(index for index, line in enumerate(lines) if line.startswith("Destination"))
        self.assertRegex(lines[start + 1], "^ +x+$")

    def test_long_work_shows_how_far_it_is(self):
        path = self.path("many.json", json.dumps({"Webhooks": [
            {"Label": str(number), "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced"}
            for number in range(3)]}))
        controller, terminal = pty.openpty()
        with subprocess.Popen([svc.SVC, "import", path], stdout=subprocess.DEVNULL, stderr=terminal,
                              env=self.environment()) as process:
            os.close(terminal)
            self.assertEqual(process.wait(timeout=harness.DEADLINE_S), 0)
        shown = os.read(controller, 65536).decode()
        os.close(controller)
        self.assertEqual(re.findall(r"\d of \d", shown), ["0 of 3", "1 of 3", "2 of 3"])
        self.assertTrue(shown.endswith("\r\x1b[K"), shown)
        self.assertEqual(self.svc("import", path)[1], "")

    def test_no_cursor_is_moved(self):
        self.webhook(Label="\x1b[2J", Destination="http://127.0.0.1:1/", EventSelector="/Shop.OrderPlaced")
        self.assertNotIn("\x1b", self.on_terminal("webhooks", "list", NO_COLOR="1"))


class Together(unittest.TestCase):
    """Help, completion, manual and reference tell of the same commands and options."""

    def run_svc(self, *words):
        return subprocess.run([svc.SVC, *words], capture_output=True, text=True, check=True,
                              timeout=harness.DEADLINE_S).stdout

    known = {}
    asking = threading.Lock()

    def commands(self):
        """{name: (operands, options)} as help has them, which is asked once."""
        with self.asking:
            return self.known or self.ask_for_commands()

    def ask_for_commands(self):
        known = {}
        names = re.findall(r"^  ([a-z]+(?: [a-z-]+)?)(?: +|(?= [A-Z\[]))", self.run_svc("help"), re.M)
        for name in names:
            usage = re.search(r"usage: svc (.*)", self.run_svc("help", *name.split())).group(1)
            options = set(re.findall(r"--([a-z-]+)", usage))
            known[name] = (usage, options)
        self.known.update(known)
        return self.known

    def test_the_manual(self):
        text = read("docs", "svc.1")
        flat = re.sub(r"\\f[BIRP]|\\", "", text)
        usages = re.findall(r"^\.B svc (.*)$", flat, re.M)
        self.assertEqual(sorted(usages), sorted(usage for usage, _ in self.commands().values()))
        for part in ("EXIT STATUS", "SVC_URL", "SVC_KEY", "NO_COLOR", "config.json"):
            self.assertIn(part, flat)

    def test_the_reference(self):
        rows = re.findall(r"^\| `svc ([^`]*)` \|", read("docs", "reference", "svc.md"), re.M)
        self.assertEqual(sorted(row.replace("\\", "") for row in rows),
                         sorted(usage for usage, _ in self.commands().values()))

    def test_help_of_a_group(self):
        known = self.commands()
        for group in ("events", "webhooks", "keys", "cluster"):
            out = self.run_svc("help", group)
            self.assertEqual(out, self.run_svc(group, "--help"))
            named = set(re.findall(rf"^  {group} (\S+)", out, re.M))
            self.assertEqual(named, {name.split()[1] for name in known if name.startswith(group + " ")})

    def test_help_stands_in_columns(self):
        lines = [line for line in self.run_svc("help").splitlines() if line.startswith("  ")]
        gaps = {re.match(r"  \S.*?  +", line).end() for line in lines}
        self.assertEqual(len(gaps), 1, lines)

    def test_options_are_explained(self):
        known = self.commands()
        self.assertGreater(len(known), 30)
        reference = read("docs", "reference", "svc.md")
        for options in {option for _, options in known.values() for option in options}:
            self.assertIn(f"`--{options}", reference)

    def complete(self, *words):
        script = f"""source {ROOT}/tools/completion/svc
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _svc; printf '%s\\n' "${{COMPREPLY[@]}}\""""
        result = subprocess.run(["bash", "-c", script, "bash", "svc", *words], capture_output=True, text=True,
                                check=True, timeout=harness.DEADLINE_S)
        return set(result.stdout.split())

    def test_completion(self):
        self.assertEqual(read("tools", "completion", "svc"), self.run_svc("completion"))
        known = self.commands()
        self.assertEqual(self.complete(""), {name.split()[0] for name in known})
        for group in ("events", "webhooks", "keys", "cluster"):
            self.assertEqual(self.complete(group, ""),
                             {name.split()[1] for name in known if name.startswith(group + " ")})
        everywhere = {"--url", "--key-file", "--json", "--help"}
        for name, (_, options) in known.items():
            self.assertEqual(self.complete(*name.split(), "--"), {f"--{o}" for o in options} | everywhere, name)
        self.assertEqual(self.complete("webhooks", "re"), {"resume"})
        self.assertEqual(self.complete("--url", "http://x", "webhooks", "re"), {"resume"})
        self.assertEqual(self.complete("--json", "keys", ""), {"list", "add", "delete"})
        self.assertEqual(self.complete("help", ""), self.complete(""))
        self.assertEqual(self.complete("help", "keys", ""), {"list", "add", "delete"})
        self.assertEqual(self.complete("replay", "--state", "D"), {"Dead", "Delivered"})
        self.assertEqual(self.complete("replay", "--since", ""), set())

    def test_version(self):
        self.assertRegex(self.run_svc("version"), r"^svc \d+\.\d+\.\d+\n$")
        self.assertEqual(self.run_svc("--version"), self.run_svc("version"))


if __name__ == "__main__":
    unittest.main()

"""What the documents say is true: their examples run, their tables are those of the source."""
import base64
import glob
import hashlib
import hmac
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

import cluster
import harness

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SECRET_HEADERS = ["X-Auth-Token", "Api-Key"]
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
# Pages whose commands are run, each on a server of its own.
RUN = {"guide/cloudevents.md", "guide/first-webhook.md", "guide/many-customers.md", "reference/events.md", "reference/resources.md",
       "reference/webhooks.md", "operations/watch.md"}


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def find_header(name):
    """The contract of a module, whichever floor it stands in."""
    found = glob.glob(os.path.join(ROOT, "include", "*", name))
    assert len(found) == 1, (name, found)
    return read(os.path.relpath(found[0], ROOT))


def find_table(macro):
    """The header that defines a table."""
    for path in glob.glob(os.path.join(ROOT, "include", "*", "*.h")):
        text = read(os.path.relpath(path, ROOT))
        if f"#define {macro}(" in text:
            return text
    raise AssertionError(f"no header defines {macro}")


def pages():
    """All documents, as paths below docs."""
    docs = os.path.join(ROOT, "docs")
    return sorted(os.path.relpath(path, docs)
                  for path in glob.glob(os.path.join(docs, "**", "*.md"), recursive=True))


def table_rows(text, after):
    """The rows of the first table behind a line that begins with `after`, as lists of cells."""
    part = text[text.index("\n" + after):]
    rows = re.search(r"(?:^\|.*\n)+", part, re.M).group(0).splitlines()
    return [[cell.strip().strip("`") for cell in row.strip("|").split("|")] for row in rows[2:]]


def commands(text):
    """The curl commands of indented blocks, which may go on over several lines inside of quotes."""
    block = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    "))
    return re.findall(r"^curl (?:[^'\n]|'[^']*')*", block, re.M)


def fenced(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


class Commands(harness.ServerCase):
    def run_commands(self, found, headers=None):
        receiver = self.receiver()
        key = ""
        for command in found:
            command = command.replace("<key>", key)
            command = command.replace("localhost:8080", f"127.0.0.1:{self.server.port}")
            command = command.replace("localhost:8081", f"127.0.0.1:{receiver.port}")
            command = command.replace("https://example.com/", "http://127.0.0.1:9/")
            command = command.replace("localhost:8082", "127.0.0.1:9")
            if "<id>" in command:
                command = command.replace("<id>", self.webhook_id())
            result = subprocess.run(command + " -sS -w '\\n%{http_code}'", shell=True,
                                    capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)
            self.assertRegex(result.stdout, r"\n2\d\d$", (command, result.stderr))
            made = re.search(r'"Key":"(svck_[^"]*)"', result.stdout)
            key = made.group(1) if made else key
            harness.wait_until(lambda: self.is_idle(headers), "what can be delivered is")
        return receiver

    def is_idle(self, headers):
        counts = [self.server.request("REPORT", f"/Svc.Admin.Delivery/State={state}", headers=headers).json()
                  for state in ("Pending", "InFlight")]
        return counts == [[{"Count": 0}]] * 2

    def webhook_id(self):
        answer = self.get("/Svc.Admin.Webhook/_/limit=1")
        if answer.status == 200:
            return answer.json()[0]["Id"]
        return self.webhook(Destination=self.receiver().url(), EventSelector="/Shop.OrderPlaced")["Id"]

    def run_page(self, page, at_least):
        found = commands(read("docs", page))
        self.assertGreaterEqual(len(found), at_least)
        return self.run_commands(found)

    def test_readme(self):
        found = commands(read("README.md").split("## Use it")[1].split("##")[0])
        self.assertGreaterEqual(len(found), 4)
        self.run_commands(found)

    def test_first_webhook(self):
        """The events that the page raises arrive: two as they are raised, one when it is sent again."""
        receiver = self.run_page("guide/first-webhook.md", 15)
        requests = [receiver.take() for _ in range(3)]
        self.assertEqual([request.json()[0]["Name"] for request in requests],
                         ["Ada Lovelace", "Grace Brewster Hopper", "Mary Somerville"])
        shown = re.search(r"^<- POST /hook\n(.*?)\n\n", read("docs", "guide", "first-webhook.md"), re.M | re.S)
        self.assertEqual(re.findall(r"^ +([\w-]+):", shown.group(1), re.M), requests[0].headers.keys())
        self.assertTrue(receiver.nothing())

    def test_many_customers(self):
        """Each customer gets its own event."""
        found = commands(read("docs", "guide", "many-customers.md").split("\n# Your own")[1])
        self.assertGreaterEqual(len(found), 10)
        receiver = self.run_commands(found)
        request = receiver.take()
        self.assertEqual((request.path, request.json()[0]["Customer"]), ("/beta", "beta"))
        self.assertTrue(receiver.nothing())
        self.assertEqual(self.get("/Svc.Admin.Webhook/_/select=Label").json(),
                         [{"Label": "acme-orders"}, {"Label": "notices"}])

    def test_a_key_for_each_customer(self):
        page = read("docs", "guide", "many-customers.md").split("\n# Your own")[0]
        block, = fenced(page, "json")
        self.server.stop()
        self.server.config.update(json.loads(block))
        self.server.start()
        operator = {"Authorization": "apikey operator-key"}
        found = commands(page)
        self.assertGreaterEqual(len(found), 10)
        receiver = self.run_commands(found, operator)
        self.assertEqual(receiver.take().json(), [{"OrderNo": 17, "Total": 12.5}])
        self.assertTrue(receiver.nothing())
        webhook, = self.get("/Svc.Admin.Webhook", operator).json()
        self.assertEqual((webhook["Tenant"], webhook["Owner"], webhook["IsPaused"]), ("acme", "acme-2", False))
        self.assertEqual([key["Name"] for key in self.get("/Svc.Admin.ApiKey/Tenant=acme", operator).json()], ["acme-2"])

    def test_cloudevents(self):
        """What is raised before there is a webhook goes nowhere; what comes after does."""
        self.server.stop()
        self.server.config["CloudEventsSource"] = "https://events.example.com/shop"
        self.server.start()
        receiver = self.run_page("guide/cloudevents.md", 4)
        self.created("/Svc.Event", {"Resource": "Shop.Packed", "Payload": {"No": 3}})
        sent = receiver.take().json()
        self.assertEqual((sent["type"], sent["source"]), ("com.example.packed", "https://events.example.com/shop"))

    def test_events(self):
        self.run_page("reference/events.md", 1)

    def test_resources(self):
        self.run_page("reference/resources.md", 1)

    def test_webhooks(self):
        self.run_page("reference/webhooks.md", 1)
        complete = fenced(read("docs", "reference", "webhooks.md"), "json")
        self.assertEqual(len(complete), 1)
        self.created("/Svc.Admin.Webhook", json.loads(complete[0]))

    def test_watch(self):
        self.run_page("operations/watch.md", 3)

    def test_svc(self):
        """The commands of the page are done one after the other, in a home of their own."""
        block = "\n".join(line[4:] for line in read("docs", "reference", "svc.md").splitlines()
                          if line.startswith("    "))
        receiver = self.receiver()
        self.created("/Shop.Person", {"Name": "Ada Lovelace"})
        found = [command for command in re.findall(r"^svc (?:[^'\n]|'[^']*')*", block, re.M)
                 # One goes on for ever, the others need a cluster: test_listen, test_svc_cluster.
                 if not command.startswith(("svc listen", "svc cluster", "svc --url"))]
        self.assertGreaterEqual(len(found), 15)
        binaries = os.path.dirname(os.path.abspath(harness.SVCD))
        env = {"PATH": binaries + ":" + os.environ["PATH"], "HOME": self.server.directory,
               "SVC_URL": f"http://127.0.0.1:{self.server.port}"}
        for command in found:
            command = command.replace("localhost:8081", f"127.0.0.1:{receiver.port}")
            result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, env=env, check=False,
                                    timeout=harness.DEADLINE_S)
            self.assertEqual(result.returncode, 0, (command, result.stdout, result.stderr))
            self.assertTrue(result.stdout or result.stderr, command)

    def test_no_page_is_forgotten(self):
        self.assertEqual({page for page in pages() if commands(read("docs", page))}, RUN)


class KeysOfPages(harness.ServerCase):
    """Keys that pages propose can do what they are for."""

    def make_config(self):
        """As keys.md has it; each key is its name."""
        block, = [block for block in fenced(read("docs", "reference", "keys.md"), "json") if '"ApiKeys"' in block]
        keys = json.loads(block)["ApiKeys"]
        for key in keys:
            key["KeySha256"] = hashlib.sha256(key["Name"].encode()).hexdigest()
        return {**harness.load_config(harness.SHOP), "RequireApiKey": True, "ApiKeys": keys}

    def settle(self):
        pass

    def asked(self, key, method, target, body=None):
        return self.server.request(method, target, body, {"Authorization": f"apikey {key}"}).status

    def raises(self, key):
        return self.asked(key, "POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 1}})

    def test_keys(self):
        self.assertEqual(self.raises("shop"), 201)
        self.assertEqual(self.raises("integrations"), 403)
        self.assertEqual(self.asked("integrations", "POST", "/Svc.Admin.Webhook", {
            "Destination": "http://127.0.0.1:9/", "EventSelector": "/Shop.OrderPlaced"}), 201)
        self.assertEqual(self.asked("prometheus", "GET", "/Svc.Metrics"), 200)

    def test_deploy(self):
        """The first key that is made for an application."""
        command, = re.findall(r"^    svc (keys add .*)$", read("docs", "operations", "deploy.md"), re.M)
        svc = os.path.join(os.path.dirname(os.path.abspath(harness.SVCD)), "svc")
        made = subprocess.run([svc, *shlex.split(command.replace(" shop ", " made "))], capture_output=True, text=True, check=True,
                              timeout=harness.DEADLINE_S, env={
                                  "HOME": self.server.directory, "SVC_KEY": "operator",
                                  "SVC_URL": f"http://127.0.0.1:{self.server.port}"})
        self.assertEqual(self.raises(made.stdout.strip()), 201)


class Configurations(unittest.TestCase):
    def block_of(self, page):
        blocks = [block for block in fenced(read("docs", page), "json") if '"ApiKeys"' in block]
        self.assertEqual(len(blocks), 1)
        return blocks[0].replace("<hex>", "0" * 64)

    def check(self, page):
        with tempfile.TemporaryDirectory(prefix="svcd-test-") as directory:
            path = os.path.join(directory, "svcd.json")
            with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="utf-8") as file:
                file.write(self.block_of(page))
            result = subprocess.run([harness.SVCD, "--check", "--config", path, "--data", directory + "/data"],
                                    capture_output=True, text=True, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_keys(self):
        self.check("reference/keys.md")

    def test_deploy(self):
        self.check("operations/deploy.md")

    def test_specification(self):
        """Its defaults are those of the source."""
        self.check("specification.md")
        block = json.loads(self.block_of("specification.md"))
        defaults = dict(re.findall(r'X\(\w+, "(\w+)", (\d+),', find_header("limits.h") + find_table("RETENTIONS")))
        self.assertEqual(block["Limits"].pop("SecretHeaders"), SECRET_HEADERS)
        for name, value in [*block["Limits"].items(), *block["Retention"].items()]:
            self.assertEqual(str(value), defaults[name], name)


class Pictures(unittest.TestCase):
    def test_the_figures_are_those_of_the_table(self):
        result = subprocess.run([os.path.join(ROOT, "tools", "bench", "plot"), "--check"], check=False)
        self.assertEqual(result.returncode, 0, "draw it: tools/bench/plot")

    def test_the_table_has_the_figures_of_the_page(self):
        page = read("docs", "design", "performance.md").replace("\N{NO-BREAK SPACE}", " ")
        rows = [line.split("\t") for line in read("docs", "pictures", "figures.tsv").splitlines() if line.count("\t") > 3]
        self.assertGreater(len(rows), 8)
        for scenario, whose, _, median, *_ in rows[1:]:
            self.assertIn(f"{int(median):,}".replace(",", " "), page, (scenario, whose))


class Followers(harness.ServerCase):
    """What the guide follows a stream with."""

    def prepare(self):
        self.server.listen = [f"127.0.0.1:{cluster.free_port()}"]  # of its own, also while it is away

    def test_it_goes_on_where_it_was(self):
        code = re.search(r"```python\n(.*?)```", read("docs/guide/streams.md"), re.S).group(1)
        page = {}
        exec(code, page)  # pylint: disable=exec-used
        events = page["follow"](f"127.0.0.1:{self.server.port}", "/Svc.Event")
        raised = [self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": total}})
                  for total in (1, 2)]
        self.assertEqual([(name, event["Id"]) for _, name, event in (next(events), next(events))],
                         [("Shop.OrderPlaced", event["Id"]) for event in raised])
        self.server.kill()
        self.server.start()
        third = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 3}})
        self.assertEqual(next(events)[2]["Id"], third["Id"])
        events.close()


class Receivers(harness.ServerCase):
    """The receivers of the guide, with the real server and with forged requests."""

    def start(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                   env=dict(os.environ, WEBHOOK_SECRET=SECRET, PORT="0"))
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        found = re.fullmatch(r"listening on port (\d+)\n", process.stdout.readline())
        self.assertIsNotNone(found)
        self.lines = []
        threading.Thread(target=lambda: self.lines.extend(process.stdout), daemon=True).start()
        return int(found.group(1))

    def forge(self, port, event_id="event-1", age_s=0, secret=SECRET, body=b'[{"a":1}]', change=b""):
        """Posts what is signed as the server signs; returns the status."""
        timestamp = str(int(time.time()) - age_s)
        key = base64.b64decode(secret.removeprefix("whsec_"))
        digest = hmac.digest(key, f"{event_id}.{timestamp}.".encode() + body, hashlib.sha256)
        headers = {"webhook-id": event_id, "webhook-timestamp": timestamp, "Svc-event": "Shop.OrderPlaced",
                   "webhook-signature": "v1,bm9uZQ== v1," + base64.b64encode(digest).decode()}
        connection = harness.http.client.HTTPConnection("127.0.0.1", port, timeout=harness.DEADLINE_S)
        try:
            connection.request("POST", "/hook", body + change, headers)
            return connection.getresponse().status
        finally:
            connection.close()

    def attempts(self, secret, destination):
        """What an event that is signed with this secret is answered."""
        self.webhook(Destination=destination, EventSelector="/Shop.OrderPlaced",
                     Signing={"Secrets": [secret]}, Delivery={"RetrySchedule": []})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 12.5}})

        def find():
            answer = self.get("/Svc.Admin.WebhookLog/_/select=StatusCode")
            return answer.status == 200 and answer.json()
        found = harness.wait_until(find, "an entry of the log")
        self.server.request("DELETE", "/Svc.Admin.Webhook/_/unsafe=true")
        self.server.request("DELETE", "/Svc.Admin.WebhookLog/_/unsafe=true")
        return [entry["StatusCode"] for entry in found]

    def check(self, *command):
        port = self.start(*command)
        url = f"http://127.0.0.1:{port}/hook"
        self.assertEqual(self.attempts(SECRET, url), [204])
        harness.wait_until(lambda: self.lines, "the event is handled")
        event, _, entities = self.lines[0].partition(": ")
        self.assertEqual((event, json.loads(entities)), ("Shop.OrderPlaced", [{"Total": 12.5}]))
        self.assertEqual(self.attempts("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD", url), [400])
        self.assertEqual(self.forge(port, change=b" "), 400)
        self.assertEqual(self.forge(port, age_s=600), 400)
        self.assertEqual(self.forge(port, age_s=-600), 400)
        self.assertEqual(self.forge(port, secret="whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"), 400)
        self.assertEqual(len(self.lines), 1)
        self.assertEqual([self.forge(port), self.forge(port, age_s=200)], [204, 204])
        harness.wait_until(lambda: len(self.lines) == 2, "an event that comes twice is handled once")
        self.assertEqual(self.forge(port, "event-2"), 204)
        harness.wait_until(lambda: len(self.lines) == 3, "the next one is handled")

    def example(self, name):
        return os.path.join(ROOT, "docs", "examples", name)

    def test_python(self):
        self.check("python3", self.example("receiver.py"))

    def test_node(self):
        self.check("node", self.example("receiver.mjs"))

    def test_go(self):
        if shutil.which("go") is None:
            self.skipTest("go is not installed (package golang-go)")
        binary = os.path.join(self.server.directory, "receiver")
        result = subprocess.run([*harness.GO, "build", "-o", binary, self.example("receiver.go")], text=True,
                                env=dict(os.environ, **harness.GO_ENV), capture_output=True, timeout=600, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.check(binary)

    def test_ed25519(self):
        """The lines of the page, with a request of the server. Seed and public key are of RFC 8032, 7.1."""
        seed = bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
        public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     Signing={"Secrets": ["whsk_" + base64.b64encode(seed).decode()]})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 12.5}})
        request = receiver.take()
        version, _, signature = request.headers["webhook-signature"].partition(",")
        self.assertEqual(version, "v1a")
        given = [public, request.headers["webhook-id"], request.headers["webhook-timestamp"],
                 request.body.hex(), base64.b64decode(signature).hex()]
        lines = [block for block in fenced(read("docs", "guide", "receivers.md"), "js") if "PREFIX" in block]
        script = "const [publicKey, id, timestamp, body, signature] = process.argv.slice(-5).map(" \
            "(text, i) => [0, 3, 4].includes(i) ? Buffer.from(text, 'hex') : text);\n" \
            + lines[0] + "console.log(isGood);\n"
        path = os.path.join(self.server.directory, "verify.mjs")
        with open(path, "w", encoding="utf-8") as file:
            file.write(script)
        for arguments, expected in ((given, "true\n"), (given[:3] + ["00"] + given[4:], "false\n")):
            result = subprocess.run(["node", path, *arguments], capture_output=True, text=True, timeout=harness.DEADLINE_S,
                                    check=False)
            self.assertEqual(result.stdout, expected, result.stderr)

    def test_the_page_shows_them(self):
        page = read("docs", "guide", "receivers.md")
        for name, language in (("receiver.py", "python"), ("receiver.mjs", "js"), ("receiver.go", "go")):
            self.assertIn(f"```{language}\n" + read("docs", "examples", name) + "```\n", page)


class Tables(unittest.TestCase):
    def test_limits(self):
        source = re.findall(r'X\(\w+, "(\w+)", (\d+), [^,]+, [^,]+,\s*(?:\\\n\s*)?"(\w+)",',
                            find_header("limits.h"))
        documented = [tuple(row[:3])
                      for row in table_rows(read("docs", "reference", "configuration.md"), "`Limits`")]
        self.assertGreater(len(source), 10)
        source.append(("SecretHeaders", json.dumps(SECRET_HEADERS, separators=(",", ":")), "names, at most 32"))
        self.assertEqual(sorted(source), sorted(documented))

    def test_retention(self):
        source = re.findall(r'X\(\w+, "(\w+)", (\d+), "(\w+)"\)', find_table("RETENTIONS"))
        documented = [tuple(row[:3])
                      for row in table_rows(read("docs", "reference", "configuration.md"), "`Retention`")]
        self.assertGreater(len(source), 5)
        self.assertEqual(source, documented)

    def test_metrics(self):
        source = re.findall(r'X\(\w+, \w+, "(\w+)", "(\w+)", "([\w,]*)", "([^"]*)"\)',
                            re.sub(r"\s*\\\n\s*", " ", find_header("metrics.h")))
        documented = [(row[1], row[0], row[2].replace("`, `", ","), row[3])
                      for row in table_rows(read("docs", "reference", "metrics.md"), "`_other`")]
        self.assertGreater(len(source), 30)
        self.assertEqual(source, documented)

    def test_metrics_that_pages_name(self):
        known = {row[0] for row in table_rows(read("docs", "reference", "metrics.md"), "`_other`")}
        for page in pages():
            if page == "specification.md":
                continue
            for name in re.findall(r"\bsvc_[a-z_]+", read("docs", page)):
                self.assertIn(name.removesuffix("_bucket"), known, page)

    def test_reference(self):
        """Its tables are what svc-reference prints from those that the server works by."""
        tool = os.path.join(os.path.dirname(harness.SVCD), "svc-reference")
        printed = subprocess.run([tool], capture_output=True, text=True, timeout=harness.DEADLINE_S, check=True).stdout
        errors, resources = printed.split("\n\n", 1)
        self.assertGreater(errors.count("\n"), 30)
        self.assertIn("\n" + errors + "\n", read("docs", "reference", "errors.md"))
        reference = read("docs", "reference", "resources.md")
        self.assertEqual(reference[reference.index("### Svc."):], resources)

    def test_meanings_of_errors(self):
        page = read("docs", "reference", "errors.md")
        codes = {row[1] for row in table_rows(page, "`Svc.Admin.ErrorCode`")}
        self.assertGreater(len(codes), 30)
        self.assertEqual(codes, {row[0] for row in table_rows(page, "## What each means")})


class Specification(unittest.TestCase):
    sections = [int(number) for number in re.findall(r"^## (\d+)\. ", read("docs", "specification.md"), re.M)]

    def test_sections(self):
        self.assertEqual(self.sections, list(range(1, 17)))

    def test_citations(self):
        """Contracts and tests cite sections that there are."""
        for path in [path for folder in ("include", "src", "tests", "tools", "docs")
                     for path in glob.glob(os.path.join(ROOT, folder, "**"), recursive=True)]:
            if not os.path.isfile(path) or "__pycache__" in path:
                continue
            with open(path, encoding="utf-8", errors="replace") as file:
                text = re.sub(r"\n[ */#]*", " ", file.read())
            for number in re.findall(r"specification(?:\.md\)?\]?\S*|\]\(\S+\)),? sections? (\d+)", text):
                self.assertIn(int(number), self.sections, path)

    def test_error_codes(self):
        table = table_rows(read("docs", "specification.md"), "`Svc.Admin.ErrorCode` (GET")
        specified = {(row[1], row[2]) for row in table}
        source = re.findall(r'X\(ERR_\w+, "(\w+)", (-?\d+), \d+\)', find_header("err.h"))
        self.assertEqual(set(source) - specified, {("NoError", "-1")})


class Words(unittest.TestCase):
    def test_security(self):
        """The modules and files that it names exist, and the members."""
        page = read("docs", "operations", "security.md")
        places = [word for row in table_rows(page, "## What is checked where")
                  for word in re.findall(r"[\w.]+", row[2])]
        self.assertGreater(len(places), 20)
        for name in places:
            found = [glob.glob(os.path.join(ROOT, pattern))
                     for pattern in (f"src/*/{name}*.c", f"include/*/{name}.h", name)]
            self.assertTrue(any(found), name)
        words = re.findall(r"`([^`\n]+)`", page)
        for name in [word for word in words if re.match(r"(deploy|tools|tests|docs)/", word)]:
            self.assertTrue(glob.glob(os.path.join(ROOT, name)), name)
        configuration = read("docs", "reference", "configuration.md")
        members = [word for word in words if re.fullmatch(r"([A-Z][a-z]+){2,}(\.\w+)*", word)]
        self.assertGreater(len(members), 15)
        for member in members:
            self.assertIn(member.split(".")[-1], configuration)

    def test_architecture(self):
        """The floors are those that are built, and their modules are there."""
        table = table_rows(read("docs", "design", "architecture.md"), "| floor | modules")
        floors = [row[0] for row in table]
        built = re.search(r"floor_names = \[(.*?)\]", read("src", "meson.build"), re.S).group(1)
        if "rest" in built:
            self.assertEqual(floors, re.findall(r"'(\w+)'", built))
        for row in table:
            for name in re.findall(r"\w+", row[1].replace("res_`<name>", "").replace("res_<name>", "")):
                self.assertTrue(glob.glob(os.path.join(ROOT, "src", "*", name + "*.c")) or
                                glob.glob(os.path.join(ROOT, "include", "*", name + ".h")), name)

    def anchors(self, path):
        headings = re.findall(r"^#+ (.*)$", read(path), re.M)
        return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def test_links(self):
        for name in ["README.md", "SECURITY.md"] + ["docs/" + page for page in pages()]:
            for target in re.findall(r"\]\(([^)\s]+)\)", read(name)):
                if ":" in target:
                    continue
                file, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(name), file)) if file else name
                self.assertTrue(os.path.exists(os.path.join(ROOT, path)), f"{name} links to {target}")
                if anchor:
                    self.assertIn(anchor, self.anchors(path), f"{name} links to {target}")


if __name__ == "__main__":
    unittest.main()

"""The programs of docs/examples do what their first lines say, in each language. Receivers: test_docs."""
import functools
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import threading
import unittest

import cluster
import harness

EXAMPLES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "examples")
KEY = "the-application"
CONFIG = {"ApiKeys": [{"Name": "application", "KeySha256": hashlib.sha256(KEY.encode()).hexdigest(),
                       "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}],
          "Resources": [{"Name": "Shop.OrderPlaced", "Kind": "EventResource"},
                        {"Name": "Shop.OrderPaid", "Kind": "EventResource"}]}
binaries = tempfile.TemporaryDirectory(prefix="svc-examples-")
building = threading.Lock()


unittest.addModuleCleanup(binaries.cleanup)


def go(name):
    """The program, built once."""
    path = os.path.join(binaries.name, name)
    with building:
        if not os.path.exists(path):
            subprocess.run([*harness.GO, "build", "-o", path, os.path.join(EXAMPLES, name + ".go")], check=True,
                           timeout=600, env=dict(os.environ, **harness.GO_ENV))
    return [path]


LANGUAGES = {
    "python": lambda name: ["python3", os.path.join(EXAMPLES, name + ".py")],
    "node": lambda name: ["node", os.path.join(EXAMPLES, name + ".mjs")],
    "shell": lambda name: ["sh", os.path.join(EXAMPLES, name + ".sh")],
    "go": go,
}


class Following:
    """A program that goes on, and the lines that it prints."""

    def __init__(self, command, env):
        # In a group of its own: the shell's curl is to end with it.
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True)
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(iter(self.process.stdout.readline, "")),
                                       daemon=True)
        self.reader.start()

    def kill(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, 9)
        self.process.wait()
        self.reader.join(harness.DEADLINE_S)
        self.process.stdout.close()


class Examples(harness.ServerCase):
    config = CONFIG

    def each(self, name):
        for language, command in LANGUAGES.items():
            if shutil.which({"python": "python3", "shell": "sh"}.get(language, language)) is None:
                self.skipTest(f"{language} is not installed")
            with self.subTest(language):
                yield language, command(name)

    def url(self):
        return f"http://127.0.0.1:{self.server.port}"

    def environment(self, url, key):
        known = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        return dict(known, SVC_URL=url or self.url(), SVC_KEY=key)

    def run_example(self, command, *words, url=None, key=KEY):
        return subprocess.run([*command, *words], env=self.environment(url, key), capture_output=True, text=True,
                              timeout=harness.DEADLINE_S, check=False)

    def follow(self, command, *words, key=KEY):
        following = Following([*command, *words], self.environment(None, key))
        self.addCleanup(following.kill)
        return following

    def test_an_event_is_raised_once(self):
        for language, command in self.each("raise"):
            words = ("Shop.OrderPlaced", f"order-{language}", '{"Total":12.50}')
            first, second = self.run_example(command, *words), self.run_example(command, *words)
            self.assertEqual((first.returncode, second.returncode), (0, 0), first.stderr + second.stderr)
            events = self.get(f"/Svc.Event/ClientId=order-{language}").json()
            self.assertEqual([event["Payload"] for event in events], [[{"Total": 12.5}]])
            for result in (first, second):
                self.assertIn(events[0]["Id"], result.stdout)

    def test_what_is_refused_is_said(self):
        for _, command in self.each("raise"):
            for words, key, code in ((("Shop.None", "a", "{}"), KEY, "UnknownResource"),
                                     (("Shop.OrderPlaced", "a", "{}"), "wrong", "NotSignedIn")):
                result = self.run_example(command, *words, key=key)
                self.assertNotEqual(result.returncode, 0)
                self.assertIn(code, result.stdout + result.stderr)

    def test_what_may_have_arrived_is_sent_again(self):
        """An answer is lost, the next one is 503: the same request comes, until it is answered."""
        for _, command in self.each("raise"):
            answers = [harness.Receiver.Drop(), 503, (201, {"Content-Type": "application/json"},
                                                      b'[{"Id":"5f0c","Webhooks":3}]')]
            seen = []

            def script(request, answers=answers, seen=seen):
                seen.append(request)
                answer = answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer
            receiver = self.receiver(script)
            result = self.run_example(command, "Shop.OrderPlaced", "order-1", '{"Total":1}', url=receiver.url(""))
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("5f0c", result.stdout)
            self.assertEqual([(r.method, r.path, r.json()) for r in seen], [
                ("POST", "/Svc.Event", {"Resource": "Shop.OrderPlaced", "ClientId": "order-1",
                                        "Payload": {"Total": 1}})] * 3)
            self.assertEqual({r.headers["Authorization"] for r in seen}, {"apikey " + KEY})

    def test_all_pages_of_the_log(self):
        """More than two pages: each attempt once, oldest first; conditions are obeyed."""
        for i in range(30):
            self.webhook(Destination="/Svc.Echo" if i else "http://127.0.0.1:1/", Method="GET",
                         EventSelector="/Shop.OrderPlaced", Delivery={"RetrySchedule": []})
        for _ in range(4):
            answer = self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {}}] * 10)
            self.assertEqual(answer.status, 201, answer)
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.WebhookLog").json() == [{"Count": 1200}],
                           "all is logged")
        log = self.get("/Svc.Admin.WebhookLog/_/limit=1500").json()
        failed = [entry for entry in log if not entry["IsSuccess"]]
        self.assertEqual((len(log), len(failed)), (1200, 40))
        for language, command in self.each("page"):
            everything, failures = self.run_example(command), self.run_example(command, "IsSuccess=false")
            none = self.run_example(command, "StatusCode=299")
            refused = self.run_example(command, "Nothing=1")
            self.assertEqual((everything.returncode, failures.returncode, none.returncode, none.stdout), (0, 0, 0, ""),
                             everything.stderr + failures.stderr + none.stderr)
            self.assertNotEqual(refused.returncode, 0)
            self.assertEqual(self.times(language, everything.stdout), [entry["Time"] for entry in log])
            self.assertEqual(self.times(language, failures.stdout), [entry["Time"] for entry in failed])

    @staticmethod
    def times(language, text):
        """Of the attempts that were printed."""
        if language != "shell":
            return [line.split()[0] for line in text.splitlines()]
        decoder, found, at = json.JSONDecoder(), [], 0
        while at < len(text):
            page, at = decoder.raw_decode(text, at)
            found += [entry["Time"] for entry in page]
        return found

    def place(self, *numbers):
        for number in numbers:
            self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": number}})
            self.created("/Svc.Event", {"Resource": "Shop.OrderPaid", "Payload": {"No": number}})

    def wait_numbers(self, following, numbers):
        harness.wait_until(lambda: len(following.lines) >= len(numbers) or following.process.poll() is not None,
                           f"{numbers} are there")
        pairs = [line.rstrip("\n").split(" ", 1) for line in following.lines]
        self.assertEqual([(name, json.loads(data)["Payload"][0]["No"]) for name, data in pairs],
                         [("Shop.OrderPlaced", number) for number in numbers])

    def test_a_stream_without_a_gap(self):
        """The server is killed, then the program; what is raised while either is away comes later, once."""
        self.server.stop()
        self.server.listen = [f"127.0.0.1:{cluster.free_port()}"]  # of its own, also while it is away
        self.server.start()
        count = 0
        for language, command in self.each("follow"):
            words = (os.path.join(self.server.directory, f"last-{language}"), "Resource=Shop.OrderPlaced")
            self.place(count, count + 1)
            following = self.follow(command, *words)
            self.wait_numbers(following, range(count + 2))  # all that is kept
            self.place(count + 2)
            self.wait_numbers(following, range(count + 3))
            self.server.kill()
            self.server.start()
            self.place(count + 3, count + 4)
            self.wait_numbers(following, range(count + 5))
            # It was printed; the number is in the file a moment later.
            last = self.get("/Svc.Event/Resource=Shop.OrderPlaced/offset=-1").json()[0]["ObjectNo"]
            harness.wait_until(functools.partial(self.holds, words[0], last), "the last number is kept")
            following.kill()
            self.place(count + 5, count + 6)
            again = self.follow(command, *words)
            self.wait_numbers(again, range(count + 5, count + 7))
            self.place(count + 7)
            self.wait_numbers(again, range(count + 5, count + 8))
            again.kill()
            count += 8

    @staticmethod
    def holds(path, number):
        if not os.path.exists(path):
            return False
        with open(path, encoding="ascii") as file:
            return file.read() == str(number)

    def test_a_stream_that_is_refused_ends(self):
        for language, command in self.each("follow"):
            following = self.follow(command, os.path.join(self.server.directory, f"none-{language}"), key="wrong")
            self.assertNotEqual(following.process.wait(timeout=harness.DEADLINE_S), 0)
            self.assertEqual(following.lines, [])


if __name__ == "__main__":
    unittest.main()

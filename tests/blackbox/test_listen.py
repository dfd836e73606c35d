"""svc listen and svc events tail: events at a program on this desk, in order, signed, without a gap."""
import base64
import hashlib
import hmac
import json
import os
import re
import stat
import unittest

import harness
import svc


def verify(test, request, secret):
    """The request is what a webhook would have sent, signed with the secret."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    expected = "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
    test.assertEqual(request.headers["webhook-signature"], expected)


class ListenCase(svc.SvcCase):
    def setUp(self):
        super().setUp()
        self.relay = svc.Relay(self)
        self.addCleanup(self.relay.close)

    def url(self):
        return self.relay.url

    def listen(self, *words, command=("listen",)):
        before = len(self.relay.opened)
        listening = self.background(*command, *words)
        harness.wait_until(lambda: len(self.relay.opened) > before and self.relay.streams > 0 or
                           listening.process.poll() is not None, "it listens")
        self.assertIsNone(listening.process.poll(), listening.errors)
        return listening

    def place(self, number, resource="Shop.OrderPlaced", **members):
        return self.created("/Svc.Event", {"Resource": resource, "Payload": {"No": number, **members}})

    def numbers(self, receiver, count):
        return [receiver.take().json()[0]["No"] for _ in range(count)]


class Listen(ListenCase):
    shares_server = True

    def test_events_are_forwarded_in_order_and_signed(self):
        receiver = self.receiver()
        listening = self.listen("--forward", receiver.url("/desk"))
        listening.wait_error("signed with whsec_")
        secret = re.search(r"whsec_\S+", "\n".join(listening.errors)).group(0)
        events = [self.place(number) for number in range(20)]
        for number, event in enumerate(events):
            request = receiver.take()
            self.assertEqual((request.method, request.path), ("POST", "/desk"))
            self.assertEqual(request.json(), [{"No": number}])
            self.assertEqual(request.headers["webhook-id"], event["Id"])
            self.assertEqual(request.headers["Svc-event"], "Shop.OrderPlaced")
            self.assertEqual(request.headers["Content-Type"], "application/json")
            verify(self, request, secret)
        for line, event in zip(listening.wait_lines(20), events):
            self.assertRegex(line, rf"^\d\d:\d\d:\d\d  Shop.OrderPlaced  {event['Id']}  200  \d+ ms$")
        self.assertEqual(listening.interrupt(), svc.DONE)
        self.assertIn(f"--after {events[-1]['ObjectNo']} goes on here", listening.errors[-1])

    def test_bytes_are_forwarded_as_they_are(self):
        receiver = self.receiver()
        self.listen("--forward", receiver.url())
        content = b"%PDF-1.4 \x00\xff"
        answer = self.post("/Svc.Event/Resource=Shop.ReportReady", content, {"Content-Type": "application/pdf"})
        self.assertEqual(answer.status, 201)
        request = receiver.take()
        self.assertEqual((request.body, request.headers["Content-Type"]), (content, "application/pdf"))

    def test_nothing_is_left_out_when_the_connection_breaks(self):
        """Before the first event too: it knows where it began."""
        receiver = self.receiver()
        self.place(-1)  # what was raised before it began does not come
        listening = self.listen("--forward", receiver.url())
        self.relay.down = True
        self.relay.cut()
        for number in range(5):
            self.place(number)
        self.relay.down = False
        self.assertEqual(self.numbers(receiver, 5), list(range(5)))
        for number in range(5, 30):
            self.place(number)
            if number % 7 == 0:
                self.relay.cut()
        self.assertEqual(self.numbers(receiver, 25), list(range(5, 30)))
        self.assertTrue(receiver.nothing())
        self.assertTrue(any("it is tried again" in line for line in listening.errors), listening.errors)

    def test_nothing_is_left_out_when_none_was_kept(self):
        receiver = self.receiver()
        self.listen("--forward", receiver.url())
        self.relay.down = True
        self.relay.cut()
        self.place(0)
        self.relay.down = False
        self.assertEqual(self.numbers(receiver, 1), [0])

    def test_it_goes_on_when_the_server_restarts(self):
        receiver = self.receiver()
        listening = self.listen("--forward", receiver.url())
        self.place(0)
        self.assertEqual(self.numbers(receiver, 1), [0])
        listening.wait_lines(1)
        self.server.kill()
        harness.wait_until(lambda: self.relay.streams == 0, "the stream ends")
        self.server.start()
        self.place(1)
        self.assertEqual(self.numbers(receiver, 1), [1])
        self.assertEqual(len(listening.wait_lines(2)), 2)

    def test_it_goes_on_when_the_receiver_fails(self):
        def script(request):
            number = request.json()[0]["No"]
            if number == 1:
                raise harness.Receiver.Drop
            return 500 if number == 0 else 200
        receiver = self.receiver(script)
        listening = self.listen("--forward", receiver.url())
        for number in range(3):
            self.place(number)
        lines = listening.wait_lines(3)
        self.assertRegex(lines[0], r"  500  \d+ ms$")
        self.assertNotRegex(lines[1], r"  \d\d\d  \d+ ms$")
        self.assertRegex(lines[2], r"  200  \d+ ms$")
        receiver.close()
        self.assertEqual(listening.interrupt(), svc.DONE)

    def test_a_receiver_that_is_not_there(self):
        listening = self.listen("--forward", "http://127.0.0.1:1/")
        self.place(0)
        self.assertRegex(listening.wait_lines(1)[0], r"(?i)connect")
        self.assertIsNone(listening.process.poll())

    def test_selectors(self):
        """They mean what they mean in a webhook."""
        receiver = self.receiver()
        self.listen("--events", "/OrderPlaced/No>=3&Tags.*=blue", "/PersonCreated", "--forward", receiver.url())
        self.place(2, Tags=["blue"])
        self.place(3, Tags=["red"])
        self.place(4, Tags=["red", "blue"])
        self.created("/Shop.Person", {"Name": "Ada"})
        self.place(5, Tags=["blue"])
        self.assertEqual(receiver.take().json()[0]["No"], 4)
        self.assertEqual(receiver.take().headers["Svc-event"], "Shop.PersonCreated")
        self.assertEqual(receiver.take().json()[0]["No"], 5)
        self.assertTrue(receiver.nothing())

    def test_patterns(self):
        receiver = self.receiver()
        self.listen("--events", "/Shop.*", "--forward", receiver.url())
        self.place(1)
        self.created("/Shop.Person", {"Name": "Ada"})
        self.assertEqual([receiver.take().headers["Svc-event"] for _ in range(2)],
                         ["Shop.OrderPlaced", "Shop.PersonCreated"])

    def test_bad_selectors(self):
        _, errors = self.svc("listen", "--events", "/Nothing", status=svc.REFUSED)
        self.assertIn("there is no event resource 'Nothing'", errors)
        _, errors = self.svc("listen", "--events", "/PersonCreated/Nme=x", status=svc.REFUSED)
        self.assertIn("Nme", errors)

    def test_for_scripts(self):
        listening = self.listen("--json")
        events = [self.place(number) for number in range(3)]
        shown = [json.loads(line) for line in listening.wait_lines(3)]
        self.assertEqual([event["Id"] for event in shown], [event["Id"] for event in events])
        self.assertEqual(listening.interrupt(), svc.DONE)
        self.assertEqual(listening.errors, [])

    def test_it_goes_on_behind_an_event(self):
        events = [self.place(number) for number in range(3)]
        listening = self.listen("--json", "--after", str(events[0]["ObjectNo"]))
        shown = [json.loads(line)["Payload"][0]["No"] for line in listening.wait_lines(2)]
        self.assertEqual(shown, [1, 2])
        _, errors = self.svc("listen", "--after", "x", status=svc.MISUSE)
        self.assertIn("'x' is no ObjectNo", errors)

    def test_it_says_where_it_would_go_on(self):
        """Without an event too."""
        placed = self.place(0)
        listening = self.listen()
        self.assertEqual(listening.interrupt(), svc.DONE)
        self.assertIn(f"stopped; --after {placed['ObjectNo']} goes on here", listening.errors)

    def test_a_gap_is_told(self):
        self.relay.gap = {"From": 3, "To": 17}
        listening = self.listen("--after", "2")
        listening.wait_error("from ObjectNo 3 to 17 is no longer kept")
        self.place(1)
        listening.wait_lines(1)

    def test_the_secret_is_made_once(self):
        path = os.path.join(self.home, ".config", "svc", "listen.secret")
        said = []
        for _ in range(2):
            listening = self.listen("--forward", "http://127.0.0.1:1/")
            listening.wait_error("signed with")
            said.append(listening.errors[0])
            self.assertEqual(listening.interrupt(), svc.DONE)
        self.assertEqual(said[0], said[1])
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode), 0o700)
        os.chmod(path, 0o644)
        _, errors = self.svc("listen", "--forward", "http://127.0.0.1:1/", status=svc.MISUSE)
        self.assertIn("others may read the secret", errors)

    def test_a_secret_of_ones_own(self):
        receiver = self.receiver()
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        self.listen("--secret-file", self.path("secret", secret + "\n"), "--forward", receiver.url())
        self.place(0)
        verify(self, receiver.take(), secret)
        _, errors = self.svc("listen", "--secret-file", self.path("bad", "whsec_x"), "--forward", receiver.url(),
                             status=svc.MISUSE)
        self.assertIn("not base64", errors)

    def test_not_reached(self):
        self.svc("listen", "--url", "http://127.0.0.1:1", status=svc.NOT_REACHED)

    def test_tail(self):
        listening = self.listen(command=("events", "tail"))
        event = self.place(7)
        line = listening.wait_lines(1)[0]
        self.assertIn(event["Id"], line)
        self.assertIn('[{"No":7}]', line)
        self.assertEqual(listening.interrupt(), svc.DONE)


class Keys(ListenCase):
    """Where a key is needed, the stream needs it too."""

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config.update(RequireApiKey=True, ApiKeys=[
            {"Name": "all", "KeySha256": hashlib.sha256(b"right").hexdigest(),
             "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}])
        return config

    def environment(self, **more):
        return super().environment(**{"SVC_KEY": "right", **more})

    def post(self, target, body, headers=None):
        return super().post(target, body, {"Authorization": "apikey right", **(headers or {})})

    def test_a_right_key(self):
        receiver = self.receiver()
        self.listen("--forward", receiver.url())
        self.place(0)
        self.assertEqual(self.numbers(receiver, 1), [0])

    def test_a_wrong_key(self):
        _, errors = self.svc("listen", status=svc.REFUSED, SVC_KEY="wrong")
        self.assertIn("(401 NotSignedIn)", errors)


if __name__ == "__main__":
    unittest.main()

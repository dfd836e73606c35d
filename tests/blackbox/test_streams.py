"""Streams: what is raised and logged comes to whoever listens, once and in order, over slow clients, restarts and
kills; what has been forgotten is told of; keys, tenants and limits hold for each of them."""
import json
import os
import re
import random
import signal
import socket
import threading
import time
import unittest

import harness
from test_keys import key

EVERYTHING = ["*"], ["*"]
EVENT_STREAM = {"Accept": "text/event-stream"}


class Closed(Exception):
    """The server has ended the stream."""


class Stream:
    """A client that reads the answer byte by byte, as a browser's EventSource would."""

    def __init__(self, port, target="/Svc.Event", headers=None, version="1.1", before=b"", receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(harness.DEADLINE_S)
        self.socket.connect(("127.0.0.1", port))
        lines = [f"GET {target} HTTP/{version}", "Host: x", "Accept: text/event-stream"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        self.socket.sendall(before + ("\r\n".join(lines) + "\r\n\r\n").encode())
        self.bytes = b""
        self.text = b""
        self.comments = []
        self.ended_well = False
        for _ in range(1 + (before != b"")):
            self.status, self.headers = self.read_head()
            if self.headers.get("content-length"):
                self.body = self.take(int(self.headers["content-length"]))
        self.is_chunked = self.headers.get("transfer-encoding") == "chunked"

    def more(self):
        part = self.socket.recv(1 << 16)
        if not part:
            raise Closed()
        self.bytes += part

    def take(self, count):
        while len(self.bytes) < count:
            self.more()
        taken, self.bytes = self.bytes[:count], self.bytes[count:]
        return taken

    def take_line(self):
        while b"\r\n" not in self.bytes:
            self.more()
        line, _, self.bytes = self.bytes.partition(b"\r\n")
        return line

    def read_head(self):
        status = int(self.take_line().split()[1])
        headers = {}
        while line := self.take_line():
            name, _, value = line.decode().partition(": ")
            headers[name.lower()] = value
        return status, headers

    def read_text(self):
        if not self.is_chunked:
            if not self.bytes:
                self.more()
            self.text += self.take(len(self.bytes))
            return
        size = int(self.take_line(), 16)
        self.text += self.take(size)
        if self.take(2) != b"\r\n":
            raise AssertionError("a chunk does not end")
        if size == 0:
            self.ended_well = True
            raise Closed()

    def block(self):
        while b"\n\n" not in self.text:
            self.read_text()
        block, _, self.text = self.text.partition(b"\n\n")
        return block.decode()

    def next(self):
        """The next event, as a dictionary of its fields."""
        while True:
            fields = {}
            for line in self.block().split("\n"):
                name, _, value = line.partition(": ")
                if line.startswith(":"):
                    self.comments.append(line)
                else:
                    fields[name] = value
            if "data" in fields:
                fields["data"] = json.loads(fields["data"])
                return fields

    def take_events(self, count):
        return [self.next() for _ in range(count)]

    def numbers(self, count):
        return [int(event["id"]) for event in self.take_events(count)]

    def rest(self):
        """What comes until the server ends it."""
        events = []
        try:
            while True:
                events.append(self.next())
        except Closed:
            return events

    def close(self):
        self.socket.close()


class Case(harness.ServerCase):
    def listen(self, target="/Svc.Event", headers=None, **options):
        stream = Stream(self.server.port, target, headers, **options)
        self.addCleanup(stream.close)
        return stream

    def stream(self, *arguments, **options):
        """One that has begun: what is raised from now on is new to it."""
        stream = self.listen(*arguments, **options)
        self.assertEqual(stream.status, 200, stream.headers)
        stream.read_text()
        return stream

    def raise_events(self, count, resource="Shop.OrderPlaced", headers=None, **payload):
        """Their ObjectNos."""
        events = [{"Resource": resource, "Payload": dict(payload, No=number)} for number in range(count)]
        answer = self.post("/Svc.Event", events, headers)
        self.assertEqual(answer.status, 201, answer)
        return [event["ObjectNo"] for event in answer.json()]

    def kept(self, target="/Svc.Event", headers=None):
        answer = self.get(target, headers)
        return answer.json() if answer.body else []

    def metric(self, name):
        text = self.get("/Svc.Metrics").body.decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.M).group(1))

    def nobody_listens(self):
        harness.wait_until(lambda: self.metric("svc_streams_open") == 0, "nobody listens")


class WhatComes(Case):
    shares_server = True

    def test_an_event_comes_as_it_is_read(self):
        stream = self.stream()
        self.assertEqual(stream.headers["content-type"], "text/event-stream")
        self.assertEqual(stream.headers["cache-control"], "no-store")
        self.assertEqual(stream.headers["x-accel-buffering"], "no")
        self.assertEqual(stream.headers["vary"], "Accept")
        number, = self.raise_events(1, Text="ä\n\u2028")
        event = stream.next()
        self.assertEqual(event["id"], str(number))
        self.assertEqual(event["event"], "Shop.OrderPlaced")
        self.assertEqual([event["data"]], self.kept(f"/Svc.Event/ObjectNo={number}"))

    def test_a_payload_of_several_lines(self):
        stream = self.stream()
        self.post("/Svc.Event/Resource=Shop.OrderPlaced", b'[{"a":\n1},\r\n\r{"a": "\\n"}]')
        self.assertEqual(stream.next()["data"]["Payload"], [{"a": 1}, {"a": "\n"}])

    def test_entries_of_the_log(self):
        stream = self.stream("/Svc.Admin.WebhookLog")
        receiver = self.receiver(lambda request: 500)
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     Delivery={"RetrySchedule": [3600]})
        self.raise_events(1)
        event = stream.next()
        self.assertEqual(event["event"], "WebhookLog")
        self.assertEqual([event["data"]], self.kept(f"/Svc.Admin.WebhookLog/ObjectNo={event['id']}"))
        self.assertEqual(event["data"]["StatusCode"], 500)

    def test_conditions_and_members(self):
        target = "/Svc.Event/Resource=Shop.OrderPlaced&Payload.*.No%3E1/add=Payload.Length&select=ObjectNo,Payload.Length"
        stream = self.stream(target)
        self.post("/Shop.Person", {"Name": "Ada"})
        numbers = self.raise_events(4)
        self.assertEqual([event["data"] for event in stream.take_events(2)],
                         [{"ObjectNo": numbers[no], "Payload.Length": 1} for no in (2, 3)])
        form = self.stream("/Svc.Event?where=Resource%3D'Shop.OrderPlaced'&where=ObjectNo%3E0&select=Resource")
        self.assertEqual(form.next()["data"], {"Resource": "Shop.OrderPlaced"})

    @harness.apart
    def test_what_was_asked_for_before_is_answered_first(self):
        body = b'{"Resource":"Shop.OrderPlaced","Payload":{}}'
        before = b"POST /Svc.Event HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" \
                 b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        stream = self.listen("/Svc.Event/ObjectNo%3E0", before=before)
        self.assertEqual(json.loads(stream.body)[0]["ObjectNo"], int(stream.next()["id"]))

    def test_http_1_0_has_no_chunks(self):
        stream = self.stream("/Svc.Event", version="1.0")
        self.assertNotIn("transfer-encoding", stream.headers)
        number, = self.raise_events(1)
        self.assertEqual(stream.next()["id"], str(number))

    def test_a_head_ends(self):
        self.nobody_listens()
        answer = self.server.request("HEAD", "/Svc.Event", headers=EVENT_STREAM)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "text/event-stream"))
        self.assertEqual(self.metric("svc_streams_open"), 0)

    def test_who_has_gone_is_no_stream_any_more(self):
        self.nobody_listens()
        streams = [self.stream() for _ in range(3)]
        self.assertEqual(self.metric("svc_streams_open"), 3)
        for stream in streams:
            stream.close()
        self.nobody_listens()


class WhatIsRefused(Case):
    shares_server = True

    def test_it(self):
        for target, headers, status, text in (
                ("/Svc.Event/_/limit=1", {}, 400, "not 'limit'"),
                ("/Svc.Event/_/order_asc=Time", {}, 400, "not 'order_asc'"),
                ("/Svc.Event/Nonsense=1", {}, 404, "Nonsense"),
                ("/Svc.Event", {"Last-Event-ID": "x"}, 400, "'x' is no ObjectNo"),
                ("/Svc.Event", {"Last-Event-ID": "-1"}, 400, "'-1' is no ObjectNo"),
                ("/Svc.Event", {"Last-Event-ID": "99999"}, 400, "99999 is no ObjectNo that there has been"),
                ("/Shop.Person", {}, 406, "Accept"),
                ("/Svc.Admin.Delivery", {}, 406, "Accept")):
            answer = self.get(target, dict(EVENT_STREAM, **headers))
            self.assertEqual(answer.status, status, (target, answer))
            self.assertIn(text, answer.json()["detail"])
        self.assertEqual(self.server.request("REPORT", "/Svc.Event", headers=EVENT_STREAM).status, 406)
        self.assertEqual(self.metric("svc_streams_open"), 0)

    def test_what_is_preferred(self):
        self.raise_events(1)
        for accept, is_stream in (("text/event-stream, */*", True), ("text/event-stream, application/json", False),
                                  ("application/json;q=0.5, text/event-stream", True), ("*/*", False),
                                  ("text/*", False), ("text/event-stream;q=0, */*", False)):
            headers = {"Accept": accept}
            answer = self.server.request("HEAD", "/Svc.Event", headers=headers)
            self.assertEqual(answer.headers["Content-Type"] == "text/event-stream", is_stream, accept)

    def test_a_request_of_the_service_s_own_has_an_end(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", CustomPayloadRequest={
            "URI": "/Svc.Event/_/select=Resource", "Headers": {"Accept": "text/event-stream"},
            "BreakOnError": False})
        self.raise_events(1)
        self.assertIn(b"Accept", receiver.take().body)


class WhereItBegins(Case):
    def test_after_a_number(self):
        numbers = self.raise_events(600)
        for target, headers, begin in (
                ("/Svc.Event/ObjectNo%3E0", {}, 0),
                (f"/Svc.Event/ObjectNo%3E{numbers[9]}", {}, 10),
                (f"/Svc.Event/ObjectNo%3E{numbers[9]}", {"Last-Event-ID": numbers[299]}, 300),
                (f"/Svc.Event/ObjectNo%3E{numbers[299]}", {"Last-Event-ID": numbers[9]}, 300),
                ("/Svc.Event", {"Last-Event-ID": "0"}, 0),
                ("/Svc.Event", {"Last-Event-ID": numbers[298]}, 299)):
            stream = self.stream(target, headers)
            self.assertEqual(stream.numbers(600 - begin), numbers[begin:], (target, headers))
        new = self.stream()
        last, = self.raise_events(1)
        self.assertEqual(new.numbers(1), [last])

    def test_what_has_yet_to_come(self):
        numbers = self.raise_events(3)
        stream = self.stream(f"/Svc.Event/ObjectNo%3E{numbers[-1] + 2}")
        later = self.raise_events(5)
        self.assertEqual(stream.numbers(3), later[2:])

    def test_over_a_restart(self):
        numbers = self.raise_events(20)
        self.server.kill()
        self.server.start()
        stream = self.stream(headers={"Last-Event-ID": numbers[4]})
        self.assertEqual(stream.numbers(15), numbers[5:])
        later = self.raise_events(5)
        self.assertEqual(stream.numbers(5), later)


class WhatIsForgotten(Case):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Retention={"Events": 10, "WebhookLogEntries": 5})

    def wait_for_retention(self):
        harness.wait_until(lambda: len(self.kept()) == 10, "retention has been there")

    def test_a_gap_is_told_of_also_after_a_restart(self):
        numbers = self.raise_events(50)
        self.wait_for_retention()
        for restart in (False, True):
            if restart:
                self.server.kill()
                self.server.start()
            stream = self.stream(headers={"Last-Event-ID": numbers[4]})
            gap = stream.next()
            self.assertEqual(gap, {"event": "gap", "data": {"From": numbers[4] + 1, "To": numbers[39]}})
            self.assertEqual(stream.numbers(10), numbers[40:])
            whole = self.stream(headers={"Last-Event-ID": numbers[39]})
            self.assertEqual(whole.numbers(10), numbers[40:])
        later, = self.raise_events(1)
        self.assertEqual(stream.numbers(1), [later])

    def test_what_a_client_deletes_is_no_longer_kept(self):
        numbers = self.raise_events(5)
        self.assertEqual(self.server.request("DELETE", f"/Svc.Event/ObjectNo={numbers[2]}").status, 200)
        stream = self.stream(headers={"Last-Event-ID": numbers[0]})
        self.assertEqual(stream.next()["data"], {"From": numbers[0] + 1, "To": numbers[2]})
        self.assertEqual(stream.numbers(3), [numbers[1], numbers[3], numbers[4]])

    def test_entries_of_the_log(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        all_of_them = self.stream("/Svc.Admin.WebhookLog")
        numbers = []
        for _ in range(9):  # one by one: retention may come before who reads them late
            self.raise_events(1)
            numbers += all_of_them.numbers(1)
        harness.wait_until(lambda: len(self.kept("/Svc.Admin.WebhookLog")) == 5, "retention has been there")
        stream = self.stream("/Svc.Admin.WebhookLog", {"Last-Event-ID": numbers[0]})
        self.assertEqual(stream.next(), {"event": "gap", "data": {"From": numbers[0] + 1, "To": numbers[3]}})
        self.assertEqual(stream.numbers(5), numbers[4:])


class SlowClients(Case):
    """Payloads that are in the journal only, and far more of them than a socket takes."""

    EVENTS, BYTES = 300, 50_000  # 15 MB each; a socket takes 4

    def make_config(self):
        return dict(harness.load_config(harness.SHOP),
                    Limits={"PayloadBytes": 1 << 20, "UnreadBytes": 1 << 24, "IdleSeconds": 600})

    def test_they_cost_no_memory_and_miss_nothing(self):
        slow = [self.stream(receive_bytes=4096) for _ in range(4)]
        quick = self.stream()
        numbers = []
        for _ in range(self.EVENTS // 20):
            raised = self.raise_events(20, Text="x" * self.BYTES)
            numbers += raised
            self.assertEqual(quick.numbers(20), raised)
        self.assertLess(self.metric("svc_unread_bytes"), 4 << 20)
        self.assertLess(self.metric('svc_ledger_bytes{kind="Streams"}'), 20 << 20)
        for stream in slow:
            stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)  # no more in little pieces
            self.assertEqual(stream.numbers(len(numbers)), numbers)


class Keys(Case):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, ApiKeys=[
            key("root", "root-key", EVERYTHING),
            key("orders", "orders-key", (["Svc.Event", "Svc.Admin.WebhookLog", "Shop.OrderPlaced"], ["GET"])),
            dict(key("acme", "acme-key", EVERYTHING), Tenant="acme")])

    def setUp(self):
        super().setUp()
        self.root = {"Authorization": "apikey root-key"}

    def get(self, target, headers=None):
        return super().get(target, dict(self.root, **(headers or {})))

    def post(self, target, body, headers=None):
        return super().post(target, body, dict(self.root, **(headers or {})))

    def settle(self):
        self.get("/Svc.Admin.Error")  # what was answered last is on disk

    def made(self, **members):
        answer = self.post("/Svc.Admin.ApiKey", dict({"AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]},
                                                     **members))
        self.assertEqual(answer.status, 201, answer)
        return answer.json()[0]

    def test_without_one(self):
        self.assertEqual(self.listen().status, 401)

    def test_what_a_key_may_read(self):
        orders = self.stream(headers={"Authorization": "apikey orders-key"})
        everything = self.stream(headers=self.root)
        self.assertEqual(self.post("/Shop.Person", {"Name": "Ada"}).status, 201)
        number, = self.raise_events(1)
        self.assertEqual(orders.numbers(1), [number])
        self.assertEqual([event["event"] for event in everything.take_events(2)],
                         ["Shop.PersonCreated", "Shop.OrderPlaced"])
        answer = self.server.request("GET", "/Svc.Event", headers=dict(
            EVENT_STREAM, Authorization="apikey " + self.made(Name="none", AllowAccess=[
                {"Resources": ["Shop.OrderPlaced"], "Methods": ["GET"]}])["Key"]))
        self.assertEqual(answer.status, 403)

    def test_what_a_tenant_sees(self):
        acme = self.stream(headers={"Authorization": "apikey acme-key"})
        everything = self.stream(headers=self.root)
        other, = self.raise_events(1)
        own, = self.raise_events(1, headers={"Authorization": "apikey acme-key"})
        event = acme.next()
        self.assertEqual((int(event["id"]), event["data"]["Tenant"]), (own, "acme"))
        self.assertEqual(everything.numbers(2), [other, own])
        late = self.stream("/Svc.Event/ObjectNo%3E0", {"Authorization": "apikey acme-key"})
        self.assertEqual(late.numbers(1), [own])

    def test_bodies_in_the_log_are_for_who_may_read_the_event(self):
        receiver = self.receiver(lambda request: (200, {}, b"thanks"))
        people = self.stream("/Svc.Admin.WebhookLog", {"Authorization": "apikey orders-key"})
        everything = self.stream("/Svc.Admin.WebhookLog", self.root)
        for selector in ("/Shop.PersonCreated", "/Shop.OrderPlaced"):
            self.assertEqual(self.post("/Svc.Admin.Webhook", {"Destination": receiver.url(),
                                                              "EventSelector": selector}).status, 201)
        self.assertEqual(self.post("/Shop.Person", {"Name": "Ada"}).status, 201)
        self.assertEqual((people.next()["data"]["ResponseBody"], everything.next()["data"]["ResponseBody"]),
                         (None, "thanks"))
        self.raise_events(1)
        self.assertEqual(people.next()["data"]["ResponseBody"], "thanks")

    def test_a_key_that_goes_ends_its_streams(self):
        for change in (lambda made: self.server.request("DELETE", f"/Svc.Admin.ApiKey/Id={made['Id']}",
                                                        headers=self.root),
                       lambda made: self.server.request("PATCH", f"/Svc.Admin.ApiKey/Id={made['Id']}", {
                           "AllowAccess": [{"Resources": ["Shop.*"], "Methods": ["GET"]}]}, self.root)):
            made = self.made(Name=f"m{random.random()}")
            stream = self.stream(headers={"Authorization": f"apikey {made['Key']}"})
            number, = self.raise_events(1)
            self.assertEqual(stream.numbers(1), [number])
            self.assertEqual(change(made).status, 200)
            self.raise_events(1)
            self.assertEqual(stream.rest(), [])
            self.assertTrue(stream.ended_well)
            self.assertIn("key", stream.comments[-1])

    def test_one_that_expires(self):
        for span_s in (3, 9, 27, 81):  # until it is presented before it is over
            soon = int(time.time() + span_s)
            made = self.made(Name=f"short-{span_s}", ExpiresAt=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(soon)))
            stream = self.listen(headers={"Authorization": f"apikey {made['Key']}"})
            if stream.status == 200:
                break
            self.assertGreaterEqual(time.time(), soon)
        self.assertEqual(stream.rest(), [])
        self.assertGreaterEqual(time.time(), soon)  # time.gmtime() alone is some milliseconds late

    def test_a_configuration_that_is_read_anew(self):
        stream = self.stream(headers={"Authorization": "apikey orders-key"})
        self.server.config["ApiKeys"] = self.server.config["ApiKeys"][:1]
        self.server.write_config()
        self.server.process.send_signal(signal.SIGHUP)
        self.assertEqual(stream.rest(), [])


class Accounts(Case):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, Limits={"Streams": 4}, ApiKeys=[
            key(name, name, EVERYTHING) for name in ("one", "two", "three")])

    def get(self, target, headers=None):
        return super().get(target, headers or {"Authorization": "apikey one"})

    def settle(self):
        self.get("/Svc.Admin.Error")

    def of(self, name):
        return self.stream(headers={"Authorization": f"apikey {name}"})

    def test_nobody_has_all_when_others_want_some(self):
        ones = [self.of("one") for _ in range(4)]
        refused = self.listen(headers={"Authorization": "apikey one"})
        self.assertEqual((refused.status, refused.headers["retry-after"]), (503, "5"))
        self.assertIn(b"Streams", refused.body)
        two = self.of("two")
        self.assertEqual(ones[3].rest(), [])
        self.assertTrue(ones[3].ended_well)
        again = self.of("two")
        self.assertEqual(ones[2].rest(), [])
        refused = self.listen(headers={"Authorization": "apikey two"})
        self.assertEqual(refused.status, 503)
        self.assertEqual(self.metric("svc_streams_open"), 4)
        self.assertEqual(self.metric('svc_limit_hits_total{limit="Streams"}'), 4)
        self.assertEqual(self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}},
                                   {"Authorization": "apikey one"}).status, 201)
        for stream in (ones[0], ones[1], two, again):
            stream.next()


class Shutdown(Case):
    compares_digest = False

    def test_streams_end_so_that_clients_come_again(self):
        streams = [self.stream(), self.stream(version="1.0"), self.stream("/Svc.Admin.WebhookLog")]
        self.assertEqual(self.server.stop(), 0)
        for stream in streams:
            self.assertEqual(stream.rest(), [])
            self.assertIn("shutting down", stream.comments[-1])
        self.assertTrue(streams[0].ended_well)


class Kills(Case):
    """Events are raised, and the server is killed at random; what each listener has seen in the end, over all its
    connections, is what is kept: each once and in order."""

    KILLS = int(os.environ.get("SVCD_KILLS", "3"))

    def raise_until(self, done, acknowledged):
        while not done.is_set():
            events = [{"Resource": "Shop.OrderPlaced", "Payload": {"No": no}} for no in range(random.randint(1, 5))]
            try:
                answer = self.post("/Svc.Event", events)
            except (OSError, harness.http.client.HTTPException):
                continue
            if answer.status == 201:
                acknowledged.extend(event["ObjectNo"] for event in answer.json())

    def follow(self, done, seen, target):
        while True:
            try:
                stream = Stream(self.server.port, target, {"Last-Event-ID": seen[-1]} if seen else {})
                self.assertEqual(stream.status, 200, stream.headers)
                try:
                    while not done.is_set():
                        seen.append(int(stream.next()["id"]))
                    return
                finally:
                    stream.close()
            except (OSError, Closed, TypeError):
                if done.is_set():
                    return

    def test_it(self):
        raised, listened = threading.Event(), threading.Event()
        acknowledged = []
        seen = [[] for _ in range(4)]
        threads = [threading.Thread(target=self.raise_until, args=(raised, acknowledged))]
        threads += [threading.Thread(target=self.follow, args=(listened, each, "/Svc.Event/ObjectNo%3E0"))
                    for each in seen]
        for thread in threads:
            thread.start()
        for _ in range(self.KILLS):
            time.sleep(random.uniform(0.05, 0.4))
            self.server.kill()
            self.server.start()
        raised.set()
        threads[0].join()
        committed = [event["ObjectNo"] for event in self.kept()]
        self.assertEqual(set(acknowledged) - set(committed), set())
        try:
            for each in seen:
                harness.wait_until(lambda each=each: each and each[-1] == committed[-1], "all has come")
        finally:
            listened.set()
            self.raise_events(1)  # so that nobody waits for another one
            for thread in threads[1:]:
                thread.join()
        for each in seen:
            self.assertEqual(each[:len(committed)], committed)


if __name__ == "__main__":
    unittest.main()

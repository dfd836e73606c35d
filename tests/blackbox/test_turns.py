"""Changes of very many objects: they give way to others, who see the state before or the state after, never one in
between; whoever changes something comes after them. Of time only the processor's is looked at, as the server counts
it."""
import http.client
import json
import socket
import threading
import time
import unittest

import harness
import test_streams
from test_budget import NOTE, BudgetCase

MINIMAL = {"Prefer": "return=minimal"}
EVENT = "Shop.OrderPlaced"
AGAIN = {"State": "Pending"}


class TurnsCase(BudgetCase):
    many = 5000 if harness.is_sanitized() else 30000  # either takes several turns
    limits = {"RequestCpuMs": 60000, "AccountWebhooks": 100000}

    def insert(self, count, at_a_time=5000):
        for first in range(0, count, at_a_time):
            answer = self.post(NOTE, [{"N": n, "Text": "x" * 60}
                                      for n in range(first, first + min(at_a_time, count - first))], MINIMAL)
            self.assertEqual(answer.status, 201, answer)

    def count(self, target):
        answer = self.server.request("REPORT", target)
        self.assertEqual(answer.status, 200, answer)
        return answer.json()[0]["Count"]

    def beside(self, look, method, target, body=None, headers=None):
        """The answer; `look` is called again and again meanwhile, with what asks on a connection of its own."""
        answers = []
        asker = threading.Thread(target=lambda: answers.append(
            self.server.request(method, target, body, headers)))
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=harness.DEADLINE_S)
        self.addCleanup(connection.close)

        def ask(method, target, body=None, headers=None):
            connection.request(method, target, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read()

        before = self.gave_way()
        asker.start()
        while asker.is_alive():
            look(ask)
        asker.join()
        self.assertGreater(self.gave_way(), before)
        self.check_turns()
        return answers[0]

    @staticmethod
    def echo(ask):
        ask("GET", "/Svc.Echo")


class Collections(TurnsCase):
    """What is asked one after the other: once one entity is as it is afterwards, no other is as before."""

    def ids(self):
        first = self.get(f"{NOTE}/_/limit=1&select=Id").json()[0]["Id"]
        last = self.get(f"{NOTE}/_/offset=-1&select=Id").json()[0]["Id"]
        return first, last

    def check_patch(self, target):
        places = self.ids()

        def look(ask):
            values = []  # of the first, the last, and the first again
            for place in places + places[:1]:
                status, body = ask("GET", f"{NOTE}/Id={place}")
                self.assertEqual(status, 200)
                values.append(json.loads(body)[0].get("Seen"))
            if values[0] == values[2]:
                self.assertEqual(values[1], values[0], values)

        answer = self.beside(look, "PATCH", f"{NOTE}/{target}/unsafe=true", {"Seen": target}, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.count(f"{NOTE}/Seen={target}"), self.many)

    def test_all_are_patched_and_deleted(self):
        self.insert(self.many)
        self.check_patch("_")
        self.check_patch("N>=0")
        first, last = self.ids()

        def look(ask):
            states = [ask("GET", f"{NOTE}/Id={place}")[0] for place in (first, last, first)]
            self.assertIn(states, ([200] * 3, [204] * 3, [200, 204, 204], [200, 200, 204]), states)

        answer = self.beside(look, "DELETE", f"{NOTE}/_/unsafe=true")
        self.assertEqual(answer.json()[0]["Count"], self.many)
        self.assertEqual(self.count(NOTE), 0)

    def test_all_are_posted(self):
        notes = [{"N": n, "Text": "x"} for n in range(self.many)]

        def look(ask):
            answer = json.loads(ask("REPORT", NOTE)[1])
            self.assertIn(answer[0]["Count"], (0, self.many))

        self.assertEqual(self.beside(look, "POST", NOTE, notes, MINIMAL).status, 201)
        answer = self.beside(self.echo, "POST", f"{NOTE}/_/safepost=N", notes, MINIMAL)
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.count(NOTE), self.many)

    def test_what_an_aggregator_shows_is_of_one_moment(self):
        self.insert(self.many)
        places = self.ids()
        inner = {name: f"GET {NOTE}/Id={place}" for name, place in zip("abc", places + places[:1])}
        seen = []

        def look(ask):
            status, body = ask("POST", "/Svc.Aggregator", json.dumps(inner), {"Content-Type": "application/json"})
            self.assertEqual(status, 200, body)
            values = [entity[0].get("Seen") for entity in json.loads(body)[0].values()]
            self.assertIn(values, ([None] * 3, [1] * 3))
            seen.append(values[0])

        answer = self.beside(look, "PATCH", f"{NOTE}/_/unsafe=true", {"Seen": 1}, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        self.assertIn(None, seen)

    def test_what_others_change_meanwhile_comes_before_or_after(self):
        self.insert(self.many)
        posted = []

        def look(ask):
            status, _ = ask("POST", NOTE, json.dumps({"N": -1}), {"Content-Type": "application/json"})
            self.assertEqual(status, 201)
            posted.append(status)
            self.assertEqual(ask("GET", "/Shop.Nothing")[0], 404)

        answer = self.beside(look, "PATCH", f"{NOTE}/_/unsafe=true", {"Seen": 1}, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        patched = int(answer.headers["Svc-info"].split()[0])
        self.assertEqual(self.count(f"{NOTE}/Seen=1"), patched)
        self.assertEqual(self.count(f"{NOTE}/Seen=1&N>=0"), self.many)
        self.assertEqual(self.count(NOTE), self.many + len(posted))

    def test_a_client_that_goes_leaves_all_or_nothing(self):
        self.insert(self.many)
        for number in range(10):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port)
            connection.request("PATCH", f"{NOTE}/_/unsafe=true", json.dumps({"Seen": number}),
                               {"Content-Type": "application/json", **MINIMAL})
            time.sleep(0.05 * number)
            connection.close()
            self.assertIn(self.count(f"{NOTE}/Seen={number}"), (0, self.many))
        harness.wait_until(lambda: self.metric("svc_scans_open") == 0, "none is evaluated any more")


class TooCostly(TurnsCase):
    """No machine looks at so many, with so many conditions, within that time, and each inserts a few."""
    many = 10000 if harness.is_sanitized() else 30000
    limits = {"RequestCpuMs": 25 if harness.is_sanitized() else 4}
    conditions = "&".join(f"Text!={n}" for n in range(40))

    def test_nothing_has_changed(self):
        self.insert(self.many, 50)
        for method, body in (("PATCH", {"Seen": 1}), ("DELETE", None)):
            answer = self.server.request(method, f"{NOTE}/{self.conditions}/unsafe=true", body, MINIMAL)
            self.check_too_costly(answer)
        self.check_turns()
        self.server.stop()
        self.server.config["Limits"].update(RequestCpuMs=60000)  # to look at all of them
        self.server.start()
        self.assertEqual(self.count(f"{NOTE}/Seen=1"), 0)
        self.assertEqual(self.count(NOTE), self.many)


class Deliveries(TurnsCase):
    webhooks = 2000 if harness.is_sanitized() else 10000

    def hold_all(self):
        """Webhooks that all match, and of which nothing ends: where they send to, nobody answers."""
        silent = socket.create_server(("127.0.0.1", 0), backlog=1000)
        self.addCleanup(silent.close)
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        for _ in range(0, self.webhooks, 2000):
            answer = self.post("/Svc.Admin.Webhook", [
                {"Destination": url, "EventSelector": f"/{EVENT}",
                 "Delivery": {"TimeoutSeconds": 300, "RatePerSecond": 0.0001}}] * 2000, MINIMAL)
            self.assertEqual(answer.status, 201, answer)

    def test_one_event_of_very_many_webhooks(self):
        self.hold_all()
        deliveries = "/Svc.Admin.Delivery"

        def look(ask):
            self.assertIn(json.loads(ask("REPORT", deliveries)[1])[0]["Count"], (0, self.webhooks))

        answer = self.beside(look, "POST", "/Svc.Event", {"Resource": EVENT, "Payload": {"N": 1}})
        self.assertEqual(answer.json()[0]["Webhooks"], self.webhooks)
        waiting = f"{deliveries}/State!=InFlight&State!=Delivered"
        left = self.count(waiting)
        answer = self.beside(self.echo, "PATCH", f"{waiting}/unsafe=true", AGAIN, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        answer = self.beside(self.echo, "PATCH", "/Svc.Admin.Webhook/_/unsafe=true", {"IsPaused": True}, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        answer = self.beside(self.echo, "DELETE", f"{waiting}/unsafe=true")
        self.assertLessEqual(answer.json()[0]["Count"], left)
        self.assertEqual(self.count(waiting), 0)
        answer = self.beside(self.echo, "DELETE", "/Svc.Admin.Webhook/_/unsafe=true")
        self.assertEqual(answer.json()[0]["Count"], self.webhooks)
        harness.wait_until(lambda: self.count(deliveries) == 0, "all are dropped")


class Streams(TurnsCase):
    """They are told of all events of a change, once, in their order."""
    events = 6000 if harness.is_sanitized() else 12000

    def test_many_events_of_one_request(self):
        stream = test_streams.Stream(self.server.port)
        self.addCleanup(stream.close)
        stream.read_text()
        events = [{"Resource": EVENT, "Payload": {"Total": n}} for n in range(self.events)]
        numbers = [event["ObjectNo"] for event in self.beside(self.echo, "POST", "/Svc.Event", events).json()]
        self.assertEqual(stream.numbers(self.events), numbers)
        number = self.post("/Svc.Event", events[0]).json()[0]["ObjectNo"]
        self.assertEqual(stream.numbers(1), [number])


class Queue(TurnsCase):
    """One webhook with a long queue."""
    events = 4000 if harness.is_sanitized() else 20000

    def test_its_list_and_its_order(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector=f"/{EVENT}",
                               Delivery={"RatePerSecond": 0.0001})["Id"]
        for _ in range(0, self.events, 4000):
            answer = self.post("/Svc.Event", [{"Resource": EVENT, "Payload": {"Total": 1}}] * 4000, MINIMAL)
            self.assertEqual(answer.status, 201, answer)
        for target in (f"/Svc.Admin.Delivery/WebhookId={webhook}/order_desc=ObjectNo&limit=2",
                       "/Svc.Event/Payload.Total!=2/order_desc=ObjectNo&limit=2"):
            first, second = self.beside(self.echo, "GET", target).json()
            self.assertGreater(first["ObjectNo"], second["ObjectNo"])
        for ordered in (True, False):
            answer = self.beside(self.echo, "PATCH", f"/Svc.Admin.Webhook/Id={webhook}",
                                 {"Delivery": {"RatePerSecond": 0.0001, "Ordered": ordered}})
            self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.count("/Svc.Admin.Delivery/State!=InFlight&State!=Delivered"), self.events - 1)


class Index(TurnsCase):
    """Very many entities of one value."""
    limits = {"RequestCpuMs": 60000}

    def make_config(self):
        config = super().make_config()
        config["Resources"].append({"Name": "Shop.Visit", "Kind": "EntityResource", "Indexes": ["Page"],
                                    "Properties": [{"Name": "Page", "Type": "string"},
                                                   {"Name": "N", "Type": "integer"}]})
        return config

    def test_they_give_way(self):
        for page in ("a", "b"):
            for first in range(0, self.many, 5000):
                answer = self.post("/Shop.Visit", [{"Page": page, "N": n} for n in range(first, first + 5000)],
                                   MINIMAL)
                self.assertEqual(answer.status, 201, answer)
        found = self.beside(self.echo, "GET", "/Shop.Visit/Page=a&N>=0/order_desc=N&limit=3").json()
        self.assertEqual([visit["N"] for visit in found], [self.many - 1 - n for n in range(3)])
        answer = self.beside(self.echo, "PATCH", "/Shop.Visit/Page=a&N>=0/unsafe=true", {"Page": "b"}, MINIMAL)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.count("/Shop.Visit/Page=b"), 2 * self.many)
        self.assertEqual(self.count("/Shop.Visit/Page=a"), 0)


if __name__ == "__main__":
    unittest.main()

"""Events that are raised again: the same Id, or Idempotency-Key, and the same body give the same answer,
without a second event."""
import hashlib
import json
import os
import socket
import threading
import time
import unittest

import harness

ORDER = "/Svc.Event/Resource=Shop.OrderPlaced"


def order(ident=None, **payload):
    event = {"Resource": "Shop.OrderPlaced", "Payload": payload or {"Total": 7}}
    return event if ident is None else dict(event, ClientId=ident)


class OnceCase(harness.ServerCase):
    def count(self):
        """How many events there are."""
        return self.server.request("REPORT", "/Svc.Event").json()[0]["Count"]

    def ck_same(self, again, first):
        self.assertEqual(first.status, 201, first)
        self.assertEqual((again.status, again.body), (first.status, first.body))
        for name in ("Svc-info", "Content-Type"):
            self.assertEqual(again.headers[name], first.headers[name])

    def ck_error(self, answer, status, code, words):
        self.assertEqual((answer.status, answer.json()["ErrorCode"]), (status, code), answer)
        self.assertIn(words, answer.headers["Svc-info"])


class ById(OnceCase):
    def test_the_same_event_again(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        first = self.post("/Svc.Event", order("order-1"))
        event, = first.json()
        self.assertNotEqual(event["Id"], "order-1", "the event's Id is the server's")
        for _ in range(3):
            self.ck_same(self.post("/Svc.Event", order("order-1")), first)
        self.assertEqual(self.count(), 1)
        self.assertEqual(receiver.take().headers["webhook-id"], event["Id"])
        self.assertTrue(receiver.nothing(), "it is sent once")

    def test_another_body(self):
        first, = self.post("/Svc.Event", order("order-1")).json()
        answer = self.post("/Svc.Event", order("order-1", Total=8))
        self.ck_error(answer, 409, "Conflict", f"ClientId: event {first['Id']} was raised")
        error, = self.get(answer.headers["ErrorInfo"]).json()
        self.assertEqual((error["ErrorCode"], error["ResourceName"], error["Action"]),
                         ("Conflict", "Svc.Event", "POST"))
        self.assertEqual(json.loads(error["Body"]), order("order-1", Total=8))
        self.assertEqual(self.count(), 1)

    def test_payloads_compare_byte_for_byte(self):
        text = json.dumps(order("order-1"))
        self.assertEqual(self.post("/Svc.Event", text).status, 201)
        for same in (f" [ {text} ] ", text.replace("Shop.OrderPlaced", "orderplaced"),
                     json.dumps(dict(reversed(order("order-1").items()))), text.replace('"ClientId": ', '"clientid":')):
            self.assertEqual(self.post("/Svc.Event", same).status, 201, same)
        for other in (text.replace('"Total": ', '"Total":'), text.replace("Shop.OrderPlaced", "Shop.PersonCreated"),
                      json.dumps(dict(order("order-1"), Tenant="acme"))):
            self.assertIn(self.post("/Svc.Event", other).status, (409, 201), other)
        self.assertEqual(self.post("/Svc.Event", text.replace('"Total": ', '"Total":')).status, 409)
        self.assertEqual(self.post("/Svc.Event", text.replace("Shop.OrderPlaced", "Shop.PersonCreated")).status, 409)

    def test_either_form_is_the_same_event(self):
        first = self.post("/Svc.Event", '{"Resource":"Shop.OrderPlaced","Payload":{"Total": 7},"ClientId":"order-1"}')
        self.ck_same(self.post(f"{ORDER}&ClientId=order-1", b' {"Total": 7}\n'), first)
        self.ck_same(self.post("/Svc.Event/ClientId=order-1&Resource=orderplaced", b'{"Total": 7}'), first)
        self.ck_error(self.post(f"{ORDER}&ClientId=order-1", b'{"Total":7}'), 409, "Conflict", "ClientId: event")
        self.assertEqual(self.count(), 1)
        for target, words in ((f"{ORDER}&ClientId=a&ClientId=a", "twice"), (f"{ORDER}&ClientId!=a", "takes '='"),
                              (f"{ORDER}&Id=a", "'Id' describes no event")):
            self.ck_error(self.post(target, b"{}"), 400, "InvalidConditionSyntax", words)
        self.ck_error(self.post(f"{ORDER}&ClientId=a%20b", b"{}"), 400, "InvalidResourceEntity", "character 2")
        self.ck_error(self.post(f"{ORDER}&ClientId=a", b"{}", {"Idempotency-Key": "b"}), 400, "InvalidResourceEntity",
                      "ClientId: the request has")

    def test_an_id_is_not_the_clients(self):
        """It is the server's, as everywhere."""
        event = dict(order(), Id="order-1")
        self.assertNotEqual(self.created("/Svc.Event", event)["Id"], self.created("/Svc.Event", event)["Id"])
        self.assertEqual(self.count(), 2)

    def test_no_other_conditions_describe_an_event(self):
        for more in ("Nope=1", "Time=yesterday", "Webhooks=many", "Payload=1", "ce.id=1", "Id=1"):
            answer = self.post(f"{ORDER}&{more}", b"{}")
            self.ck_error(answer, 400, "InvalidConditionSyntax", f"'{more.partition('=')[0]}' describes no event")
        self.assertEqual(self.count(), 0)

    def test_read_only_members_are_not_looked_at(self):
        first = self.post("/Svc.Event", dict(order("a"), Id=5, Time="x", Webhooks="x", ce=1, ContentType=2, ObjectNo={}))
        self.assertEqual(first.status, 201, first)
        self.assertEqual(self.get("/Svc.Event").json()[0]["ContentType"], "application/json")

    def test_a_tenant_without_characters_is_none(self):
        words = "Tenant: '' is not 1 to 64"
        self.ck_error(self.post("/Svc.Event", dict(order(), Tenant="")), 400, "InvalidResourceEntity", words)
        self.ck_error(self.post(ORDER + "&Tenant=", b"{}"), 400, "InvalidResourceEntity", words)
        self.assertEqual(self.post("/Svc.Event", dict(order(), Tenant=None)).status, 201)
        self.assertEqual(self.count(), 1)

    def test_it_is_shown_and_found(self):
        for no in range(3):
            self.created("/Svc.Event", order(f"order-{no}", No=no))
        self.created("/Svc.Event", order())
        for _ in range(2):
            found = self.get("/Svc.Event/ClientId=order-1").json()
            self.assertEqual([(event["ClientId"], event["Payload"]) for event in found], [("order-1", [{"No": 1}])])
            self.assertEqual(self.get("/Svc.Event/ClientId=order-9").status, 204)
            self.assertEqual(self.server.request("REPORT", "/Svc.Event/ClientId=null").json(), [{"Count": 1}])
            self.assertEqual(self.server.request("REPORT", "/Svc.Event/ClientId>order-1").json(), [{"Count": 1}])
            self.server.kill()
            self.server.start()
        self.assertEqual(self.server.request("DELETE", "/Svc.Event/ClientId=order-1").json(), [{"Count": 1}])
        self.assertEqual(self.get("/Svc.Event/ClientId=order-1").status, 204)

    def test_what_an_id_may_be(self):
        for ident, words in (("", "0 characters"), ("x" * 256, "256 characters"), ("a b", "character 2"),
                             ("a\n", "character 2"), ("é", "character 1"), (7, "ClientId: ")):
            self.ck_error(self.post("/Svc.Event", order(ident)), 400, "InvalidResourceEntity", words)
        self.assertEqual(self.count(), 0)
        for ident in ("x" * 255, "!~\"\\", "Order", "order"):
            self.assertEqual(self.post("/Svc.Event", order(ident)).status, 201, ident)
        self.assertEqual(self.count(), 4, "case counts")

    def test_no_id(self):
        for event in (order(), dict(order(), ClientId=None)):
            self.assertNotEqual(self.created("/Svc.Event", event), self.created("/Svc.Event", event))
        self.assertEqual(self.count(), 4)

    def test_events_that_were_refused_are_not_remembered(self):
        event = dict(order("order-1"), Resource="Shop.NoSuchEvent")
        self.assertEqual(self.post("/Svc.Event", event).status, 404)
        self.assertEqual(self.post("/Svc.Event", order("order-1")).status, 201)

    def test_deleted_events_are_remembered(self):
        first = self.post("/Svc.Event", order("order-1"))
        self.assertEqual(self.server.request("DELETE", "/Svc.Event").json(), [{"Count": 1}])
        self.ck_same(self.post("/Svc.Event", order("order-1")), first)
        self.assertEqual(self.count(), 0)

    def test_after_kill(self):
        answers = [self.post("/Svc.Event", order(f"order-{no}", No=no)) for no in range(20)]
        self.server.kill()
        self.server.start()
        for no, first in enumerate(answers):
            self.ck_same(self.post("/Svc.Event", order(f"order-{no}", No=no)), first)
            self.assertEqual(self.post("/Svc.Event", order(f"order-{no}", No=-1)).status, 409)
        self.assertEqual(self.count(), 20)


class Arrays(OnceCase):
    def test_all_again(self):
        events = [order("a"), order("b"), order()]
        first = self.post("/Svc.Event", events)
        again = self.post("/Svc.Event", events)
        self.assertEqual(again.status, 201)
        self.assertEqual(again.json()[:2], first.json()[:2])
        self.assertNotEqual(again.json()[2], first.json()[2], "it has no Id")
        self.assertEqual(self.count(), 4)

    def test_some_again(self):
        """Each event by itself: known ones are answered as they were, new ones are raised."""
        one = self.created("/Svc.Event", order("a"))
        answer = self.post("/Svc.Event", [order("b"), order("a"), order("c")])
        self.assertEqual((answer.status, answer.json()[1]), (201, one), answer)
        self.assertEqual(self.count(), 3)
        self.assertEqual(self.post("/Svc.Event", order("c")).json(), answer.json()[2:])

    def test_one_conflict_and_nothing_is_raised(self):
        self.created("/Svc.Event", order("a"))
        answer = self.post("/Svc.Event", [order("b"), order("a", Total=8), order("c")])
        self.ck_error(answer, 409, "Conflict", "entity 1: ClientId: ")
        self.assertEqual(self.count(), 1)
        self.created("/Svc.Event", order("b", Total=8))

    def test_the_same_id_twice_in_one(self):
        answer = self.post("/Svc.Event", [order("a"), order("a")])
        self.assertEqual(answer.json()[0], answer.json()[1])
        self.assertEqual(self.count(), 1)
        answer = self.post("/Svc.Event", [order("b"), order("b", Total=8)])
        self.ck_error(answer, 409, "Conflict", "entity 1: ClientId: ")
        self.assertEqual(self.count(), 1)

    def test_lines(self):
        lines = "\n".join(json.dumps(order(ident)) for ident in "abc")
        headers = {"Content-Type": "application/x-ndjson"}
        first = self.post("/Svc.Event", lines, headers)
        self.ck_same(self.post("/Svc.Event", lines, headers), first)
        self.assertEqual(self.count(), 3)


class ByHeader(OnceCase):
    KEY = {"Idempotency-Key": "request-1"}

    def test_described_events(self):
        for body in (order(), [order(), order(), order(Total=9)]):
            before = self.count()
            key = {"Idempotency-Key": f"request-{before}"}
            first = self.post("/Svc.Event", body, key)
            self.ck_same(self.post("/Svc.Event", body, key), first)
            raised = len(first.json())
            self.assertEqual(self.count(), before + raised)
            self.ck_error(self.post("/Svc.Event", json.dumps(body) + " ", key), 409, "Conflict",
                          "Idempotency-Key: event ")
            self.assertEqual(self.count(), before + raised)

    def test_a_payload_as_the_body(self):
        first = self.post(ORDER, b'[{"Total": 7}]', self.KEY)
        self.ck_same(self.post(ORDER, b'[{"Total": 7}]', self.KEY), first)
        self.assertEqual(self.post(ORDER, b'[{"Total":7}]', self.KEY).status, 409)
        other = "/Svc.Event/Resource=Shop.PersonCreated"
        self.assertEqual(self.post(other, b'[{"Total": 7}]', self.KEY).status, 409)
        self.assertEqual(self.count(), 1)

    def test_binary_payloads(self):
        target, payload = "/Svc.Event/Resource=Shop.ReportReady", bytes(range(256))
        headers = dict(self.KEY, **{"Content-Type": "application/pdf"})
        first = self.post(target, payload, headers)
        self.ck_same(self.post(target, payload, headers), first)
        self.assertEqual(self.post(target, payload[::-1], headers).status, 409)
        headers["Content-Type"] = "image/png"
        self.assertEqual(self.post(target, payload, headers).status, 409)
        self.assertEqual(self.count(), 1)

    def test_ids_and_request_keys_are_different_things(self):
        self.created("/Svc.Event", order("request-1"))
        self.created("/Svc.Event", order(), self.KEY)
        self.assertEqual(self.count(), 2)
        answer = self.post("/Svc.Event", order("a"), {"Idempotency-Key": "request-2"})
        self.ck_error(answer, 400, "InvalidResourceEntity", "ClientId: the request has an Idempotency-Key")

    def test_what_a_key_may_be(self):
        for key in ("", "a b", "x" * 256, "é".encode("utf-8").decode("latin-1")):
            answer = self.post("/Svc.Event", order(), {"Idempotency-Key": key})
            self.ck_error(answer, 400, "InvalidResourceEntity", "Idempotency-Key: ")
        head = f"POST {ORDER} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n"
        twice = head + "Idempotency-Key: a\r\nIdempotency-Key: b\r\n\r\n{}"
        self.assertIn(b" 400 ", self.server.raw(twice.encode()))
        self.assertEqual(self.count(), 0)


class Meanwhile(OnceCase):
    def test_repetitions_while_the_first_is_on_its_way(self):
        """Many at once, pipelined on several connections: one event, and one answer for all."""
        body = json.dumps(order("order-1")).encode()
        head = f"POST /Svc.Event HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        last = head + "Connection: close\r\n"
        sent = (head.encode() + b"\r\n" + body) * 9 + last.encode() + b"\r\n" + body
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.server.raw(sent)))
                   for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bodies = [part.split(b"\r\n\r\n", 1)[1].split(b"HTTP/1.1")[0]
                  for answer in answers for part in answer.split(b"HTTP/1.1 201 Created")[1:]]
        self.assertEqual((len(bodies), len(set(bodies))), (80, 1))
        self.assertEqual(self.count(), 1)

    def test_kills_and_repetitions(self):
        """A client that repeats what was not answered raises each event once, whatever happens."""
        raised = {}
        for round_no in range(8):
            try:
                self.raise_until_killed(round_no, raised)
            except OSError:
                pass
            self.server.start()
            ident = f"order-{len(raised)}"
            raised[ident] = self.created("/Svc.Event", order(ident, No=len(raised)))
            for known, answer in list(raised.items())[-5:]:
                again = self.created("/Svc.Event", order(known, No=int(known[6:])))
                self.assertEqual(again, answer)
        numbers = [event["Payload"][0]["No"] for event in self.get("/Svc.Event").json()]
        self.assertEqual(numbers, list(range(len(raised))))

    def raise_until_killed(self, round_no, raised):
        timer = threading.Timer(0.02 + 0.01 * round_no, self.server.kill)
        timer.start()
        try:
            while True:
                ident = f"order-{len(raised)}"
                answer = self.post("/Svc.Event", order(ident, No=len(raised)))
                raised[ident] = answer.json()[0]
        except (OSError, ValueError, harness.http.client.HTTPException):
            raise OSError from None
        finally:
            timer.join()


class Owners(OnceCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [
            {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(),
             "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]} for name in ("shop", "office")]
        return config

    def test_each_api_key_has_its_own(self):
        shop, office = ({"Authorization": f"apikey {name}"} for name in ("shop", "office"))
        first = self.post("/Svc.Event", order("order-1"), shop)
        self.ck_same(self.post("/Svc.Event", order("order-1"), shop), first)
        other = self.post("/Svc.Event", order("order-1", Total=8), office)
        self.assertEqual(other.status, 201, other)
        self.assertNotEqual(other.json(), first.json())


class Tenants(OnceCase):
    """A ClientId is its tenant's, whoever raised the event for it."""

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        every = [{"Resources": ["*"], "Methods": ["*"]}]
        config["RequireApiKey"] = True
        config["ApiKeys"] = [
            {"Name": name, "KeySha256": hashlib.sha256(name.encode()).hexdigest(), "AllowAccess": every, "Tenant": tenant}
            for name, tenant in (("root", None), ("acme-1", "acme"), ("acme-2", "acme"), ("globex-1", "globex"))]
        return config

    def settle(self):
        pass

    def test_they_are_kept_apart(self):
        def raised(name, **members):
            answer = self.post("/Svc.Event", dict(order("order-1"), **members), {"Authorization": f"apikey {name}"})
            self.assertEqual(answer.status, 201, answer)
            return answer.json()[0]["Id"]
        acme, globex, root = raised("acme-1"), raised("globex-1"), raised("root")
        self.assertEqual(len({acme, globex, root}), 3)
        self.assertEqual(raised("acme-2"), acme)
        other = raised("root", Tenant="other")
        self.assertEqual(raised("root", Tenant="other"), other)
        self.assertEqual(len({acme, globex, root, other}), 4)
        for name, ids in (("acme-1", {acme}), ("globex-1", {globex}), ("root", {acme, globex, root, other})):
            found = self.get("/Svc.Event/ClientId=order-1", {"Authorization": f"apikey {name}"}).json()
            self.assertEqual({event["Id"] for event in found}, ids)


class Bounds(OnceCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Retention"] = self.retention
        return config


class Expiry(Bounds):
    retention = {"IdempotencySeconds": 5}

    def test_an_id_may_be_used_again(self):
        began = time.monotonic()
        first = self.post("/Svc.Event", order("order-1"))
        bodies = {first.body, self.again(began, order("order-1"), first)}

        def raised():
            nonlocal began
            began = time.monotonic()
            answer = self.post("/Svc.Event", order("order-1", Total=8))
            return answer.status == 201 and answer
        second = harness.wait_until(raised, "the first is forgotten")
        bodies |= {second.body, self.again(began, order("order-1", Total=8), second)}
        self.assertEqual(self.count(), len(bodies))

    def again(self, began, event, first):
        """What is answered to the same once more; as the first time, unless that is so long ago by now."""
        answer = self.post("/Svc.Event", event)
        if time.monotonic() - began < self.retention["IdempotencySeconds"]:
            self.ck_same(answer, first)
        return answer.body


class Limit(Bounds):
    retention = {"IdempotencyKeys": 5}

    def test_the_oldest_are_forgotten_first(self):
        answers = [self.post("/Svc.Event", order(f"order-{no}")) for no in range(8)]
        for no in range(3, 8):
            self.ck_same(self.post("/Svc.Event", order(f"order-{no}")), answers[no])
        self.assertEqual(self.count(), 8)
        harness.wait_until(lambda: self.post("/Svc.Event", order("order-2")).body != answers[2].body,
                           "the third is forgotten")
        self.assertEqual(self.count(), 9)


class Cleaning(OnceCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Fsync"] = "no"
        config["Retention"] = {"Events": 10}
        return config

    def test_what_is_remembered_moves_along(self):
        segment = os.path.join(self.server.data, "journal-0000000000000001.seg")
        first = self.post("/Svc.Event", order("order-1"))
        self.assertTrue(os.path.exists(segment))
        with socket.create_connection(("127.0.0.1", self.server.port)) as s, s.makefile("rb") as stream:
            body = json.dumps({"Text": "x" * 500000}).encode()
            for _ in range(160):
                s.sendall(f"POST {ORDER} HTTP/1.1\r\nHost: x\r\nPrefer: return=minimal\r\n"
                          f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
                while stream.readline() not in (b"\r\n", b""):
                    pass
        harness.wait_until(lambda: not os.path.exists(segment), "the first segment is gone")
        self.ck_same(self.post("/Svc.Event", order("order-1")), first)
        self.server.kill()
        self.server.start()
        self.ck_same(self.post("/Svc.Event", order("order-1")), first)


if __name__ == "__main__":
    unittest.main()

"""What was sent, as the log tells it: RequestHeaders and RequestBody of an entry."""
import base64
import json
import unittest

import harness
from harness import ADMIN, key

BOTH = "add=RequestHeaders,RequestBody"
FIXED = ["Svc-webhook-id", "Svc-event", "Svc-attempt", "Svc-depth", "webhook-id", "webhook-timestamp"]
TRANSPORT = {"Host", "Content-Length", "Connection"}  # which are of the connection


class Case(harness.ServerCase):
    def raise_event(self, payload=None, resource="Shop.OrderPlaced"):
        """Without blanks, as json has them."""
        event = {"Resource": resource, "Payload": {"No": 1} if payload is None else payload}
        answer = self.post("/Svc.Event", json.dumps(event, separators=(",", ":")).encode())
        self.assertEqual(answer.status, 201, answer)
        return answer.json()[0]

    def entry(self, count=1, conditions="_"):
        """The last entry, when there are so many."""
        found = harness.wait_until(
            lambda: (answer := self.get(f"/Svc.Admin.WebhookLog/{conditions}/{BOTH}")).status == 200
            and len(answer.json()) == count and answer.json(), f"{count} entries")
        return found[-1]

    def expect_sent(self, request, entry, secret=()):
        """Name by name and value by value what the receiver got, but for secrets."""
        sent = {name: value for name, value in request.headers.items() if name not in TRANSPORT}
        for name in secret:
            self.assertEqual("*******", entry["RequestHeaders"][name])
            self.assertNotIn(sent[name], json.dumps(entry))
            sent[name] = entry["RequestHeaders"][name]
        self.assertEqual(entry["RequestHeaders"], sent)


class Sent(Case):
    def test_a_payload_as_it_was_raised(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        self.post("/Svc.Event", '{"Resource":"Shop.OrderPlaced","Payload":{"No":1.10, "Name":"Ä\\n"}}'.encode())
        request, entry = receiver.take(), self.entry()
        self.expect_sent(request, entry)
        self.assertEqual(list(entry["RequestHeaders"]), ["User-Agent", "Accept", "Content-Type", *FIXED])
        self.assertEqual(entry["RequestBody"], request.body.decode())
        self.assertEqual(list(entry)[-2:], ["RequestHeaders", "RequestBody"], "behind what is always shown")

    def test_they_are_hidden(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Headers={"X-Mine": "needle"})
        self.raise_event({"Needle": "needle"})
        self.entry()
        for target in ("_", "_/search=needle", "Sent!=null", "_/add=Sent"):
            answer = self.get(f"/Svc.Admin.WebhookLog/{target}")
            self.assertNotIn(b"needle", answer.body if answer.status == 200 else b"", target)
            self.assertNotIn(b'"Sent"', answer.body if answer.status == 200 else b"", target)
        self.assertEqual(self.get("/Svc.Admin.WebhookLog/Sent!=null").status, 404, "there is no such property")

    def test_conditions_order_and_search(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Headers={"X-Mine": "1"})
        for number in (2, 1):
            self.raise_event({"No": number})
            receiver.take()
        self.entry(2)
        for conditions, count in (("RequestHeaders.X-Mine='1'", 2), ("RequestHeaders.X-Mine='2'", 0),
                                  ("RequestHeaders.Svc-attempt='1'", 2), ("RequestBody='[{\"No\":1}]'", 1),
                                  ("RequestBody.Length=10", 2), ("_/search=\"No\":2,RequestBody", 1)):
            conditions = conditions.replace('"', "%22").replace("{", "%7B").replace("}", "%7D")
            answer = self.server.request("REPORT", f"/Svc.Admin.WebhookLog/{conditions}")
            self.assertEqual(answer.json(), [{"Count": count}], conditions)
        bodies = self.get("/Svc.Admin.WebhookLog/_/order_asc=RequestBody&select=RequestBody").json()
        self.assertEqual([entry["RequestBody"] for entry in bodies], ['[{"No":1}]', '[{"No":2}]'])

    def test_secrets_are_masked_and_signatures_are_not(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing={},
                     Headers={"Authorization": "Bearer of-mine", "X-Api-Key": "also-mine", "X-Plain": "\"plain\"",
                              "X-Other": "Basic b3RoZXI="})
        self.raise_event()
        request, entry = receiver.take(), self.entry()
        self.assertTrue(entry["RequestHeaders"]["webhook-signature"].startswith("v1,"))
        self.expect_sent(request, entry, ["Authorization", "X-Api-Key", "X-Other"])

    def test_what_the_settings_were_then(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Headers={"X-Mine": "old"})
        self.raise_event()
        old = receiver.take()
        self.entry()
        self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", {"Headers": {"X-Mine": "new"}})
        self.server.kill()
        self.server.start()
        self.raise_event()
        new = receiver.take()
        self.expect_sent(new, self.entry(2))
        self.expect_sent(old, self.get(f"/Svc.Admin.WebhookLog/_/limit=1&{BOTH}").json()[0])

    def test_bodies_that_were_made(self):
        """They stand in the log themselves, the first 4 KiB of them."""
        receiver = self.receiver()
        for path, members in (("/csv", {"Headers": {"Content-Type": "text/csv"}}),
                              ("/standard", {"Format": "StandardWebhooks"}),
                              ("/custom", {"CustomPayloadRequest": {"URI": "/Svc.Echo/a=1"}}),
                              ("/nothing", {"CustomPayloadRequest": {"URI": "/Shop.Person"}}),
                              ("/long", {"CustomPayloadRequest": {"URI": "/Svc.Echo", "Body": {"t": "ä" * 4000}}})):
            self.webhook(Destination=receiver.url(path), EventSelector="/Shop.OrderPlaced", **members)
        self.raise_event([{"No": 1}, {"No": 2}])
        requests = {request.path: request for request in (receiver.take() for _ in range(5))}
        self.entry(5)
        for path, request in requests.items():
            entry, = self.get(f"/Svc.Admin.WebhookLog/Destination={receiver.url(path).replace('/', '%2F')}/{BOTH}").json()
            self.expect_sent(request, entry)
            kept = request.body[:4096].decode(errors="ignore")
            self.assertEqual(entry["RequestBody"], kept or None, path)
            self.assertEqual(entry["BodyByteCount"], len(request.body), path)

    def test_bytes(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.ReportReady")
        pdf = bytes(range(256))
        answer = self.server.request("POST", "/Svc.Event/Resource=Shop.ReportReady", pdf,
                                     {"Content-Type": "application/pdf"}, raw=True)
        self.assertEqual(answer.status, 201, answer)
        request, entry = receiver.take(), self.entry()
        self.expect_sent(request, entry)
        self.assertEqual(entry["RequestBody"], "base64:" + base64.b64encode(pdf).decode())

    def test_what_was_not_sent(self):
        """An attempt that ended before, and one without a body."""
        receiver = self.receiver()
        aborted = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                               CustomPayloadRequest={"URI": "/Shop.Person", "BreakOnNoContent": True})
        self.raise_event()
        entry = self.entry()
        self.assertEqual((entry["RequestHeaders"], entry["RequestBody"]), (None, None))
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={aborted['Id']}")
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Method="HEAD")
        self.raise_event()
        request, entry = receiver.take(), self.entry(2)
        self.expect_sent(request, entry)
        self.assertIsNone(entry["RequestBody"])

    def test_to_the_server_itself(self):
        self.webhook(Destination="/Shop.Message", EventSelector="/Shop.OrderPlaced")
        self.raise_event({"Text": "hello"})
        entry = self.entry()
        self.assertEqual(list(entry["RequestHeaders"]), ["Content-Type", *FIXED])
        self.assertEqual(entry["RequestBody"], '[{"Text":"hello"}]')

    def test_when_the_delivery_is_gone(self):
        """Then nobody knows the payload any more; what the entry knows itself stays."""
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Headers={"X-Mine": "1"})
        event = self.raise_event()
        self.entry()
        self.server.request("DELETE", f"/Svc.Event/Id={event['Id']}")
        self.assertEqual(self.entry()["RequestBody"], '[{"No":1}]', "the delivery holds it")
        self.server.request("DELETE", "/Svc.Admin.Delivery/_/unsafe=true")
        entry = self.entry()
        self.assertIsNone(entry["RequestBody"])
        self.assertEqual((entry["RequestHeaders"]["X-Mine"], entry["RequestHeaders"]["webhook-id"]), ("1", event["Id"]))

    def test_streams(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        self.raise_event()
        self.entry()
        data = self.server.raw(f"GET /Svc.Admin.WebhookLog/ObjectNo>0/{BOTH} HTTP/1.0\r\nHost: x\r\n"
                               "Accept: text/event-stream\r\n\r\n".encode(), seconds=1)
        self.assertIn(b'"RequestBody":"[{\\"No\\":1}]"', data)


class ByRight(harness.KeyedCase):
    def make_config(self):
        return {"RequireApiKey": True, "Resources": [{"Name": "Shop.Paid", "Kind": "EventResource"}],
                "ApiKeys": [key("admin", (["*"], ["*"])), key("log", (["Svc.Admin.WebhookLog"], ["GET"])),
                            key("both", (["Svc.Admin.WebhookLog", "Shop.Paid"], ["GET"]))]}

    def test_bodies_are_shown_to_who_may_get_the_event(self):
        receiver = self.receiver()
        self.created("/Svc.Admin.Webhook", {"Destination": receiver.url(), "EventSelector": "/Shop.Paid"}, ADMIN)
        self.created("/Svc.Admin.Webhook", {"Destination": receiver.url(), "EventSelector": "/Shop.Paid",
                                            "Format": "StandardWebhooks"}, ADMIN)
        self.created("/Svc.Event", {"Resource": "Shop.Paid", "Payload": {"n": "canary"}}, ADMIN)
        self.settle()
        target = f"/Svc.Admin.WebhookLog/_/{BOTH}"
        for name, sees in (("admin", True), ("both", True), ("log", False)):
            entries = self.get(target, {"Authorization": f"apikey {name}-key"}).json()
            self.assertEqual([entry["RequestBody"] is not None for entry in entries], [sees] * 2, name)
            self.assertEqual(entries[0]["RequestHeaders"]["Svc-event"], "Shop.Paid")
        headers = {"Authorization": "apikey log-key"}
        for conditions in ("RequestBody!=null", "_/search=canary,RequestBody", "RequestBody.Length>1"):
            answer = self.server.request("REPORT", f"/Svc.Admin.WebhookLog/{conditions}", headers=headers)
            self.assertEqual(answer.json(), [{"Count": 0}], conditions)


if __name__ == "__main__":
    unittest.main()

"""CloudEvents 1.0 in and out: what a sender sends reaches receivers, streams and selectors with its
attributes, over restarts; and the handshake by which a receiver agrees (Verify), both ways."""
import base64
import hashlib
import http.client
import json
import unittest
import urllib.parse

import harness
from test_signing import signature

SOURCE = "https://events.shop.example/orders"
ORIGIN = "events.shop.example"
RESOURCES = [
    {"Name": "Shop.Photo", "Kind": "EventResource", "Payload": {"ContentType": "image/*"}},
    {"Name": "Shop.Packed", "Kind": "EventResource", "CloudEventsType": "com.example.packed"},
    {"Name": "Shop.Sized", "Kind": "EventResource", "Properties": [{"Name": "Size", "Type": "integer"}]},
]
http.client._MAXHEADERS = 1000  # of our receivers

STRUCTURED = {"Content-Type": "application/cloudevents+json"}
BATCH = {"Content-Type": "application/cloudevents-batch+json"}


def cloudevent(number, kind="com.example.packed", **members):
    return {"specversion": "1.0", "id": str(number), "source": "urn:example:sender", "type": kind, **members}


def attributes(request):
    """Of a request in binary mode, decoded."""
    return {name[3:].lower(): urllib.parse.unquote(value, errors="strict")
            for name, value in request.headers.items() if name.lower().startswith("ce-")}


class CloudCase(harness.ServerCase):
    source = SOURCE

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        return dict(config, Resources=config["Resources"] + RESOURCES, CloudEventsSource=self.source,
                    AllowedCloudEventsOrigins=["other.example", "third.example"])

    def structured(self, event):
        return self.created("/Svc.Event", event, STRUCTURED)

    def restart(self):
        self.server.kill()
        self.server.start()


class Out(CloudCase):
    shares_server = True

    def hook(self, **members):
        receiver = self.receiver()
        members.setdefault("EventSelector", "/Shop.Packed")
        webhook = self.webhook(Destination=receiver.url(), **members)
        return receiver, webhook

    def test_what_came_goes_on_in_binary_mode(self):
        receiver, _ = self.hook(Format="CloudEventsBinary")
        event = self.structured(cloudevent(
            1, subject="Größe \"5 %\" €😀", time="2026-11-23T09:30:00.25+01:00", dataschema="https://x.example/s",
            datacontenttype="application/vnd.x+json", traceparent="00-1", level=-7, urgent=True, data={"No": 1.10}))
        request = receiver.take()
        self.assertEqual(attributes(request), {
            "specversion": "1.0", "id": "1", "source": "urn:example:sender", "type": "com.example.packed",
            "subject": "Größe \"5 %\" €😀", "time": "2026-11-23T09:30:00.25+01:00",
            "dataschema": "https://x.example/s", "traceparent": "00-1", "level": "-7", "urgent": "true"})
        self.assertEqual(request.headers["ce-subject"],
                         "Gr%C3%B6%C3%9Fe%20%225%20%25%22%20%E2%82%AC%F0%9F%98%80")
        self.assertEqual(request.headers["Content-Type"], "application/vnd.x+json")
        self.assertEqual(request.body, b'{"No": 1.1}')
        self.assertEqual(request.headers["webhook-id"], event["Id"])
        self.assertNotIn("ce-datacontenttype", request.headers)

    def test_what_came_goes_on_in_structured_mode(self):
        receiver, _ = self.hook(Format="CloudEventsStructured")
        came = cloudevent(2, subject="ü", level=-7, urgent=True, dataschema="https://x.example/s",
                          time="2026-11-23T09:30:00Z", datacontenttype="application/json", data={"No": 1})
        event = self.structured(came)
        request = receiver.take()
        self.assertEqual(request.json(), came)
        self.assertEqual(request.headers["Content-Type"], "application/cloudevents+json")
        self.assertEqual(request.headers["webhook-id"], event["Id"])
        self.assertEqual(attributes(request), {})

    def test_what_was_no_cloudevent_becomes_one(self):
        receivers = [self.hook(Format=form)[0] for form in ("CloudEventsBinary", "CloudEventsStructured")]
        event = self.created("/Svc.Event", {"Resource": "Shop.Packed", "Payload": [{"No": 1}, {"No": 2}]})
        expected = {"specversion": "1.0", "id": event["Id"], "source": SOURCE, "type": "com.example.packed",
                    "time": event["Time"]}
        binary, structured = [receiver.take() for receiver in receivers]
        self.assertEqual(attributes(binary), expected)
        self.assertEqual(binary.headers["Content-Type"], "application/json")
        self.assertEqual(binary.json(), [{"No": 1}, {"No": 2}])
        self.assertEqual(structured.json(), dict(expected, datacontenttype="application/json",
                                                 data=[{"No": 1}, {"No": 2}]))

    def test_without_a_type_of_its_own_the_resource_is_the_type(self):
        receiver, _ = self.hook(Format="CloudEventsStructured", EventSelector="/Shop.OrderPlaced")
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})
        sent = receiver.take().json()
        self.assertEqual((sent["type"], sent["data"]), ("Shop.OrderPlaced", {"No": 1}))

    def test_a_stored_entity_raises_one(self):
        receiver, _ = self.hook(Format="CloudEventsStructured", EventSelector="/Shop.PersonCreated")
        person = self.created("/Shop.Person", {"Name": "Ada"})
        self.assertEqual(receiver.take().json()["data"], person)

    def test_bytes(self):
        photo = b"\x89PNG\x00\xff"
        receivers = [self.hook(Format=form, EventSelector="/Shop.Photo")[0]
                     for form in ("CloudEventsBinary", "CloudEventsStructured")]
        self.created("/Svc.Event/Resource=Shop.Photo", photo, {"Content-Type": "image/png"})
        self.structured(cloudevent(3, "Shop.Photo", datacontenttype="image/gif",
                                   data_base64=base64.b64encode(photo).decode()))
        kinds = {"image/png", "image/gif"}
        binary, structured = [[receiver.take() for _ in kinds] for receiver in receivers]
        self.assertEqual({(request.headers["Content-Type"], request.body) for request in binary},
                         {(kind, photo) for kind in kinds})
        self.assertEqual({request.json()["datacontenttype"] for request in structured}, kinds)
        for request in structured:
            self.assertEqual(base64.b64decode(request.json()["data_base64"]), photo)
            self.assertNotIn("data", request.json())

    def test_signatures_cover_what_is_sent(self):
        for form in "CloudEventsBinary", "CloudEventsStructured":
            receiver, webhook = self.hook(Format=form, Signing={})
            secret, = webhook["Signing"]["Secrets"]
            self.structured(cloudevent(form, data={"No": 1}))
            request = receiver.take()
            self.assertEqual(request.headers["webhook-signature"], signature(secret, request))

    @harness.apart
    def test_attributes_are_there_after_a_restart(self):
        """Kept, found, and sent again: from the journal, and when it is cleaned too."""
        receiver, _ = self.hook(Format="CloudEventsStructured", EventSelector="/Shop.Packed/ce.subject=cage")
        came = cloudevent(4, subject="cage", level=7, datacontenttype="application/json", data={"No": 1})
        event = self.structured(came)
        first = receiver.take().json()
        self.settle()
        self.restart()
        kept = self.get(f"/Svc.Event/Id={event['Id']}").json()[0]
        self.assertEqual(kept["ce"], {name: value for name, value in came.items() if name != "data"})
        self.assertEqual(kept["ClientId"], "urn:example:sender 4")
        again = self.server.request("PATCH", "/Svc.Admin.Delivery/_", {"State": "Pending"})
        self.assertEqual(again.status, 200, again)
        self.assertEqual(receiver.take().json(), first)
        self.assertEqual(self.structured(came)["Id"], event["Id"])

    def test_lines_go_on_as_an_array(self):
        receiver, _ = self.hook(Format="CloudEventsBinary")
        headers = {f"ce-{name}": value for name, value in cloudevent(5).items()}
        self.created("/Svc.Event", b'{"No":1}\n{"No":2}\n', dict(headers, **{"Content-Type": "application/x-ndjson"}))
        request = receiver.take()
        self.assertEqual(request.headers["Content-Type"], "application/json")
        self.assertEqual(request.json(), [{"No": 1}, {"No": 2}])

    def test_a_custom_payload_is_the_data_in_binary_mode(self):
        receiver, _ = self.hook(Format="CloudEventsBinary", CustomPayloadRequest={"URI": "/Svc.Echo/Answer=42"})
        self.structured(cloudevent(6, dataschema="https://x.example/s", subject="x", data={"No": 1}))
        request = receiver.take()
        self.assertEqual(request.json(), [{"Answer": 42}])
        self.assertEqual(attributes(request)["subject"], "x")
        self.assertNotIn("dataschema", attributes(request))

    def test_as_many_attributes_as_there_may_be(self):
        receiver, _ = self.hook(Format="CloudEventsBinary",
                                Headers={f"X-{number}": "x" for number in range(64)})
        event = cloudevent(7, **{f"ext{number}": "x" for number in range(60)})
        self.structured(event)
        self.assertEqual(len(attributes(receiver.take())), 65)  # with the time
        answer = self.post("/Svc.Event", dict(event, id="8", one="more"), STRUCTURED)
        self.assertIn("more than 64 attributes", answer.headers["Svc-info"])
        answer = self.post("/Svc.Event", cloudevent(8, much="x" * 16384), STRUCTURED)
        self.assertIn("more than 16384 bytes, which is the limit CloudEventAttributeBytes", answer.headers["Svc-info"])
        answer = self.post("/Svc.Event", cloudevent("8" * 1006), STRUCTURED)
        self.assertIn("more than 1024 bytes", answer.headers["Svc-info"])
        self.structured(cloudevent("8" * 1005))

    @harness.apart
    def test_more_attributes_where_the_configuration_allows_them(self):
        self.server.stop()
        self.server.config["Limits"] = {"CloudEventAttributes": 300, "CloudEventAttributeBytes": 30000}
        self.server.start()
        receiver, webhook = self.hook(Format="CloudEventsBinary")
        event = cloudevent(9, much="x" * 12000, **{f"ext{number}": "x" * 16 for number in range(295)})
        self.structured(event)
        self.assertEqual(len(attributes(receiver.take())), 301)
        answer = self.post("/Svc.Event", dict(event, id="10", one="more"), STRUCTURED)
        self.assertIn("more than 300 attributes, which is the limit CloudEventAttributes", answer.headers["Svc-info"])
        self.server.stop()
        self.server.config["Limits"] = {}  # what is kept is sent as it is
        self.server.start()
        self.assertEqual(self.server.request(
            "PATCH", f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}", {"State": "Pending"}).status, 200)
        self.assertEqual(len(attributes(receiver.take())), 301)

    @harness.apart
    def test_one_server_takes_what_another_sends(self):
        """Here it is its own receiver, by HTTP and as a local destination."""
        receiver, _ = self.hook(Format="CloudEventsStructured", EventSelector="/Shop.OrderPlaced/ce.subject=on")
        self.webhook(Destination="/Svc.Event", Format="CloudEventsBinary", EventSelector="/Shop.Sized")
        self.structured(cloudevent(9, "Shop.Sized", subject="on", data={"Size": 3}))
        # It comes back under its own source and id: the same event, which is not raised twice.
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog/Destination=%2FSvc.Event").status == 200, "it is sent")
        log = self.get("/Svc.Admin.WebhookLog/Destination=%2FSvc.Event").json()[0]
        self.assertTrue(log["IsSuccess"], log)
        self.assertEqual(self.server.request("REPORT", "/Svc.Event").json(), [{"Count": 1}])
        self.assertTrue(receiver.nothing(0))


class RefusingCase(CloudCase):
    def refused(self, words, **members):
        members.setdefault("Destination", "http://127.0.0.1:9/x")
        answer = self.post("/Svc.Admin.Webhook", dict(members, EventSelector="/Shop.Packed"))
        self.assertEqual(answer.status, 400, answer)
        for word in words:
            self.assertIn(word, answer.json()["detail"])


class Refused(RefusingCase):
    source = None

    def test_without_a_source(self):
        self.refused(["Format: CloudEventsBinary", "CloudEventsSource"], Format="CloudEventsBinary")
        self.refused(["Format: CloudEventsStructured", "CloudEventsSource"], Format="CloudEventsStructured")
        self.refused(["Verify: ", "CloudEventsSource"], Verify="CloudEvents")
        self.refused(["Verify", "CloudEvents"], Verify="yes")

    def test_a_source_that_goes_later(self):
        """What came with a source goes on with it; what needs the configuration's is aborted, and says so."""
        self.server.stop()
        self.server.config["CloudEventsSource"] = SOURCE
        self.server.start()
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.Packed", Format="CloudEventsStructured")
        self.server.stop()
        self.server.config["CloudEventsSource"] = None
        self.server.start()
        self.created("/Svc.Event", {"Resource": "Shop.Packed", "Payload": {"No": 1}})
        self.structured(cloudevent(1, data={"No": 2}))
        self.assertEqual(receiver.take().json()["data"], {"No": 2})
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Aborted").status == 200, "it is aborted")
        self.assertIn("CloudEventsSource", self.get("/Svc.Admin.Delivery/State=Aborted").json()[0]["LastError"])


class RefusedWithSource(RefusingCase):
    source = "/shop"

    def test_what_a_source_does_not_mend(self):
        self.refused(["Verify: ", "host"], Verify="CloudEvents")
        self.refused(["Format: ", "text/csv"], Format="CloudEventsBinary", Headers={"Content-Type": "text/csv"})


class Consent:
    """What a receiver answers to OPTIONS; deliveries are 200."""

    def __init__(self, **answer):
        self.answer = {name.replace("_", "-"): value for name, value in answer.items()}
        self.asked = []

    def __call__(self, request):
        if request.method != "OPTIONS":
            return 200
        self.asked.append(request)
        return 200, self.answer, b""


class Verify(CloudCase):
    def hook(self, consent, **members):
        receiver = self.receiver(consent)
        members.setdefault("EventSelector", "/Shop.Packed")
        return receiver, self.webhook(Destination=receiver.url("/hook?x=1"), Verify="CloudEvents", **members)

    def raise_event(self, number):
        return self.created("/Svc.Event", {"Resource": "Shop.Packed", "Payload": {"No": number}})

    def status(self, webhook):
        return self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}/select=Status").json()[0]["Status"]

    def wait_refused(self, webhook, why):
        def refused():
            """And to be asked again: while it is asked, Reason is that of the time before."""
            status = self.status(webhook)
            return status if why in status["Reason"] and status["NextAttemptTime"] is not None else None

        status = harness.wait_until(refused, f"it is refused: {why}")
        self.assertEqual(status["State"], "Unverified")
        self.assertGreater(status["Pending"], 0)

    def test_the_receiver_is_asked_once_and_agrees(self):
        consent = Consent(WebHook_Allowed_Origin=ORIGIN, WebHook_Allowed_Rate="*")
        receiver, webhook = self.hook(consent, Headers={"Authorization": "apikey secret"})
        self.assertEqual(self.status(webhook)["State"], "Unverified")
        self.raise_event(1)
        asked, first = receiver.take(), receiver.take()
        self.assertEqual((asked.method, asked.path, asked.headers["WebHook-Request-Origin"]),
                         ("OPTIONS", "/hook?x=1", ORIGIN))
        for name in "WebHook-Request-Rate", "Authorization", "webhook-id":
            self.assertNotIn(name, asked.headers)
        self.assertEqual((first.method, first.headers["WebHook-Request-Origin"]), ("POST", ORIGIN))
        harness.wait_until(lambda: self.status(webhook)["State"] == "Active", "it is active")
        self.settle()
        for number in 2, 3:  # the second time from the journal
            self.raise_event(number)
            self.assertEqual(receiver.take().method, "POST")
            self.settle()
            self.restart()
        self.assertEqual(len(consent.asked), 1)

    def test_consent_is_kept_when_other_things_of_the_lane_are(self):
        """Failures and Retry-After are in the same record."""
        consent = Consent(WebHook_Allowed_Origin="*", WebHook_Allowed_Rate="6000")
        answers = iter([500, 200])
        receiver, _ = self.hook(lambda request: consent(request) if request.method == "OPTIONS" else next(answers),
                                Delivery={"RetrySchedule": [0.01]})
        self.raise_event(1)
        self.assertEqual([receiver.take().method for _ in range(3)], ["OPTIONS", "POST", "POST"])
        self.settle()
        self.restart()
        answers = iter([200])
        self.raise_event(2)
        self.assertEqual(receiver.take().method, "POST")

    def test_without_consent_deliveries_wait(self):
        consent = Consent()
        receiver, webhook = self.hook(consent)
        self.raise_event(1)
        self.wait_refused(webhook, "has no WebHook-Allowed-Origin")
        refusals = [({"WebHook-Allowed-Origin": "another.example"}, "is another"),
                    ({"WebHook-Allowed-Origin": ORIGIN, "WebHook-Allowed-Rate": "much"}, "neither a number"),
                    ({"WebHook-Allowed-Origin": ORIGIN, "WebHook-Allowed-Rate": "0"}, "neither a number")]
        for number, (consent.answer, why) in enumerate(refusals):
            self.patch(webhook, {"Label": str(number)})
            self.wait_refused(webhook, why)
        self.raise_event(2)
        self.assertEqual({receiver.take().method for _ in range(4)}, {"OPTIONS"})
        self.assertTrue(receiver.nothing())
        # On resume it is asked again, and everything goes out.
        self.patch(webhook, {"IsPaused": True})
        consent.answer = {"WebHook-Allowed-Origin": ORIGIN}
        self.patch(webhook, {"IsPaused": False})
        self.assertEqual([receiver.take().method for _ in range(3)], ["OPTIONS", "POST", "POST"])

    def test_who_does_not_answer_has_not_agreed(self):
        def drop(request):
            if request.method == "OPTIONS":
                raise harness.Receiver.Drop
        _, webhook = self.hook(drop)
        self.raise_event(1)
        harness.wait_until(lambda: "asked at" in self.status(webhook)["Reason"], "it was asked")
        self.assertEqual(self.status(webhook)["State"], "Unverified")
        self.restart()
        harness.wait_until(lambda: "asked at" in self.status(webhook)["Reason"], "it is asked anew")

    def test_a_changed_destination_is_asked(self):
        first = Consent(WebHook_Allowed_Origin=ORIGIN)
        second = Consent()
        receiver, webhook = self.hook(first)
        other = self.receiver(second)
        self.raise_event(1)
        self.assertEqual([receiver.take().method for _ in range(2)], ["OPTIONS", "POST"])
        self.patch(webhook, {"Destination": other.url("/other")})
        self.assertEqual(self.status(webhook)["State"], "Unverified")
        self.raise_event(2)
        self.wait_refused(webhook, "has no WebHook-Allowed-Origin")
        self.assertEqual([request.path for request in second.asked], ["/other"])
        # The first one's consent still holds for the first one.
        self.patch(webhook, {"Destination": receiver.url("/hook?x=1")})
        self.assertEqual(receiver.take().method, "POST")
        self.patch(webhook, {"Verify": None, "Destination": other.url("/other")})
        self.raise_event(3)
        self.assertEqual([other.take().method for _ in range(2)], ["OPTIONS", "POST"])

    def test_a_changed_source_asks_anew(self):
        consent = Consent(WebHook_Allowed_Origin="*")
        receiver, _ = self.hook(consent)
        self.raise_event(1)
        self.assertEqual([receiver.take().method for _ in range(2)], ["OPTIONS", "POST"])
        self.settle()
        self.server.stop()
        self.server.config["CloudEventsSource"] = "https://new.example/x"
        self.server.start()
        self.raise_event(2)
        asked, sent = receiver.take(), receiver.take()
        self.assertEqual((asked.method, asked.headers["WebHook-Request-Origin"]), ("OPTIONS", "new.example"))
        self.assertEqual(sent.headers["WebHook-Request-Origin"], "new.example")

    def test_the_allowed_rate_caps_the_own(self):
        consent = Consent(WebHook_Allowed_Origin=ORIGIN, WebHook_Allowed_Rate="60")
        receiver, webhook = self.hook(consent, Delivery={"RatePerSecond": 100})
        for number in range(5):
            self.raise_event(number)
        self.assertEqual(receiver.take().headers["WebHook-Request-Rate"], "6000")
        self.assertEqual(receiver.take().method, "POST")
        harness.wait_until(lambda: "RatePerSecond (1)" in (self.status(webhook)["Reason"] or ""), "it is throttled")

    def test_a_deleted_webhook_is_not_asked_to_the_end(self):
        consent = Consent()
        receiver, webhook = self.hook(consent)
        self.raise_event(1)
        receiver.take()
        self.assertEqual(self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}").status, 200)
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.Delivery").json() == [{"Count": 0}], "gone")

    def patch(self, webhook, body):
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", body)
        self.assertEqual(answer.status, 200, answer)


class Asked(CloudCase):
    """The other way: a sender asks whether it may send."""

    def make_config(self):
        keys = [{"Name": "sender", "KeySha256": hashlib.sha256(b"key").hexdigest(),
                 "AllowAccess": [{"Resources": ["*"], "Methods": ["*"]}]}]
        return dict(super().make_config(), RequireApiKey=True, ApiKeys=keys)

    def settle(self):
        pass

    def ask(self, target, origin="other.example", **headers):
        return self.server.request("OPTIONS", target, headers={"WebHook-Request-Origin": origin, **headers})

    def test_who_is_allowed_needs_no_key(self):
        for target in "/Svc.Event", "/event", "/Svc.Event/_", "/Svc.Event/Tenant=acme":
            answer = self.ask(target, "Third.example", **{"WebHook-Request-Rate": "120"})
            self.assertEqual(answer.status, 200, answer)
            self.assertEqual((answer.headers["WebHook-Allowed-Origin"], answer.headers["WebHook-Allowed-Rate"],
                              answer.headers["Allow"], answer.body), ("Third.example", "*", "POST", b""))

    def test_nobody_else_is_told_anything(self):
        for target, origin in [("/Svc.Event", "evil.example"), ("/Shop.Person", "other.example"), ("/", "other.example"),
                               ("/nowhere", "other.example")]:
            answer = self.ask(target, origin)
            self.assertEqual(answer.status, 401, (target, answer))
            self.assertNotIn("WebHook-Allowed-Origin", answer.headers)
        answer = self.server.request("OPTIONS", "/Svc.Event", headers={"Authorization": "apikey key",
                                                                        "WebHook-Request-Origin": "evil.example"})
        self.assertEqual(answer.status, 200)
        self.assertNotIn("WebHook-Allowed-Origin", answer.headers)

    def test_the_rate_of_an_account_is_told(self):
        self.server.stop()
        self.server.config["Limits"] = {"AccountRequestsPerSecond": 50}
        self.server.start()
        self.assertEqual(self.ask("/Svc.Event").headers["WebHook-Allowed-Rate"], "3000")

    def test_one_server_asks_another(self):
        """This one asks itself: its own origin is allowed as any is."""
        self.server.stop()
        self.server.config["AllowedCloudEventsOrigins"] = ["*"]
        self.server.start()
        key = {"Authorization": "apikey key"}
        self.webhook_with(key, Destination=f"http://127.0.0.1:{self.server.port}/Svc.Event", EventSelector="/Shop.Packed",
                          Format="CloudEventsStructured", Verify="CloudEvents", Headers=key)
        self.created("/Svc.Event", cloudevent(1), dict(key, **STRUCTURED))
        harness.wait_until(lambda: self.get("/Svc.Admin.Delivery/State=Delivered", key).status == 200, "it is delivered")

    def webhook_with(self, key, **members):
        return self.created("/Svc.Admin.Webhook", members, key)


class Streams(CloudCase):
    def test_a_stream_is_narrowed_by_attributes(self):
        self.post("/Svc.Event", [cloudevent(1, subject="a"), cloudevent(2, subject="b", data={"No": 2})], BATCH)
        target = "/Svc.Event/ce.subject=b&ObjectNo%3E0"
        raw = self.server.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n".encode(), seconds=1)
        data = [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: ")]
        self.assertEqual([(entity["ce"]["id"], entity["Payload"]) for entity in data], [("2", [{"No": 2}])])

    def test_explain_tells_of_attributes(self):
        event = self.structured(cloudevent(1, "Shop.Sized", subject="a", data={"Size": 3}))
        answer = self.post("/Svc.Explain", {"EventSelector": "/Shop.Sized/ce.subject=b&Size>2", "EventId": event["Id"]})
        explained, = answer.json()
        self.assertEqual(explained["Conditions"], [{"Condition": "ce.subject=b", "Value": "a", "Holds": False},
                                                   {"Condition": "Size>2", "Value": 3, "Holds": True}])
        self.assertFalse(explained["Matches"])
        photo = self.created("/Svc.Event", b"x", {"ce-specversion": "1.0", "ce-id": "1", "ce-source": "/x",
                                                   "ce-type": "Shop.Photo", "ce-subject": "a", "Content-Type": "image/x"})
        for selector, matches in [("/Shop.Photo/ce.subject=a", True), ("/Shop.Photo/ce.subject=b", False),
                                  ("/Shop.*/ce.subject=a", False)]:
            answer = self.post("/Svc.Explain", {"EventSelector": selector, "EventId": photo["Id"]})
            self.assertEqual([one["Matches"] for one in answer.json()], [matches], selector)


if __name__ == "__main__":
    unittest.main()

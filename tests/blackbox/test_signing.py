"""Signatures and the form of the body, as a receiver in Python verifies them by the Standard Webhooks
specification; secrets that the server makes and rotates."""
import base64
import hashlib
import hmac
import json
import unittest

import harness

PHOTO = {"Name": "Shop.Photo", "Kind": "EventResource", "Payload": {"ContentType": "image/png"}}


def signature(secret, request):
    """`v1,` and base64 of HMAC-SHA256 over `id.timestamp.body`."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    text = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()


class SigningCase(harness.ServerCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        return dict(config, Resources=config["Resources"] + [PHOTO])

    def raise_event(self, payload=None):
        return self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": payload or {"No": 1}})

    def patch(self, webhook, body):
        answer = self.server.request("PATCH", f"/Svc.Admin.Webhook/Id={webhook['Id']}", body)
        self.assertEqual(answer.status, 200, answer.body)
        return answer.json()[0]


class LargeBodies(SigningCase):
    def made_of_messages(self, **signing):
        for number in range(4):
            self.created("/Shop.Message", {"No": number, "Text": "x" * 600000})
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing=signing,
                     CustomPayloadRequest={"URI": "/Shop.Message"})
        self.raise_event()
        return receiver

    def test_each_secret_signs_one(self):
        """Piece by piece, while others are answered."""
        secrets = ["whsec_" + base64.b64encode(bytes([byte] * 32)).decode() for byte in range(10)]
        request = self.made_of_messages(Secrets=secrets).take()
        self.assertGreater(len(request.body), 2400000)
        self.assertEqual(request.headers["webhook-signature"].split(), [signature(secret, request) for secret in secrets])

    def test_ed25519_signs_none(self):
        self.made_of_messages(Secrets=["whsk_" + base64.b64encode(bytes(32)).decode()])
        harness.wait_until(lambda: self.server.request("REPORT", "/Svc.Admin.Delivery/State=Aborted").json() ==
                           [{"Count": 1}], "it is aborted")
        delivery, = self.server.request("GET", "/Svc.Admin.Delivery/State=Aborted").json()
        self.assertRegex(delivery["LastError"], r"^the body has \d+ bytes, more than .* Ed25519Bytes \(2097152 bytes\)$")


class Secrets(SigningCase):
    def test_a_made_secret_signs(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing={})
        secret, = webhook["Signing"]["Secrets"]
        for _ in range(2):
            self.raise_event()
            request = receiver.take()
            self.assertEqual(request.headers["webhook-signature"], signature(secret, request))
            self.server.kill()
            self.server.start()

    def test_after_a_rotation_both_sign(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing={})
        old, = webhook["Signing"]["Secrets"]
        hidden, new = self.patch(webhook, {"Signing": {"Rotate": True}})["Signing"]["Secrets"]
        self.assertEqual(hidden, "*******")
        self.assertNotEqual(old, new)
        self.raise_event()
        request = receiver.take()
        self.assertEqual(request.headers["webhook-signature"].split(), [signature(old, request), signature(new, request)])
        self.assertEqual(self.patch(webhook, {"Signing": {"Secrets": ["*******", "*******"]}})["Signing"]["Secrets"],
                         ["*******", "*******"])
        # With KeepSeconds 0 the others go at once.
        third = self.patch(webhook, {"Signing": {"Rotate": True, "KeepSeconds": 0}})["Signing"]["Secrets"]
        self.raise_event()
        request = receiver.take()
        self.assertEqual([request.headers["webhook-signature"]], [signature(secret, request) for secret in third])

    def test_the_others_stop_to_sign_by_themselves(self):
        """Nobody writes anything meanwhile."""
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing={})
        new = self.patch(webhook, {"Signing": {"Rotate": True, "KeepSeconds": 1}})["Signing"]["Secrets"][1]
        signatures = []

        def is_alone():
            self.raise_event()
            request = receiver.take()
            self.assertIn(signature(new, request), request.headers["webhook-signature"].split())
            signatures.append(len(request.headers["webhook-signature"].split()))
            return signatures[-1] == 1
        harness.wait_until(is_alone, "only the new secret signs")
        self.assertEqual(signatures, sorted(signatures, reverse=True))

    def test_a_repetition_is_signed_anew(self):
        """The body and its id stay, the time and the signature are the attempt's."""
        answers = iter([(500, {}, b""), (200, {}, b"")])
        receiver = self.receiver(lambda request: next(answers))
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Signing={},
                               Format="StandardWebhooks", Delivery={"RetrySchedule": [0.01]})
        secret, = webhook["Signing"]["Secrets"]
        self.raise_event()
        first, second = receiver.take(), receiver.take()
        self.assertEqual((first.body, first.headers["webhook-id"]), (second.body, second.headers["webhook-id"]))
        for request in (first, second):
            self.assertEqual(request.headers["webhook-signature"], signature(secret, request))


class Form(SigningCase):
    shares_server = True

    def sent(self, payload, **members):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), **dict({"EventSelector": "/Shop.OrderPlaced"}, **members))
        event = self.raise_event(payload)
        request = receiver.take()
        self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        return event, request

    def test_standard_webhooks(self):
        """`data` is the entity itself when the payload is one, with its numbers as they were written."""
        event, request = self.sent({"Total": 1}, Format="StandardWebhooks")
        self.assertEqual(list(json.loads(request.body)), ["type", "timestamp", "data"])
        self.assertEqual(json.loads(request.body),
                         {"type": "Shop.OrderPlaced", "timestamp": event["Time"], "data": {"Total": 1}})
        self.assertEqual(request.headers["Content-Type"], "application/json")
        self.assertEqual(request.headers["webhook-id"], event["Id"])
        _, request = self.sent([{"Total": 1}, {"Total": 2}], Format="StandardWebhooks")
        self.assertEqual(json.loads(request.body)["data"], [{"Total": 1}, {"Total": 2}])

    def test_numbers_stay_as_they_were_written(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", Format="StandardWebhooks")
        self.created("/Svc.Event/Resource=Shop.OrderPlaced", b'{"Total":1.10,"No":12345678901234567890}')
        self.assertTrue(receiver.take().body.endswith(b',"data":{"Total":1.10,"No":12345678901234567890}}'))

    def test_an_array(self):
        for members in ({}, {"Format": None}, {"Format": "Array"}):
            _, request = self.sent({"Total": 1}, **members)
            self.assertEqual(json.loads(request.body), [{"Total": 1}])

    def test_a_custom_payload_is_sent_as_it_is(self):
        _, request = self.sent({"Total": 1}, Format="StandardWebhooks",
                               CustomPayloadRequest={"URI": "/Svc.Echo/a=1"})
        self.assertNotIn(b'"timestamp"', request.body)

    @harness.apart
    def test_bytes_do_not_fit(self):
        """A pattern may find them all the same."""
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.*", Format="StandardWebhooks")
        answer = self.server.request("POST", "/Svc.Event/Resource=Shop.Photo", b"PNG", {"Content-Type": "image/png"})
        self.assertEqual((answer.status, answer.json()[0]["Webhooks"]), (201, 1))

        def ended():
            answer = self.get("/Svc.Admin.Delivery")
            return answer.json()[0]["State"] == "Aborted" and answer.json()[0]
        harness.wait_until(ended, "the delivery is aborted")
        self.assertIn("StandardWebhooks", ended()["LastError"])
        self.raise_event()
        self.assertEqual(json.loads(receiver.take().body)["type"], "Shop.OrderPlaced")


class Local(SigningCase):
    def ended(self, webhook):
        found = []

        def is_over():
            answer = self.get(f"/Svc.Admin.Delivery/WebhookId={webhook['Id']}")
            found[:] = answer.json() if answer.status == 200 else []
            return found and found[0]["State"] in ("Dead", "Waiting", "Delivered")
        harness.wait_until(is_over, "an outcome")
        return found[0]

    def test_a_refusal_of_our_own_is_final(self):
        """Dead at once, after one attempt, and the webhook goes on."""
        webhook = self.webhook(Destination="/Shop.Person/Name=nobody", Method="PATCH", EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": [1000]})
        self.raise_event({"Age": 1})
        delivery = self.ended(webhook)
        self.assertEqual((delivery["State"], delivery["Attempts"], delivery["LastStatus"]), ("Dead", 1, 404))
        self.assertEqual(self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]["IsPaused"], False)

    def test_the_same_from_a_receiver_is_not(self):
        receiver = self.receiver(lambda request: (404, {}, b""))
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": [1000]})
        self.raise_event()
        delivery = self.ended(webhook)
        self.assertEqual((delivery["State"], delivery["LastStatus"]), ("Waiting", 404))


if __name__ == "__main__":
    unittest.main()

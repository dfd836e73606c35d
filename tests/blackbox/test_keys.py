"""API keys: who may do what, and what nobody gets to see."""
import hashlib
import json
import unittest

import harness

ADMIN = {"Authorization": "apikey admin-key"}
READER = {"Authorization": "apikey reader-key"}
CLERK = {"Authorization": "APIKEY clerk-key"}
DOORMAN = {"Authorization": "apikey doorman-key"}


def key(name, secret, *access):
    return {"Name": name, "KeySha256": hashlib.sha256(secret.encode()).hexdigest(),
            "AllowAccess": [{"Resources": resources, "Methods": methods}
                            for resources, methods in access]}


class Keys(harness.ServerCase):
    shares_server = True

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [
            key("admin", "admin-key", (["Svc.*", "Svc.Admin.*", "Shop.*"], ["*"])),
            key("reader", "reader-key", (["Svc.Admin.*"], ["GET"])),
            key("clerk", "clerk-key", (["Shop.Person"], ["GET", "POST"])),
            key("doorman", "doorman-key", (["Svc.Aggregator"], ["*"])),
        ]
        return config

    @harness.apart
    def test_without_a_key(self):
        for headers in ({}, {"Authorization": "apikey wrong"}, {"Authorization": "Bearer wrong"}):
            answer = self.get("/Shop.Person", headers)
            self.assertEqual(answer.status, 401, headers)
            self.assertEqual(answer.headers["WWW-Authenticate"], 'apikey realm="Svc"')
            self.assertIsNone(answer.headers["ErrorInfo"], "not stored")
        self.assertEqual(self.get("/Svc.Admin.Error", ADMIN).status, 204)

    @harness.apart
    def test_rights(self):
        cases = [
            ("GET", "/Shop.Person", CLERK, 204), ("POST", "/Shop.Person", CLERK, 201),
            ("DELETE", "/Shop.Person", CLERK, 403), ("REPORT", "/Shop.Person", CLERK, 200),
            ("GET", "/Shop.Message", CLERK, 403), ("GET", "/Svc.Admin.Webhook", CLERK, 403),
            ("GET", "/Svc.Admin.Webhook", READER, 204), ("POST", "/Svc.Admin.Webhook", READER, 403),
            ("GET", "/Shop.Person", ADMIN, 200), ("OPTIONS", "/Shop.Person", {}, 401),
        ]
        for method, target, headers, status in cases:
            body = {"Name": "Ada"} if method == "POST" else None
            answer = self.server.request(method, target, body, headers)
            self.assertEqual(answer.status, status, (method, target, answer))

    def test_rights_are_for_a_resource_however_it_is_spelled(self):
        """A proxy's rule for one spelling is none for the others; the key's right is one for all."""
        spellings = ("/Svc.Admin.Webhook", "/webhook", "/WEBHOOK", "/Admin.Webhook", "/%77ebhook", "/?/Svc.Admin.Webhook",
                     "/Svc.Admin.Webhook/", "/Svc.Admin.Webhook/_/_", "/Svc.Admin.Webhook?limit=1", "/%53vc%2eAdmin%2EWebhook",
                     "http://x/webhook")
        for target in spellings:
            for method in ("GET", "REPORT", "HEAD", "OPTIONS", "POST", "DELETE"):
                answer = self.server.request(method, target, {} if method == "POST" else None, CLERK)
                self.assertEqual(answer.status, 403, (method, target))
            self.assertIn(self.get(target, READER).status, (200, 204), target)
        # Nor are there ways around: what else reads for a key has the key's rights.
        self.assertEqual(self.get("/Svc.Aggregator", CLERK).status, 403)
        answer = self.server.request("GET", "/Svc.Aggregator", {"w": "GET /webhook"}, DOORMAN)
        self.assertEqual(answer.status, 403, answer)
        for spelling in spellings[:5]:
            webhook = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
                       "CustomPayloadRequest": {"URI": spelling, "Headers": DOORMAN}}
            answer = self.post("/Svc.Admin.Webhook", webhook, ADMIN)
            self.assertEqual((answer.status, "may not use GET on 'Svc.Admin.Webhook'" in answer.json()["detail"]),
                             (400, True), spelling)

    @harness.apart
    def test_every_key_reads_what_it_may_use_for_webhooks_too(self):
        webhook = {"Method": "GET", "Destination": "/Svc.AvailableResource", "Headers": CLERK,
                   "EventSelector": "/Shop.OrderPlaced",
                   "CustomPayloadRequest": {"URI": "/", "Headers": {"Authorization": "apikey clerk-key"}}}
        self.assertEqual(self.post("/Svc.Admin.Webhook", webhook, ADMIN).status, 201)
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 7}}, ADMIN)
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog", ADMIN).status == 200, "it is asked")
        listed = json.loads(self.get("/Svc.Admin.WebhookLog", ADMIN).json()[0]["ResponseBody"])
        self.assertEqual({entry["Name"] for entry in listed}, {"Shop.Person", "Svc.AvailableResource"})

    def test_basic_authentication(self):
        """The key as the password, whatever the user."""
        answer = self.get("/Shop.Person", {"Authorization": "Basic YW55Ym9keTphZG1pbi1rZXk="})
        self.assertEqual(answer.status, 204)

    def test_the_listing_shows_what_the_key_may_use(self):
        listed = {entry["Name"]: entry["Methods"] for entry in self.get("/", CLERK).json()}
        self.assertEqual(listed["Shop.Person"], ["GET", "POST", "REPORT", "HEAD"])
        self.assertEqual(set(listed), {"Shop.Person", "Svc.AvailableResource"})

    def test_secrets_are_masked_for_all(self):
        webhook = self.created("/Svc.Admin.Webhook", {
            "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
            "Headers": {"Authorization": "apikey of-the-receiver", "X-Plain": "shown"},
            "Signing": {"Secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}}, ADMIN)
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        seen, = self.get(target, READER).json()
        self.assertEqual(seen, webhook)
        self.assertEqual(seen["Headers"], {"Authorization": "*******", "X-Plain": "shown"})
        self.assertEqual(seen["Signing"], {"Secrets": ["*******"]})
        self.assertEqual(self.get(target, ADMIN).json(), [webhook])
        for guess in ("Headers.Authorization='apikey%20of-the-receiver'",):
            self.assertEqual(self.get(f"/Svc.Admin.Webhook/{guess}", READER).status, 204)
            self.assertEqual(self.get(f"/Svc.Admin.Webhook/{guess}", ADMIN).status, 204)
        answer = self.get("/Svc.Admin.Webhook/_/search=of-the-receiver", READER)
        self.assertEqual(answer.status, 204)

    def test_writing_the_mask_keeps_the_secret(self):
        webhook = self.created("/Svc.Admin.Webhook", {
            "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced",
            "Headers": {"Authorization": "apikey of-the-receiver"},
            "Signing": {"Secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}}, ADMIN)
        masked = dict(webhook, Headers={"Authorization": "*******"}, Label="new",
                      Signing={"Secrets": ["*******"]})
        answer = self.server.request("PUT", f"/Svc.Admin.Webhook/Id={webhook['Id']}", masked, ADMIN)
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.json(), [dict(webhook, Label="new")])

    def test_stored_errors_hold_no_secrets(self):
        """Neither of the request's headers nor of a webhook's body."""
        body = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/NoSuchEvent",
                "Headers": {"authorization": "apikey of-the-receiver"},
                "Signing": {"Secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}}
        headers = dict(ADMIN, Cookie="session=of-the-browser")
        answer = self.post("/Svc.Admin.Webhook", body, headers)
        self.assertEqual(answer.status, 400, answer)
        broken = self.post("/Svc.Admin.Webhook", '{"Headers":{"Authorization":"apikey of-the-receiver"}',
                           headers)
        self.assertEqual(broken.status, 400)
        for link in (answer.headers["ErrorInfo"], broken.headers["ErrorInfo"]):
            text = self.get(link, ADMIN).body.decode()
            for secret in ("admin-key", "of-the-browser", "of-the-receiver", "whsec_"):
                self.assertNotIn(secret, text)
            self.assertIn("Authorization: apikey *******", text)

    def test_a_local_destination_needs_a_key_that_may(self):
        members = {"Destination": "/Shop.Message", "EventSelector": "/Shop.OrderPlaced"}
        for headers in ({}, {"Authorization": "apikey wrong"}, {"Authorization": "apikey clerk-key"}):
            answer = self.post("/Svc.Admin.Webhook", dict(members, Headers=headers), ADMIN)
            self.assertEqual(answer.status, 400, answer)
            self.assertIn("Destination: ", answer.headers["Svc-info"])
        self.created("/Svc.Admin.Webhook", dict(members, Headers=ADMIN), ADMIN)
        event = {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 7}}
        self.assertEqual(self.post("/Svc.Event", event, CLERK).status, 403)
        self.created("/Svc.Event", event, ADMIN)
        harness.wait_until(lambda: self.get("/Shop.Message", ADMIN).status == 200, "it arrives")


if __name__ == "__main__":
    unittest.main()

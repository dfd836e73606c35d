"""The whole way, once: from an event raised over HTTP to a real receiver."""
import json
import time
import unittest

import harness


class Selecting(harness.ServerCase):
    def test_the_specifications_example(self):
        """Only the entity that satisfies all conditions is sent: once, as an array of one."""
        receiver = self.receiver()
        self.webhook(Label="Long names with an address", Destination=receiver.url(),
                     EventSelector="/PersonCreated/Name.Length>10&Email!=null&Email!=''",
                     Headers={"Authorization": "apikey secret-of-the-receiver"})
        people = [
            {"Name": "Short", "Email": "short@example.com"},
            {"Name": "Long enough, but no address"},
            {"Name": "Long enough, empty address", "Email": ""},
            {"Name": "Ada, Countess of Lovelace", "Email": "ada@example.com"},
            {"Name": "ten chars!", "Email": "ten@example.com"},
        ]
        for person in people:
            self.created("/Shop.Person", person)
        request = receiver.take()
        self.assertEqual(request.method, "POST")
        self.assertEqual(request.path, "/hook")
        self.assertEqual(request.headers["Content-Type"], "application/json")
        self.assertEqual(request.headers["Authorization"], "apikey secret-of-the-receiver")
        self.assertEqual(request.headers["Svc-event"], "Shop.PersonCreated")
        self.assertEqual(request.headers["Svc-attempt"], "1")
        entities = request.json()
        self.assertEqual(len(entities), 1)
        self.assertEqual(entities[0]["Name"], "Ada, Countess of Lovelace")
        self.assertTrue(receiver.nothing(), "nothing else arrives")
        log = self.get("/Svc.Admin.WebhookLog").json()
        self.assertEqual([(entry["IsSuccess"], entry["StatusCode"]) for entry in log], [(True, 200)])

    def test_an_event_raised_directly(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced/Total>=100")
        answer = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced",
                                             "Payload": {"Total": 100.00, "No": 12345678901234567890}})
        self.assertEqual(answer["Webhooks"], 1)
        request = receiver.take()
        self.assertEqual(request.headers["webhook-id"], answer["Id"])
        self.assertEqual(request.headers["Svc-webhook-id"], webhook["Id"])
        self.assertIn(b"12345678901234567890", request.body)
        other = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 99.99}})
        self.assertEqual(other["Webhooks"], 0)
        self.assertTrue(receiver.nothing())

    def test_a_payload_as_the_body_keeps_its_bytes(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        payload = b'[ {"b":1.10, "a":"\\u00e9",\n "c":1E400} ]'
        answer = self.post("/Svc.Event/Resource=Shop.OrderPlaced", payload)
        self.assertEqual(answer.status, 201, answer)
        self.assertEqual(receiver.take().body, payload)

    def test_a_paused_webhook_is_skipped(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced", IsPaused=True)
        answer = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        self.assertEqual(answer["Webhooks"], 0)
        self.assertTrue(receiver.nothing())

    def test_a_deleted_webhook_is_silent(self):
        receiver = self.receiver()
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        answer = self.server.request("DELETE", f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        self.assertEqual((answer.status, answer.json()), (200, [{"Count": 1}]))
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        self.assertTrue(receiver.nothing())


class Bodies(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"RequestCpuMs": 200})

    def test_a_binary_payload_arrives_byte_for_byte(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.ReportReady",
                     Headers={"Content-Type": "text/html"})
        payload = bytes(range(256)) * 40
        answer = self.post("/Svc.Event/Resource=Shop.ReportReady", payload,
                           {"Content-Type": "application/pdf"})
        self.assertEqual(answer.status, 201, answer)
        request = receiver.take()
        self.assertEqual(request.body, payload)
        self.assertEqual(request.headers.get_all("Content-Type"), ["application/pdf"])

    def test_a_relative_destination_lands_in_the_local_resource(self):
        self.webhook(Destination="/Shop.Message", EventSelector="/Shop.OrderPlaced")
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 7}})
        answer = harness.wait_until(lambda: (a := self.get("/Shop.Message")).status == 200 and a,
                                    "the message is stored")
        self.assertEqual([entity["Total"] for entity in answer.json()], [7])

    def test_a_custom_payload_replaces_the_events(self):
        receiver = self.receiver()
        self.created("/Shop.Person", {"Name": "Ada"})
        self.created("/Shop.Person", {"Name": "Grace"})
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"URI": "/Shop.Person/_/select=Name&order_asc=Name"})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Total": 7}})
        self.assertEqual(receiver.take().json(), [{"Name": "Ada"}, {"Name": "Grace"}])

    def aborted(self):
        """The only delivery that is."""
        answer = harness.wait_until(lambda: (a := self.get("/Svc.Admin.Delivery/State=Aborted")).status == 200 and a,
                                    "one is aborted")
        self.assertEqual(len(answer.json()), 1)
        return answer.json()[0]

    def test_custom_payload_without_content(self):
        receiver = self.receiver()
        custom = {"URI": "/Shop.Message"}
        self.webhook(Destination=receiver.url("/sent"), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest=custom)
        self.webhook(Destination=receiver.url("/broken"), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest=dict(custom, BreakOnNoContent=True))
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        request = receiver.take()
        self.assertEqual((request.path, request.body), ("/sent", b""))
        self.assertIn("no content", self.aborted()["LastError"])
        self.assertTrue(receiver.nothing())

    def test_custom_payload_that_fails(self):
        receiver = self.receiver()
        pathological = "/Shop.Person/_/search_regex=a%2B%2B(%3F!)"  # quadratic, and it takes no memory
        self.created("/Shop.Person", {"Name": "a" * 1000000})
        self.webhook(Destination=receiver.url("/message"), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"URI": pathological})
        self.webhook(Destination=receiver.url("/broken"), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"URI": pathological, "BreakOnError": True})
        self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        request = receiver.take()
        self.assertEqual(request.path, "/message")
        self.assertEqual(request.headers["Content-Type"], "text/plain")
        self.assertIn(b"RequestCpuMs", request.body)
        self.assertIn("RequestCpuMs", self.aborted()["LastError"])
        self.assertTrue(receiver.nothing())


class Enduring(harness.ServerCase):
    def test_kill_and_restart_delivers_what_was_pending(self):
        """After kill -9 the webhook and an undelivered event are there, and it is delivered."""
        gate = {"open": False}
        receiver = self.receiver(lambda request: 200 if gate["open"] else 503)
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                               Delivery={"RetrySchedule": [1] * 32})
        event = self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"No": 1}})
        first = receiver.take()
        self.assertEqual(first.headers["webhook-id"], event["Id"])
        self.server.kill()
        gate["open"] = True
        self.server.start()
        answer = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}")
        self.assertEqual(answer.json(), [webhook])
        again = receiver.take()
        self.assertEqual(again.headers["webhook-id"], event["Id"])
        self.assertEqual(again.body, first.body)
        harness.wait_until(
            lambda: self.get("/Svc.Admin.Delivery/State=Delivered").status == 200, "delivered")

    def test_everything_acknowledged_is_there_after_kill(self):
        entities = [self.created("/Shop.Message", {"No": no}) for no in range(200)]
        self.server.kill()
        self.server.start()
        self.assertEqual(self.get("/Shop.Message").json(), entities)

    def test_sigterm_drains(self):
        self.created("/Shop.Message", {"No": 1})
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        self.assertEqual(self.get("/Shop.Message").status, 200)


class OneTask(harness.ServerCase):
    def test_the_process_shows_one_task(self):
        """While it serves, resolves a name, delivers and syncs."""
        receiver = self.receiver()
        self.webhook(Destination=f"http://localhost:{receiver.port}/", EventSelector="/Shop.OrderPlaced")
        self.webhook(Destination="http://no-such-name.invalid/", EventSelector="/Shop.OrderPlaced")
        seen = set()
        end = time.monotonic() + 1
        while not seen or time.monotonic() < end:
            self.created("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
            seen.add(len(self.server.tasks()))
        receiver.take()
        self.assertEqual(seen, {1})


class Answers(harness.ServerCase):
    def test_an_unknown_resource(self):
        answer = self.get("/ThisIsNotAResource/a=b", {"X-Api-Key": "do-not-show"})
        self.assertEqual(answer.status, 404)
        message = "Svc could not locate any resource by 'ThisIsNotAResource'."
        self.assertEqual(answer.headers["Svc-info"], message)
        link = answer.headers["ErrorInfo"]
        self.assertRegex(link, r"^/Svc\.Admin\.Error/id=[0-9a-f-]{36}$")
        error, = self.get(link).json()
        self.assertEqual(list(error), ["Id", "Time", "ResourceName", "Action", "ErrorCode", "StackTrace",
                                       "Message", "Uri", "Headers", "Body", "ObjectNo"])
        self.assertEqual(error["ResourceName"], "<unknown>")
        self.assertEqual(error["ErrorCode"], "UnknownResource")
        self.assertEqual(error["Action"], "GET")
        self.assertEqual(error["Message"], message)
        self.assertEqual(error["Uri"], "/ThisIsNotAResource/a=b/_")
        self.assertIn(" (src/", error["StackTrace"])
        self.assertIn("X-Api-Key: *******", error["Headers"])
        self.assertNotIn("do-not-show", error["Headers"])

    def test_available_resources(self):
        names = [entry["Name"] for entry in self.get("/").json()]
        self.assertEqual(names, sorted(names))
        events = self.get("/AvailableResource/Kind=EventResource").json()
        self.assertEqual([event["Name"] for event in events],
                         ["Shop.OrderPlaced", "Shop.PersonCreated", "Shop.ReportReady",
                          "Svc.DeliveryDead", "Svc.WebhookPaused", "Svc.WebhookRecovered"])
        self.assertEqual({json.dumps(event["Methods"]) for event in events}, {"[]"})


if __name__ == "__main__":
    unittest.main()

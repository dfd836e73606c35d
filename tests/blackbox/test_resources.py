"""Svc.Admin.Resource: declaring at run time, and SIGHUP, which declares by the configuration."""
import json
import os
import signal
import unittest

import harness

ADMIN = "/Svc.Admin.Resource"
CITY = {"Name": "Geo.City", "Kind": "EntityResource", "Description": "Cities",
        "Properties": [{"Name": "Name", "Type": "string", "Required": True},
                       {"Name": "Country", "Type": "string"},
                       {"Name": "People", "Type": "integer"}],
        "Indexes": ["Country"],
        "Events": {"Inserted": "Geo.CityFounded", "Updated": None, "Deleted": None}}
FOUNDED = {"Name": "Geo.CityFounded", "Kind": "EventResource", "Description": "A city was inserted",
           "Payload": {"Resource": "Geo.City"}}


class AtRunTime(harness.ServerCase):
    def declare(self, *declarations):
        answer = self.post(ADMIN, list(declarations))
        self.assertEqual(answer.status, 201, answer)
        return answer.json()

    def refused(self, answer, status, code, *words):
        self.assertEqual(answer.status, status, answer)
        problem = answer.json()
        self.assertEqual(problem["ErrorCode"], code, answer)
        for word in words:
            self.assertIn(word, problem["detail"])
        error = self.get(answer.headers["ErrorInfo"]).json()[0]
        self.assertEqual((error["ErrorCode"], error["Message"]), (code, problem["detail"]))
        self.assertEqual(error["ResourceName"], "Svc.Admin.Resource")

    def listed(self, name):
        answer = self.get(f"/Svc.AvailableResource/Name={name}")
        return answer.json()[0] if answer.status == 200 else None

    def webhook_state(self, webhook):
        found = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        return found["IsPaused"], found["ErrorMessage"]

    def test_declared_resources_work_at_once_and_after_a_restart(self):
        city, founded = self.declare(CITY, FOUNDED)
        self.assertFalse(city["IsReadOnly"])
        self.assertEqual(city["Properties"][1], {"Name": "Country", "Type": "string",
                                                 "Required": False, "Description": ""})
        self.assertEqual(list(city)[0], "Id")
        self.assertEqual(list(city)[-1], "ObjectNo")
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/CityFounded/People>1000")
        for restarted in (False, True):
            self.assertEqual(self.listed("Geo.City")["Methods"],
                             ["GET", "POST", "PATCH", "PUT", "DELETE", "REPORT", "HEAD"])
            self.assertEqual(self.listed("Geo.CityFounded")["Methods"], [])
            self.created("/City", {"Name": "Small", "Country": "A", "People": 10})
            large = self.created("/City", {"Name": "Large", "Country": "B", "People": 5000})
            self.assertEqual(receiver.take().json(), [large])
            self.assertEqual(self.get("/City/Country=B/select=Name&limit=1").json(),
                             [{"Name": "Large"}])
            answer = self.post("/City", {"Nme": "x"})
            self.assertEqual(answer.json()["ErrorCode"], "UnknownProperty")
            if not restarted:
                self.settle()
                self.server.kill()
                self.server.start()
        self.assertTrue(receiver.nothing())

    def test_the_configurations_declarations_are_listed_and_read_only(self):
        listed = {d["Name"]: d for d in self.get(ADMIN).json()}
        self.assertEqual(set(listed), {d["Name"] for d in self.server.config["Resources"]})
        self.assertTrue(all(d["IsReadOnly"] for d in listed.values()))
        target = f"{ADMIN}/Name=Shop.Person"
        self.refused(self.server.request("PATCH", target, {"Description": "x"}), 409, "Conflict",
                     "'Shop.Person'", "configuration")
        self.refused(self.server.request("DELETE", target), 409, "Conflict", "configuration")
        self.refused(self.post(ADMIN, {"Name": "shop.person", "Kind": "EntityResource"}), 409,
                     "Conflict", "'shop.person' already")
        before = self.get(ADMIN).body
        self.server.kill()
        self.server.start()
        self.assertEqual(self.get(ADMIN).body, before)

    def test_bad_declarations_name_what_is_wrong_and_change_nothing(self):
        self.declare(CITY, FOUNDED)
        before = self.get(ADMIN).body
        cases = [
            ({"Name": "NoDot", "Kind": "EntityResource"}, 400, "InvalidResourceEntity", "'NoDot'"),
            ({"Name": "Svc.X", "Kind": "EntityResource"}, 400, "InvalidResourceEntity", "'Svc.'"),
            *(({"Name": name, "Kind": "EventResource"}, 400, "InvalidResourceEntity", f"'{name}' is what the built-in")
              for name in ("Admin.Webhook", "admin.error", "Admin.Node")),
            ({"Name": "A.B", "Kind": "Thing"}, 400, "InvalidEnumValue", "Kind", "'Thing'"),
            ({"Name": "A.B"}, 400, "InvalidResourceEntity", "Kind"),
            ({"Name": "A.B", "Kind": "EntityResource", "Propertys": []}, 400, "UnknownProperty",
             "'Properties'"),
            ({"Name": "A.B", "Kind": "EntityResource", "Properties": [{"Name": "x", "Type": "int"}]},
             400, "InvalidResourceEntity", "Type", "'int'"),
            ({"Name": "A.B", "Kind": "EntityResource", "Events": {"Inserted": "Geo.City"}}, 400,
             "InvalidResourceEntity", "'A.B'", "Events.Inserted", "'Geo.City'"),
            ({"Name": "A.E", "Kind": "EventResource", "Payload": {"Resource": "Geo.Nowhere"}}, 400,
             "InvalidResourceEntity", "Payload.Resource", "'Geo.Nowhere'"),
            ({"Name": "A.T", "Kind": "BinaryResource", "File": "terms.txt"}, 400,
             "InvalidResourceEntity", "File"),
            ({"Name": "A.T", "Kind": "BinaryResource", "Content": "?"}, 400,
             "InvalidResourceEntity", "Content"),
            ([{"Name": "A.B", "Kind": "EntityResource"}, {"Name": "a.b", "Kind": "EventResource"}],
             409, "Conflict", "'a.b' already"),
            ([{"Name": "A.B", "Kind": "EntityResource"}, {"Name": "Geo.City", "Kind": "EventResource"}],
             409, "Conflict", "'Geo.City' already"),
        ]
        for body, status, code, *words in cases:
            with self.subTest(body=body):
                self.refused(self.post(ADMIN, body), status, code, *words)
                self.assertEqual(self.get(ADMIN).body, before)
                self.assertIsNone(self.listed("A.B"))
        for change, words in (({"Name": "Geo.Town"}, "Name"), ({"Kind": "EventResource"}, "Kind")):
            answer = self.server.request("PATCH", f"{ADMIN}/Name=Geo.City", change)
            self.refused(answer, 409, "Conflict", words, "cannot be changed")

    def test_what_another_refers_to_cannot_go_alone(self):
        self.declare(CITY, FOUNDED)
        self.refused(self.server.request("DELETE", f"{ADMIN}/Name=Geo.City"), 409, "Conflict",
                     "'Geo.CityFounded'", "Payload.Resource")
        self.refused(self.server.request("DELETE", f"{ADMIN}/Name=Geo.CityFounded"), 409, "Conflict",
                     "'Geo.City'", "Events.Inserted")
        answer = self.server.request("DELETE", f"{ADMIN}/IsReadOnly=false/unsafe=true")
        self.assertEqual((answer.status, answer.json()), (200, [{"Count": 2}]))
        self.assertIsNone(self.listed("Geo.City"))
        self.assertEqual(self.get("/Geo.City").json()["ErrorCode"], "UnknownResource")

    def test_a_resource_that_holds_entities_goes_with_unsafe_only(self):
        self.declare({"Name": "Geo.River", "Kind": "EntityResource"})
        for number in range(3):
            self.created("/River", {"No": number})
        target = f"{ADMIN}/Name=Geo.River"
        self.refused(self.server.request("DELETE", target), 409, "Conflict", "3 entities", "unsafe=true")
        self.assertEqual(self.server.request("REPORT", "/River").json(), [{"Count": 3}])
        answer = self.server.request("DELETE", target + "/unsafe=true")
        self.assertEqual(answer.status, 200, answer)
        self.declare({"Name": "Geo.River", "Kind": "EntityResource"})
        self.assertEqual(self.server.request("REPORT", "/River").json(), [{"Count": 0}])

    def test_deleting_pauses_the_webhooks_that_refer_to_it(self):
        self.declare({"Name": "Geo.Quake", "Kind": "EventResource"},
                     {"Name": "Geo.Log", "Kind": "EntityResource"},
                     {"Name": "Geo.Map", "Kind": "BinaryResource", "Content": "aGk=",
                      "ContentType": "text/plain"})
        receiver = self.receiver()
        on_quake = self.webhook(Destination=receiver.url(), EventSelector="/Quake/Size>5")
        into_log = self.webhook(Destination="/Log", EventSelector="/OrderPlaced")
        with_map = self.webhook(Destination=receiver.url(), EventSelector="/OrderPlaced",
                                CustomPayloadRequest={"URI": "/Map"})
        other = self.webhook(Destination=receiver.url(), EventSelector="/OrderPlaced")
        for name, webhook, member in (("Geo.Quake", on_quake, "EventSelector"),
                                      ("Geo.Log", into_log, "Destination"),
                                      ("Geo.Map", with_map, "CustomPayloadRequest.URI")):
            self.assertEqual(self.webhook_state(webhook), (False, None))
            answer = self.server.request("DELETE", f"{ADMIN}/Name={name}")
            self.assertEqual(answer.status, 200, answer)
            paused, message = self.webhook_state(webhook)
            self.assertTrue(paused)
            self.assertIn(member, message)
            self.assertIn(name, message)
        self.assertEqual(self.webhook_state(other), (False, None))
        resume = f"/Svc.Admin.Webhook/Id={on_quake['Id']}"
        answer = self.server.request("PATCH", resume, {"IsPaused": False})
        self.assertEqual(answer.json()["ErrorCode"], "InvalidEventSelector", answer)
        self.declare({"Name": "Geo.Quake", "Kind": "EventResource"})
        answer = self.server.request("PATCH", resume, {"IsPaused": False})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.webhook_state(on_quake), (False, None))
        self.created("/Svc.Event", {"Resource": "Geo.Quake", "Payload": {"Size": 6}})
        self.assertEqual(receiver.take().json(), [{"Size": 6}])

    def test_changed_properties(self):
        self.declare(CITY, FOUNDED)
        receiver = self.receiver()
        fits = self.webhook(Destination=receiver.url(), EventSelector="/CityFounded/Name.Length>2")
        breaks = self.webhook(Destination=receiver.url(), EventSelector="/CityFounded/People>1")
        old = self.created("/City", {"Name": "Old", "Country": "A", "People": 7})
        receiver.take()
        receiver.take()
        tag = self.get(f"/City/Id={old['Id']}").headers["ETag"]
        properties = [{"Name": "Name", "Type": "string"}, {"Name": "Country", "Type": "string"},
                      {"Name": "Mayor", "Type": "string"}]
        answer = self.server.request("PATCH", f"{ADMIN}/Name=Geo.City",
                                     {"Properties": properties, "Indexes": ["Name", "Country"]})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.webhook_state(fits), (False, None))
        paused, message = self.webhook_state(breaks)
        self.assertTrue(paused)
        self.assertIn("'People'", message)
        shown = {"Id": old["Id"], "Name": "Old", "Country": "A", "Mayor": None,
                 "ObjectNo": old["ObjectNo"]}
        for _ in range(2):
            for target in ("/City", "/City/Name=Old", f"/City/Id={old['Id']}", "/City/_/search=Old"):
                self.assertEqual(self.get(target).json(), [shown], target)
            self.assertEqual(self.get("/City/_/search=People").status, 204)
            self.assertEqual(self.get("/City/People=7").json()["ErrorCode"], "UnknownProperty")
            self.assertNotEqual(self.get(f"/City/Id={old['Id']}").headers["ETag"], tag)
            self.server.kill()
            self.server.start()
        new = self.created("/City", {"Name": "New", "Mayor": "M"})
        self.assertEqual(receiver.take().json(), [new])
        changed = self.server.request("PATCH", "/City/Name=Old", {"Mayor": "B"}).json()
        self.assertEqual(changed, [dict(shown, Mayor="B")])

    def test_put_and_binary_content(self):
        first = self.declare({"Name": "Geo.Map", "Kind": "BinaryResource", "Content": "b25l",
                              "ContentType": "text/plain"})[0]
        self.assertEqual(self.get("/Map").body, b"one")
        answer = self.server.request("PUT", f"{ADMIN}/Id={first['Id']}", {
            "Name": "Geo.Map", "Kind": "BinaryResource", "Content": "dHdv"})
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(self.get("/Map").body, b"two")
        self.assertEqual(self.get("/Map").headers["Content-Type"], "application/octet-stream")
        self.assertEqual(self.server.request("HEAD", f"{ADMIN}/Kind=BinaryResource").status, 200)
        self.assertEqual(self.server.request("REPORT", f"{ADMIN}/IsReadOnly=false").json(),
                         [{"Count": 1}])


class Reload(harness.ServerCase):
    def reload(self, config, logs):
        seen = len(self.server.log)
        self.server.config = config
        self.server.write_config()
        self.server.process.send_signal(signal.SIGHUP)
        return harness.wait_until(
            lambda: next((line for line in self.server.log[seen:] if logs in line), None),
            f"the log says {logs}")

    def changed(self, change):
        config = json.loads(json.dumps(self.server.config))
        change(config)
        return config

    def test_resources_come_change_and_go(self):
        receiver = self.receiver()
        person = self.created("/Shop.Person", {"Name": "Ann"})
        webhook = self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        self.reload(self.changed(lambda c: c["Resources"].append(CITY)
                                 or c["Resources"].append(FOUNDED)), "read anew")
        self.created("/City", {"Name": "X"})

        def without_messages(config):
            config["Resources"] = [r for r in config["Resources"]
                                   if r["Name"] not in ("Shop.OrderPlaced", "Geo.City",
                                                        "Geo.CityFounded")]
            for resource in config["Resources"]:
                if resource["Name"] == "Shop.Person":
                    resource["Properties"].append({"Name": "Shoe", "Type": "number"})
        self.reload(self.changed(without_messages), "read anew")
        self.assertEqual(self.get("/City").status, 404)
        shown = self.get(f"/Shop.Person/Id={person['Id']}").json()[0]
        self.assertIn("Shoe", shown)
        state = self.get(f"/Svc.Admin.Webhook/Id={webhook['Id']}").json()[0]
        self.assertTrue(state["IsPaused"])
        self.assertIn("Shop.OrderPlaced", state["ErrorMessage"])
        # Entities of what is declared no more come back with it.
        self.reload(self.changed(lambda c: c["Resources"].append(CITY)
                                 or c["Resources"].append(FOUNDED)), "read anew")
        self.assertEqual(self.get("/City").json()[0]["Name"], "X")

    def test_a_file_is_read_again(self):
        before = self.get("/Shop.Terms").body
        with open(os.path.join(self.server.directory, "terms.txt"), "wb") as file:
            file.write(b"New terms.\n")
        self.assertEqual(self.get("/Shop.Terms").body, before)
        self.server.write_config(copy_terms=False)
        seen = len(self.server.log)
        self.server.process.send_signal(signal.SIGHUP)
        harness.wait_until(lambda: any("read anew" in line for line in self.server.log[seen:]),
                           "the log says so")
        self.assertEqual(self.get("/Shop.Terms").body, b"New terms.\n")

    def test_a_bad_file_changes_nothing(self):
        good = self.server.config
        before = self.get("/Svc.Admin.Resource").body
        run_time = {"Name": "Geo.Lake", "Kind": "EntityResource"}
        self.created("/Svc.Admin.Resource", run_time)
        before = self.get("/Svc.Admin.Resource").body

        def taken(config):
            config["Resources"].append(run_time)

        def misspelt(config):
            config["Resources"].append(FOUNDED)

        def unknown(config):
            config["Resorces"] = []

        def bad_key(config):
            config["Resources"].append({"Name": "Geo.X", "Kind": "EntityResource"})
            config["ApiKeys"] = [{"Name": "x", "KeySha256": "12", "AllowAccess": []}]
        for change, words in ((taken, "Resources: Name: there is a resource 'Geo.Lake' already"),
                              (misspelt, "Resources: 'Geo.CityFounded': Payload.Resource: 'Geo.City'"),
                              (unknown, "is 'Resources' meant?"), (bad_key, "ApiKeys[0]")):
            line = self.reload(self.changed(change), "nothing has changed")
            self.assertIn("config.json", line)
            self.assertIn(words, line)
            self.assertEqual(self.get("/Svc.Admin.Resource").body, before)
            self.server.config = good
        self.server.write_config()

    def test_what_is_refused_hides_nothing(self):
        self.reload(self.changed(lambda c: c["Resources"].append({"Name": "Geo.Lake", "Kind": "EntityResource"})), "anew")
        self.created("/Lake", {"Name": "X"})
        self.created(ADMIN, {"Name": "Geo.Found", "Kind": "EventResource", "Payload": {"Resource": "Geo.Lake"}})
        good, seen = self.server.config, len(self.server.log)
        self.reload(self.changed(lambda c: c["Resources"].pop()), "nothing has changed: ")
        self.assertEqual([line for line in self.server.log[seen:] if "out of sight" in line], [])
        self.assertEqual(self.get("/Lake").status, 200)
        self.assertEqual(self.server.request("DELETE", ADMIN + "/Name=Geo.Found").status, 200)
        self.reload(self.changed(lambda c: None), "out of sight")
        self.reload(good, "anew")

    def test_keys(self):
        def hashed(key):
            import hashlib
            return hashlib.sha256(key).hexdigest()

        def key(config, secret):
            config["RequireApiKey"] = True
            config["ApiKeys"] = [{"Name": "a", "KeySha256": hashed(secret), "AllowAccess": [
                {"Resources": ["Svc.*", "Svc.Admin.*", "Shop.*"], "Methods": ["*"]}]}]
        self.assertEqual(self.get("/Shop.Person").status, 204)
        self.reload(self.changed(lambda c: key(c, b"first")), "read anew")
        self.assertEqual(self.get("/Shop.Person").status, 401)
        first = {"Authorization": "apikey first"}
        self.assertEqual(self.get("/Shop.Person", first).status, 204)
        self.reload(self.changed(lambda c: key(c, b"second")), "read anew")
        self.assertEqual(self.get("/Shop.Person", first).status, 401)
        self.assertEqual(self.get("/Shop.Person", {"Authorization": "apikey second"}).status, 204)

    def settle(self):
        """Keys may be required by now, and nothing is delivered here."""


if __name__ == "__main__":
    unittest.main()

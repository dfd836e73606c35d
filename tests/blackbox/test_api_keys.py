"""Svc.Admin.ApiKey: keys that are made at run time, what they may grant, and when they end."""
import datetime
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import harness

ALL = [{"Resources": ["*"], "Methods": ["*"]}]
KEYS = [{"Resources": ["Svc.Admin.ApiKey"], "Methods": ["*"]}]
READS = [{"Resources": ["Shop.*"], "Methods": ["GET"]}]


def bearer(key):
    return {"Authorization": "Bearer " + key}


ADMIN = bearer("admin-key")


def configured(name, key, access, **members):
    return {"Name": name, "KeySha256": hashlib.sha256(key.encode()).hexdigest(), "AllowAccess": access,
            **members}


def later(**span):
    """A datetime so far from now."""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(**span)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%f") + "Z"


class KeyCase(harness.ServerCase):
    limits = {}

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["RequireApiKey"] = True
        config["ApiKeys"] = [configured("admin", "admin-key", ALL)]
        config["Limits"] = self.limits
        return config

    def make(self, name, access, headers=ADMIN, **members):
        """The headers of a new key."""
        body = {"Name": name, "AllowAccess": access, **members}
        return bearer(self.created("/Svc.Admin.ApiKey", body, headers)["Key"])

    def patch(self, target, body, headers=ADMIN):
        return self.server.request("PATCH", target, body, headers)

    def delete(self, target, headers=ADMIN):
        return self.server.request("DELETE", target, headers=headers)

    def refused(self, answer, status, words=""):
        self.assertEqual(answer.status, status, answer)
        self.assertIn(words, answer.headers["Svc-info"])

    def reload(self):
        seen = len(self.server.log)
        self.server.write_config()
        self.server.process.send_signal(signal.SIGHUP)
        line = harness.wait_until(lambda: [line for line in self.server.log[seen:] if "SIGHUP" in line],
                                  "the configuration is read anew")
        return line[0]


class Making(KeyCase):
    shares_server = True

    def test_the_key_is_shown_once(self):
        made = self.created("/Svc.Admin.ApiKey", {"Name": "shown", "AllowAccess": READS}, ADMIN)
        key = made.pop("Key")
        self.assertRegex(key, r"^svck_[A-Za-z0-9_-]{43}$")
        self.assertEqual(list(made), ["Id", "Name", "AllowAccess", "Tenant", "ExpiresAt", "LastUsedTime",
                                      "CreatedBy", "Time", "ObjectNo"])
        self.assertEqual((made["CreatedBy"], made["Tenant"], made["ExpiresAt"]), ("admin", None, None))
        self.assertEqual(self.get("/Shop.Person", bearer(key)).status, 204)
        self.assertEqual(self.get("/Shop.Person", {"Authorization": "apikey " + key}).status, 204)
        self.assertEqual(self.post("/Shop.Person", {"Name": "Ada"}, bearer(key)).status, 403)
        target = f"/Svc.Admin.ApiKey/Id={made['Id']}"
        self.assertEqual(self.get(target, ADMIN).json(), [made])
        self.assertEqual(self.patch(target, {"Name": "r2"}).json(), [dict(made, Name="r2")])
        others = self.created("/Svc.Admin.ApiKey", {"Name": "other", "AllowAccess": []}, ADMIN)
        self.assertNotEqual(others["Key"], key)

    def test_neither_key_nor_digest_is_found_anywhere(self):
        made = self.created("/Svc.Admin.ApiKey", {"Name": "reader", "AllowAccess": READS}, ADMIN)
        digest = hashlib.sha256(made["Key"].encode()).hexdigest()
        for secret in (made["Key"], digest, digest[:16]):
            answer = self.get(f"/Svc.Admin.ApiKey/_/search={secret}", ADMIN)
            self.assertEqual(answer.status, 204, answer)
        for text in (self.get("/Svc.Admin.ApiKey", ADMIN).body, self.get("/Svc.Admin.Error", ADMIN).body,
                     self.patch("/Svc.Admin.ApiKey/Name=reader", {"AllowAccess": []}).body,
                     "\n".join(self.server.log).encode()):
            self.assertNotIn(made["Key"].encode(), text)
            self.assertNotIn(digest.encode(), text)
        for name in ("KeySha256", "Account", "IsReadOnly"):
            self.refused(self.get(f"/Svc.Admin.ApiKey/{name}!=null", ADMIN), 404, name)
            self.refused(self.get(f"/Svc.Admin.ApiKey/_/select={name}", ADMIN), 404, name)
        for folder, _, names in os.walk(self.server.data):
            for name in names:
                with open(os.path.join(folder, name), "rb") as file:
                    self.assertNotIn(made["Key"].encode(), file.read(), "it is on the disk")

    def test_who_prefers_no_answer_still_gets_the_key(self):
        answer = self.post("/Svc.Admin.ApiKey", {"Name": "quiet", "AllowAccess": []},
                           dict(ADMIN, Prefer="return=minimal"))
        self.assertEqual(answer.status, 201)
        self.assertIn("Key", answer.json()[0])
        answer = self.patch("/Svc.Admin.ApiKey/Name=quiet", {"Name": "quieter"},
                            dict(ADMIN, Prefer="return=minimal"))
        self.assertEqual((answer.status, answer.body), (200, b""))

    def test_several_at_once(self):
        answer = self.post("/Svc.Admin.ApiKey", [{"Name": f"k{n}", "AllowAccess": READS}
                                                 for n in range(20)], ADMIN)
        keys = [made["Key"] for made in answer.json()]
        self.assertEqual(len(set(keys)), 20)
        for key in keys:
            self.assertEqual(self.get("/Shop.Person", bearer(key)).status, 204)
        mixed = self.post("/Svc.Admin.ApiKey/_/safepost=Name",
                          [{"Name": "new1", "AllowAccess": READS}, {"Name": "k3", "AllowAccess": []},
                           {"Name": "new2", "AllowAccess": READS}], ADMIN).json()
        self.assertEqual([("Key" in made, made["Name"]) for made in mixed],
                         [(True, "new1"), (False, "k3"), (True, "new2")])
        for place, status in ((0, 204), (2, 204)):
            self.assertEqual(self.get("/Shop.Person", bearer(mixed[place]["Key"])).status, status)
        self.assertEqual(self.get("/Shop.Person", bearer(keys[3])).status, 403)

    @harness.apart
    def test_bad_ones(self):
        right = {"Resources": ["Shop.Person"], "Methods": ["GET"]}
        cases = [
            ({"AllowAccess": []}, "Name"), ({"Name": "a"}, "AllowAccess"),
            ({"Name": "", "AllowAccess": []}, "Name: must be 1 to 64 visible characters"),
            ({"Name": "a b", "AllowAccess": []}, "visible"),
            ({"Name": "a\u200bb", "AllowAccess": []}, "visible"),
            ({"Name": "a\u0000", "AllowAccess": []}, "visible"),
            ({"Name": "x" * 65, "AllowAccess": []}, "visible"),
            ({"Name": 7, "AllowAccess": []}, "Name"),
            ({"Name": "a", "AllowAccess": {}}, "AllowAccess"),
            ({"Name": "a", "AllowAccess": [7]}, "AllowAccess[0]"),
            ({"Name": "a", "AllowAccess": [dict(right, Resources="*")]}, "AllowAccess[0].Resources"),
            ({"Name": "a", "AllowAccess": [dict(right, Resources=["Person"])]},
             "AllowAccess[0].Resources[0]: 'Person'"),
            ({"Name": "a", "AllowAccess": [right, dict(right, Methods=["FETCH"])]},
             "AllowAccess[1].Methods[0]: 'FETCH'"),
            ({"Name": "a", "AllowAccess": [{"Resources": []}]}, "AllowAccess[0].Methods"),
            ({"Name": "a", "AllowAccess": [dict(right, Right=1)]}, "AllowAccess[0].Right"),
            ({"Name": "a", "AllowAccess": [], "Tenant": "a b"}, "Tenant: 'a b'"),
            ({"Name": "a", "AllowAccess": [], "Tenant": ""}, "Tenant"),
            ({"Name": "a", "AllowAccess": [], "Tenant": "x" * 65}, "Tenant"),
            ({"Name": "a", "AllowAccess": [], "ExpiresAt": "soon"}, "ExpiresAt"),
            ({"Name": "a", "AllowAccess": [], "ExpiresAt": later(seconds=-1)}, "ExpiresAt: is past"),
            ({"Name": "a", "AllowAccess": [], "Colour": 1}, "Colour"),
            ({"Name": "a", "AllowAccess": [dict(right, Resources=["Shop.Person"] * 101)]}, "KeyResources"),
            ({"Name": "a", "AllowAccess": [dict(right, Resources=[])] * 101}, "KeyResources"),
        ]
        for body, words in cases:
            self.refused(self.post("/Svc.Admin.ApiKey", body, ADMIN), 400, words)
            self.refused(self.post("/Svc.Admin.ApiKey", [{"Name": "good", "AllowAccess": []}, body],
                                   ADMIN), 400, "entity 1: ")
        self.assertEqual(self.server.request("REPORT", "/Svc.Admin.ApiKey", headers=ADMIN).json(),
                         [{"Count": 1}])
        self.refused(self.server.request("PUT", "/Svc.Admin.ApiKey", {}, ADMIN), 405)

    @harness.apart
    def test_read_only_members_are_passed_over(self):
        made = self.created("/Svc.Admin.ApiKey", {
            "Name": "a", "AllowAccess": [], "CreatedBy": "nobody", "LastUsedTime": "2001-01-01",
            "Time": "2001-01-01", "KeySha256": hashlib.sha256(b"mine").hexdigest(), "IsReadOnly": True,
            "Account": "other"}, ADMIN)
        self.assertEqual((made["CreatedBy"], made["LastUsedTime"]), ("admin", None))
        self.assertNotIn("2001", made["Time"])
        self.assertEqual(self.get("/", bearer("mine")).status, 401)
        self.assertEqual(self.delete("/Svc.Admin.ApiKey/Name=a").status, 200)

    def test_names_are_unique_within_a_tenant(self):
        def post(*keys):
            return self.post("/Svc.Admin.ApiKey", [dict(key, AllowAccess=[]) for key in keys], ADMIN)
        self.assertEqual(post({"Name": "a"}, {"Name": "a", "Tenant": "t"}, {"Name": "a", "Tenant": "u"},
                              {"Name": "A"}).status, 201)
        self.refused(post({"Name": "a"}), 409, "'a' already")
        self.refused(post({"Name": "admin"}), 409, "'admin' already")
        self.refused(post({"Name": "a", "Tenant": "t"}), 409, "'a' already")
        self.refused(post({"Name": "b"}, {"Name": "c"}, {"Name": "b"}), 409, "'b' already")
        self.assertEqual(post({"Name": "admin", "Tenant": "t"}).status, 201)
        self.refused(self.patch("/Svc.Admin.ApiKey/Name=A", {"Name": "a"}), 409, "'a' already")
        self.refused(self.patch("/Svc.Admin.ApiKey/Tenant=u", {"Tenant": "t"}), 409, "'a' already")
        self.refused(self.patch("/Svc.Admin.ApiKey/Tenant=t/unsafe=true", {"Name": "z"}), 409, "'z'")
        self.assertEqual(self.patch("/Svc.Admin.ApiKey/Name=A", {"Name": "A"}).status, 200)
        self.assertEqual(self.delete("/Svc.Admin.ApiKey/Name=a&Tenant=null").status, 200)
        self.assertEqual(post({"Name": "a"}).status, 201)

    def test_every_key_sees_what_it_may_use(self):
        key = self.make("none", [])
        self.assertEqual([entry["Name"] for entry in self.get("/", key).json()], ["Svc.AvailableResource"])
        self.assertEqual(self.get("/Svc.AvailableResource", key).status, 200)
        self.refused(self.get("/Svc.Admin.ApiKey", key), 403)

    @harness.apart
    def test_without_a_key_nobody_made_it(self):
        config = self.server.config
        config["RequireApiKey"] = False
        self.reload()
        made = self.created("/Svc.Admin.ApiKey", {"Name": "a", "AllowAccess": ALL})
        self.assertIsNone(made["CreatedBy"])
        self.assertEqual(self.get("/Shop.Person", bearer(made["Key"])).status, 204)
        self.assertEqual(self.delete("/Svc.Admin.ApiKey/Name=a", {}).status, 200)
        self.assertEqual(self.get("/Shop.Person", bearer(made["Key"])).status, 401)

    def test_a_webhook_that_makes_one_logs_no_key(self):
        self.created("/Svc.Admin.Resource", {"Name": "Shop.KeyWanted", "Kind": "EventResource"}, ADMIN)
        self.created("/Svc.Admin.Webhook", {
            "Destination": "/Svc.Admin.ApiKey", "EventSelector": "/Shop.KeyWanted",
            "Headers": {"Authorization": "apikey admin-key"}}, ADMIN)
        self.created("/Svc.Event", {"Resource": "Shop.KeyWanted", "Payload": {
            "Name": "by-webhook", "AllowAccess": []}}, ADMIN)
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog", ADMIN).status == 200, "it is logged")
        entry, = self.get("/Svc.Admin.WebhookLog", ADMIN).json()
        self.assertEqual(entry["StatusCode"], 201)
        self.assertIn("by-webhook", json.dumps(entry))
        self.assertNotIn("svck_", json.dumps(entry))


class Granting(KeyCase):
    """Nobody grants what the own key lacks."""

    def test_rights(self):
        maker = self.make("maker", KEYS + [{"Resources": ["Shop.*"], "Methods": ["GET", "POST"]}])
        good = [[], READS, [{"Resources": ["Shop.Person"], "Methods": ["POST"]}], KEYS,
                [{"Resources": ["shop.person", "Shop.Order"], "Methods": ["HEAD"]}]]
        bad = [("*", ["GET"]), ("Shop.*", ["*"]), ("Shop.Person", ["DELETE"]), ("Shop.Inner.*", ["GET"]),
               ("Svc.*", ["GET"]), ("Svc.Admin.*", ["GET"]), ("Svc.Event", ["POST"])]
        for place, access in enumerate(good):
            self.make(f"good{place}", access, maker)
        for resource, methods in bad:
            access = READS + [{"Resources": [resource], "Methods": methods}]
            answer = self.post("/Svc.Admin.ApiKey", {"Name": "x", "AllowAccess": access}, maker)
            self.refused(answer, 403, f"'{resource.lower()}'")
            answer = self.patch("/Svc.Admin.ApiKey/Name=good0", {"AllowAccess": access}, maker)
            self.refused(answer, 403, f"'{resource.lower()}'")
        self.refused(self.patch("/Svc.Admin.ApiKey/Name=maker", {"AllowAccess": ALL}, maker), 403)
        self.assertEqual(self.patch("/Svc.Admin.ApiKey/Name=good0", {"AllowAccess": READS}, maker).status,
                         200)
        child = self.get("/Svc.Admin.ApiKey/Name=good0", ADMIN).json()[0]
        self.assertEqual(child["CreatedBy"], "maker")

    def test_changed_rights_hold_at_once(self):
        key = self.make("a", READS)
        self.refused(self.post("/Shop.Person", {"Name": "Ada"}, key), 403)
        self.patch("/Svc.Admin.ApiKey/Name=a", {"AllowAccess": ALL})
        self.assertEqual(self.post("/Shop.Person", {"Name": "Ada"}, key).status, 201)
        self.patch("/Svc.Admin.ApiKey/Name=a", {"AllowAccess": []})
        self.refused(self.get("/Shop.Person", key), 403)

    def test_who_lacks_the_right_on_keys_makes_none(self):
        key = self.make("a", READS)
        self.refused(self.post("/Svc.Admin.ApiKey", {"Name": "b", "AllowAccess": []}, key), 403)

    def test_tenants(self):
        maker = self.make("maker", KEYS + READS, Tenant="acme")
        made = self.created("/Svc.Admin.ApiKey", {"Name": "a", "AllowAccess": READS}, maker)
        self.assertEqual(made["Tenant"], "acme")
        made = self.created("/Svc.Admin.ApiKey", {"Name": "b", "AllowAccess": [], "Tenant": "acme"}, maker)
        self.assertEqual(made["Tenant"], "acme")
        other = {"Name": "c", "AllowAccess": [], "Tenant": "beta"}
        self.refused(self.post("/Svc.Admin.ApiKey", other, maker), 403, "Tenant")
        self.refused(self.patch("/Svc.Admin.ApiKey/Name=a", {"Tenant": "beta"}, maker), 403, "Tenant")
        self.assertEqual(self.created("/Svc.Admin.ApiKey", other, ADMIN)["Tenant"], "beta")

    def test_expiry(self):
        end = later(hours=1)
        maker = self.make("maker", KEYS + READS, ExpiresAt=end)
        made = self.created("/Svc.Admin.ApiKey", {"Name": "a", "AllowAccess": READS}, maker)
        self.assertEqual(made["ExpiresAt"][:23], end[:23])
        self.make("b", READS, maker, ExpiresAt=later(minutes=30))
        for at in (later(hours=2), "9999-12-31"):
            body = {"Name": "c", "AllowAccess": [], "ExpiresAt": at}
            self.refused(self.post("/Svc.Admin.ApiKey", body, maker), 403, "ExpiresAt")
            self.refused(self.patch("/Svc.Admin.ApiKey/Name=b", {"ExpiresAt": at}, maker), 403, "ExpiresAt")
            self.refused(self.patch("/Svc.Admin.ApiKey/Name=maker", {"ExpiresAt": at}, maker), 403)
        answer = self.patch("/Svc.Admin.ApiKey/Name=b", {"ExpiresAt": None}, maker)
        self.assertEqual(answer.json()[0]["ExpiresAt"][:23], end[:23])
        self.make("strong", ALL, ExpiresAt=later(minutes=10))
        self.refused(self.patch("/Svc.Admin.ApiKey/Name=strong", {"ExpiresAt": later(minutes=20)}, maker),
                     403, "AllowAccess")
        answer = self.patch("/Svc.Admin.ApiKey/Name=strong", {"ExpiresAt": later(minutes=5)}, maker)
        self.assertEqual(answer.status, 200, "to end it sooner grants nothing")


class Ending(KeyCase):
    def test_a_deleted_key_is_refused_from_then_on(self):
        key = self.make("a", READS)
        self.assertEqual(self.get("/Shop.Person", key).status, 204)
        self.assertEqual(self.delete("/Svc.Admin.ApiKey/Name=a").status, 200)
        self.assertEqual(self.get("/Shop.Person", key).status, 401)

    def test_an_expired_key_is_refused_from_then_on(self):
        key = self.make("a", READS)
        self.assertEqual(self.get("/Shop.Person", key).status, 204)
        self.patch("/Svc.Admin.ApiKey/Name=a", {"ExpiresAt": later(seconds=1.5)})
        harness.wait_until(lambda: self.get("/Shop.Person", key).status == 401, "it expires")
        self.refused(self.get("/Shop.Person", key), 401, "expired")
        self.assertEqual(self.get("/Svc.Admin.ApiKey/Name=a", ADMIN).status, 200, "it is listed")
        self.refused(self.post("/Svc.Admin.ApiKey", {"Name": "a", "AllowAccess": []}, ADMIN), 409)
        self.patch("/Svc.Admin.ApiKey/Name=a", {"ExpiresAt": later(hours=1)})
        self.assertEqual(self.get("/Shop.Person", key).status, 204)
        self.patch("/Svc.Admin.ApiKey/Name=a", {"ExpiresAt": later(seconds=-1)})
        self.assertEqual(self.get("/Shop.Person", key).status, 401)

    def test_keys_survive_a_restart(self):
        kept, gone = self.make("kept", READS, Tenant="t"), self.make("gone", READS)
        ended = self.make("ended", READS, ExpiresAt=later(seconds=1))
        self.delete("/Svc.Admin.ApiKey/Name=gone")
        listed = self.get("/Svc.Admin.ApiKey/_/select=Id,Name,AllowAccess,Tenant,ExpiresAt,Time",
                          ADMIN).json()
        self.server.kill()
        self.server.start()
        self.assertEqual(self.get("/Shop.Person", kept).status, 204)
        self.assertEqual(self.get("/Shop.Person", gone).status, 401)
        harness.wait_until(lambda: self.get("/Shop.Person", ended).status == 401, "it expires")
        self.assertEqual(self.get("/Svc.Admin.ApiKey/_/select=Id,Name,AllowAccess,Tenant,ExpiresAt,Time",
                                  ADMIN).json(), listed)


class Configured(KeyCase):
    """The configuration's keys are listed, and changed there only."""

    def names(self):
        answer = self.get("/Svc.Admin.ApiKey/_/select=Name", ADMIN)
        return [key["Name"] for key in answer.json()]

    def test_they_are_read_only(self):
        listed, = self.get("/Svc.Admin.ApiKey", ADMIN).json()
        self.assertEqual((listed["Name"], listed["AllowAccess"], listed["CreatedBy"]), ("admin", ALL, None))
        self.assertNotIn("KeySha256", listed)
        target = f"/Svc.Admin.ApiKey/Id={listed['Id']}"
        self.refused(self.patch(target, {"AllowAccess": []}), 403, "configuration's")
        self.refused(self.patch(target, {}), 403, "configuration's")
        self.refused(self.delete(target), 403, "configuration's")
        self.make("made", READS)
        self.refused(self.delete("/Svc.Admin.ApiKey/_/unsafe=true"), 403, "configuration's")
        answer = self.post("/Svc.Admin.ApiKey/_/safepost=Name", {"Name": "admin", "AllowAccess": []}, ADMIN)
        self.refused(answer, 403, "configuration's")
        self.assertEqual(self.names(), ["admin", "made"])
        self.assertEqual(self.get("/Shop.Person", ADMIN).status, 204)

    def test_a_reload_reads_them_anew_and_keeps_the_others(self):
        made = self.make("made", READS)
        keys = self.server.config["ApiKeys"]
        keys.append(configured("second", "second-key", READS, Tenant="t"))
        self.assertNotIn("nothing has changed", self.reload())
        self.assertEqual(self.names(), ["admin", "made", "second"])
        self.assertEqual(self.get("/Shop.Person", bearer("second-key")).status, 204)
        self.assertEqual(self.get("/Shop.Person", made).status, 204)
        before = self.get("/Svc.Admin.ApiKey/Name=second", ADMIN).json()[0]
        self.assertEqual(before["Tenant"], "t")
        keys[1] = configured("second", "another-key", [], Tenant="t")
        self.reload()
        after = self.get("/Svc.Admin.ApiKey/Name=second", ADMIN).json()[0]
        self.assertEqual((after["Id"], after["AllowAccess"]), (before["Id"], []))
        self.assertEqual(self.get("/Shop.Person", bearer("second-key")).status, 401)
        self.assertEqual(self.get("/Shop.Person", bearer("another-key")).status, 403)
        del keys[1]
        self.reload()
        self.assertEqual(self.names(), ["admin", "made"])
        self.assertEqual(self.get("/Shop.Person", bearer("another-key")).status, 401)
        self.assertEqual(self.get("/Shop.Person", made).status, 204)

    def test_one_that_is_made_already_is_refused(self):
        made = self.created("/Svc.Admin.ApiKey", {"Name": "made", "AllowAccess": READS}, ADMIN)
        keys = self.server.config["ApiKeys"]
        for name, key, words in (("made", "other", "ApiKeys[1].Name: 'made'"),
                                 ("other", made["Key"], "ApiKeys[1].KeySha256")):
            keys.append(configured(name, key, ALL))
            line = self.reload()
            self.assertIn("nothing has changed", line)
            self.assertIn(words, line)
            self.refused(self.post("/Shop.Person", {"Name": "Ada"}, bearer(made["Key"])), 403)
            del keys[1]

    def test_it_does_not_start_with_one_that_is_made_already(self):
        self.make("made", READS)
        self.server.config["ApiKeys"].append(configured("made", "other", ALL))
        self.assertEqual(self.server.stop(), 0)
        path = self.server.write_config()
        done = subprocess.run([harness.SVCD, "--config", path], capture_output=True, timeout=harness.DEADLINE_S, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("'made'", done.stderr.decode())
        del self.server.config["ApiKeys"][1]
        self.server.start()


class Uses(KeyCase):
    def test_the_hour_of_the_last_use_is_written_by_and_by(self):
        key = self.make("a", READS)

        def commits():
            text = self.get("/Svc.Metrics", ADMIN).body.decode()
            return int(re.search(r"^svc_journal_commits_total (\d+)$", text, re.M).group(1))
        before = commits()
        for _ in range(50):
            self.get("/Shop.Person", key)
        self.assertEqual(commits(), before, "a use is not written by itself")
        start = time.time()
        self.server.digest()  # what is noted is written before that
        end = time.time()
        hours = {datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
                 .strftime("%Y-%m-%dT%H:00:00.0000000Z") for at in (start - 60, end)}
        for name in ("a", "admin"):
            seen, = self.get(f"/Svc.Admin.ApiKey/Name={name}", ADMIN).json()
            self.assertIn(seen["LastUsedTime"], hours)
        self.make("unused", [])
        self.assertEqual([entry["Name"] for entry in
                          self.get("/Svc.Admin.ApiKey/LastUsedTime=null", ADMIN).json()], ["unused"])

    def test_a_stop_writes_it(self):
        key = self.make("a", READS)
        self.get("/Shop.Person", key)
        self.assertEqual(self.server.stop(), 0)
        self.server.start()
        seen, = self.get("/Svc.Admin.ApiKey/Name=a", ADMIN).json()
        self.assertIsNotNone(seen["LastUsedTime"])
        self.assertEqual(self.get("/Shop.Person", key).status, 204)


class Rate(KeyCase):
    limits = {"AccountRequestsPerSecond": 5}

    def answers(self, count, *headers):
        """So many come before another second has begun."""
        return self.server.at_once("/Shop.Person", [headers[n % len(headers)] for n in range(count)])

    def statuses(self, count, *headers):
        return [answer.status for answer in self.answers(count, *headers)]

    def test_each_account_has_its_own(self):
        one, two = self.make("one", READS, Tenant="t"), self.make("two", READS, Tenant="t")
        other = self.make("other", READS, Tenant="u")
        seen = self.statuses(40, one, two)
        self.assertIn(429, seen, "both keys of a tenant are on one account")
        self.assertEqual(seen[:5], [204] * 5)
        self.assertEqual(self.statuses(5, other), [204] * 5)
        refused = next(answer for answer in self.answers(20, one) if answer.status == 429)
        self.assertEqual(refused.headers["Retry-After"], "1")
        self.refused(refused, 429, "AccountRequestsPerSecond")
        self.assertIsNone(refused.headers["ErrorInfo"])
        harness.wait_until(lambda: self.get("/Shop.Person", one).status == 204, "it may again")

    def test_a_key_made_by_one_is_on_its_account(self):
        maker = self.make("maker", KEYS + READS)  # on the account of admin
        child = self.make("child", READS, maker)
        self.assertIn(429, self.statuses(60, ADMIN, maker, child))
        metrics = harness.wait_until(lambda: self.metrics(), "it may again")
        self.assertNotIn('svc_limit_hits_total{limit="AccountRequestsPerSecond"} 0', metrics)

    def metrics(self):
        answer = self.get("/Svc.Metrics", ADMIN)
        return answer.body.decode() if answer.status == 200 else None


class RateOfScans(KeyCase):
    limits = {"AccountRequestsPerSecond": 5, "ScanEntities": 1}

    def test_a_request_that_gives_way_counts_once(self):
        self.created("/Shop.Person", [{"Name": f"p{n}"} for n in range(5)], ADMIN)
        key = self.make("one", READS, Tenant="t")
        seen = [self.get("/Shop.Person/Name>p3", key).status for _ in range(5)]
        self.assertEqual(seen, [200] * 5)


class RateOfEverybody(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"AccountRequestsPerSecond": 5})

    def test_those_without_a_key_are_one_account(self):
        self.assertIn(429, [answer.status for answer in self.server.at_once("/Shop.Person", [{}] * 40)])
        harness.wait_until(lambda: self.get("/Shop.Person").status == 204, "they may again")


class Webhooks(harness.ServerCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), Limits={"AccountWebhooks": 3})

    def post_some(self, count):
        one = {"Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced"}
        return self.post("/Svc.Admin.Webhook", [one] * count)

    def test_an_account_has_so_many(self):
        answer = self.post_some(4)
        self.assertEqual(answer.status, 409, answer)
        self.assertIn("AccountWebhooks", answer.headers["Svc-info"])
        self.assertEqual(self.post_some(2).status, 201)
        self.assertEqual(self.post_some(2).status, 409)
        self.assertEqual(self.post_some(1).status, 201)
        patched = self.server.request("PATCH", "/Svc.Admin.Webhook/_/unsafe=true", {"Label": "x"})
        self.assertEqual(patched.status, 200, "none of them is one more")
        self.server.kill()
        self.server.start()
        self.assertEqual(self.post_some(1).status, 409, "they are counted after a restart")
        answer = self.server.request("PUT", "/Svc.Admin.Webhook/Label=new", {
            "Label": "new", "Destination": "http://127.0.0.1:1/", "EventSelector": "/Shop.OrderPlaced"})
        self.assertEqual(answer.status, 409)
        self.assertEqual(self.server.request("DELETE", "/Svc.Admin.Webhook/_/limit=1").status, 200)
        self.assertEqual(self.post_some(1).status, 201)


@unittest.skipUnless(shutil.which("valgrind"), "counted by callgrind")
class Many(KeyCase):
    """With twenty thousand keys a sign-in costs what it costs with one."""
    compares_digest = False
    KEYS, SIGN_INS = 20000, 20

    def make_many(self, count):
        """The first and the last one of them."""
        ends = []
        for begin in range(0, count, 1000):
            body = [{"Name": f"key{n}", "AllowAccess": []} for n in range(begin, begin + 1000)]
            answer = self.post("/Svc.Admin.ApiKey", body, ADMIN)
            self.assertEqual(answer.status, 201)
            made = answer.json()
            ends = [*ends[:1], made[-1]["Key"]] if ends else [made[0]["Key"], made[-1]["Key"]]
        return ends

    def control(self, what):
        subprocess.run(["callgrind_control", what, str(self.server.process.pid)], check=True,
                       capture_output=True)

    def instructions(self, *keys):
        """Those of a sign-in, good or bad."""
        output = os.path.join(self.server.directory, "counts")
        self.server.wrapper = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={output}"]
        self.server.start()
        for key in (*keys, "wrong") * 3:
            self.get("/", bearer(key))
        self.control("--zero")
        for number in range(self.SIGN_INS):
            self.assertEqual(self.get("/", bearer(keys[number % len(keys)])).status, 200)
            self.assertEqual(self.get("/", bearer(f"wrong{number}")).status, 401)
        self.control("--dump")
        self.server.kill()
        total = 0
        for path in glob.glob(output + ".*"):
            with open(path, encoding="utf-8") as file:
                total += int(re.search(r"^(?:summary|totals): (\d+)", file.read(), re.M).group(1))
            os.remove(path)
        return total / self.SIGN_INS / 2

    def test_sign_in_cost_does_not_grow(self):
        if harness.is_sanitized():
            self.skipTest("valgrind and the sanitizers exclude each other; the release build is counted")
        few = self.make("few", [])
        self.assertEqual(self.server.stop(), 0)
        with_few = self.instructions(few["Authorization"].partition(" ")[2])
        self.server.wrapper = []
        self.server.start()
        many = self.make_many(self.KEYS)
        self.assertEqual(self.server.stop(), 0)
        with_many = self.instructions(*many)
        # It is 24 000 instructions; one a key would be nearly twice as much.
        self.assertLess(with_many, 1.2 * with_few)


if __name__ == "__main__":
    unittest.main()

"""Whose a webhook is, and whose its secrets are: who takes one over gets neither, and a key that is only
called like the owner is another."""
import datetime
import unittest

import harness
from test_rights import ADMIN, BETA, GAMMA, Case, key

SECRETS = {"Headers": {"Authorization": "Bearer of-beta", "X-Plain": "1"},
           "Signing": {"Secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}}
ANEW = {"Headers": {"Authorization": "Bearer of-another"},
        "Signing": {"Secrets": ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]}}
KEPT = "have to be written anew: Headers.Authorization, Signing.Secrets.0"
ELSEWHERE = [{"Destination": "http://127.0.0.1:3/"}, {"Method": "PUT"}, {"Headers": {"X-Plain": "2"}},
             {"EventSelector": "/Shop.Paid/n=1"},
             {"CustomPayloadRequest": {"URI": "/Svc.Event", "Headers": ADMIN}}]


class OwnersCase(Case):
    def made(self, name, tenant=None, **more):
        """A key that is made at run time, as the header field that presents it."""
        made = self.created("/Svc.Admin.ApiKey", {
            "Name": name, "Tenant": tenant, "AllowAccess": [
                {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]},
                {"Resources": ["Shop.*"], "Methods": ["GET"]}], **more}, ADMIN)
        return {"Authorization": f"apikey {made['Key']}"}

    def delete_key(self, name):
        answer = self.server.request("DELETE", f"/Svc.Admin.ApiKey/Name={name}", headers=ADMIN)
        self.assertEqual(answer.headers["Svc-info"], "1 entity deleted from 'Svc.Admin.ApiKey'")

    def expect_no_travel(self, webhook, headers, changes=None):
        for change in changes or ELSEWHERE:
            answer = self.patch(webhook, change, headers)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (400, "InvalidResourceEntity"), change)
            self.assertIn(KEPT, answer.json()["detail"], change)

    def expect_paused(self, webhook, is_paused=True):
        self.assertEqual(self.now(webhook)["IsPaused"], is_paused, self.now(webhook))


class TakenOver(OwnersCase):
    def test_a_colleague_who_resumes_is_no_owner(self):
        """Neither by resuming, nor by anything that leads nowhere else."""
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS, IsPaused=True)
        for headers in (ADMIN, GAMMA):
            self.assertEqual(self.patch(webhook, {"IsPaused": False}, headers).json()[0]["Owner"], "beta")
            self.assertEqual(self.patch(webhook, {"IsPaused": True, "Label": "x"}, headers).status, 200)
        self.expect_no_travel(webhook, ADMIN)
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:2/"}, BETA).status, 200)

    def test_who_takes_over_has_not_the_secrets(self):
        receiver, theirs = self.receiver(), self.receiver()
        webhook = self.webhook(BETA, "/Shop.Paid", receiver.url(), **SECRETS)
        self.reload([k for k in self.keys() if k["Name"] != "beta"])
        harness.wait_until(lambda: self.now(webhook)["IsPaused"], "it is paused")
        self.expect_no_travel(webhook, ADMIN, ELSEWHERE[:1])
        resumed, = self.patch(webhook, {"IsPaused": False}, ADMIN).json()
        self.assertEqual(resumed["Owner"], "admin")
        self.raised("Shop.Paid")
        self.assertEqual(receiver.take().headers["Authorization"], "Bearer of-beta", "where it was meant for")
        self.expect_no_travel(webhook, ADMIN)
        self.assertEqual(self.patch(webhook, {"Label": "l", "Delivery": {"MaxInFlight": 1}}, ADMIN).status, 200)
        self.expect_no_travel(webhook, ADMIN)
        # Some of them are not all of them.
        answer = self.patch(webhook, {"Destination": theirs.url(), "Headers": ANEW["Headers"]}, ADMIN)
        self.assertIn("written anew: Signing.Secrets.0", answer.json()["detail"])
        self.assertEqual(self.patch(webhook, {"Destination": theirs.url(), **ANEW}, ADMIN).status, 200)
        self.raised("Shop.Paid")
        self.assertEqual(theirs.take().headers["Authorization"], "Bearer of-another")
        # From now on they are the new owner's.
        self.assertEqual(self.patch(webhook, {"Destination": receiver.url()}, ADMIN).status, 200)
        self.raised("Shop.Paid")
        self.assertEqual(receiver.take().headers["Authorization"], "Bearer of-another")
        self.settle()

    def test_an_owner_that_may_no_longer_read(self):
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        self.reload([self.keys()[0], key("beta", (["Svc.Admin.Webhook"], ["*"]), (["Hr.*"], ["GET"]))])
        harness.wait_until(lambda: self.now(webhook)["IsPaused"], "it is paused")
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, BETA).status, 403)
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, ADMIN).json()[0]["Owner"], "admin")
        self.expect_no_travel(webhook, ADMIN)

    def test_an_owner_that_has_expired(self):
        made = self.made("delta")
        webhook = self.webhook(made, "/Shop.Paid", **SECRETS)
        kept = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        at = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)).isoformat()
        answer = self.server.request("PATCH", "/Svc.Admin.ApiKey/Name=delta", {"ExpiresAt": at}, ADMIN)
        self.assertEqual(answer.status, 200, answer)
        harness.wait_until(lambda: self.now(webhook)["IsPaused"], "it is paused")
        self.assertIn("'delta' has expired", self.now(webhook)["ErrorMessage"])
        self.expect_paused(kept, False)
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 1)
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, made).status, 401)
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, BETA).json()[0]["Owner"], "beta")
        self.expect_no_travel(webhook, BETA, ELSEWHERE[:1])

    def test_who_put_no_secret_in_has_none_to_keep(self):
        """Part of the secrets written by one, part by another: neither leads them elsewhere."""
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        answer = self.patch(webhook, {"Signing": {"Secrets": ["*******", ANEW["Signing"]["Secrets"][0]]}}, ADMIN)
        self.assertEqual((answer.status, answer.json()[0]["Owner"]), (200, "beta"))
        answer = self.patch(webhook, {"Destination": "http://127.0.0.1:3/"}, ADMIN)
        self.assertIn("Headers.Authorization, Signing.Secrets.0, Signing.Secrets.1", answer.json()["detail"])

    def test_what_a_put_leaves_out_goes(self):
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        whole = {"Destination": "http://127.0.0.1:3/", "EventSelector": "/Shop.Paid"}
        target = f"/Svc.Admin.Webhook/Id={webhook['Id']}"
        kept = {**whole, "Headers": {"Authorization": "*******"}}
        self.assertEqual(self.server.request("PUT", target, kept, ADMIN).status, 400)
        answer = self.server.request("PUT", target, whole, ADMIN)
        self.assertEqual((answer.status, answer.json()[0]["Headers"], answer.json()[0]["Signing"]), (200, {}, None))

    def test_safepost(self):
        self.webhook(BETA, "/Shop.Paid", Label="l", **SECRETS)
        body = {"Label": "l", "Destination": "http://127.0.0.1:3/", "EventSelector": "/Shop.Paid"}
        answer = self.post("/Svc.Admin.Webhook/_/safepost=Label", body, ADMIN)
        self.assertEqual(answer.status, 400, answer)
        self.assertIn(KEPT, answer.json()["detail"])
        answer = self.post("/Svc.Admin.Webhook/_/safepost=Label", [{**body, **ANEW}, {**body, "Method": "PUT"}], ADMIN)
        self.assertEqual(answer.status, 200, "those of the first are the second's own")
        self.assertEqual(self.get("/Svc.Admin.Webhook/Label=l/select=Owner,Method", ADMIN).json(),
                         [{"Owner": "admin", "Method": "PUT"}])


class OneName(OwnersCase):
    """A name can be given again, an owner cannot."""

    def expect_another(self, webhook, headers):
        self.expect_paused(webhook)
        self.assertIn("no API key 'delta'", self.now(webhook)["ErrorMessage"])
        self.expect_no_travel(webhook, headers)
        self.assertEqual(self.raised("Shop.Paid")["Webhooks"], 0)
        self.assertEqual(self.patch(webhook, {"IsPaused": False}, headers).json()[0]["Owner"], "delta")
        self.expect_no_travel(webhook, headers)
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:3/", **ANEW}, headers).status, 200)

    def test_one_without_a_tenant_is_not_that_of_a_tenant(self):
        webhook = self.webhook(self.made("delta", "acme"), "/Shop.Paid", **SECRETS)
        everybodys = self.made("delta")
        self.expect_paused(webhook, False)
        self.expect_no_travel(webhook, everybodys)
        self.server.request("DELETE", "/Svc.Admin.ApiKey/Name=delta&Tenant=acme", headers=ADMIN)
        self.expect_another(webhook, everybodys)

    def test_that_of_a_tenant_is_not_one_without(self):
        webhook = self.webhook(self.made("delta"), "/Shop.Paid", Tenant="acme", **SECRETS)
        theirs = self.made("delta", "acme")
        self.expect_paused(webhook, False)
        self.expect_no_travel(webhook, theirs)
        self.server.request("DELETE", "/Svc.Admin.ApiKey/Name=delta&Tenant=null", headers=ADMIN)
        self.expect_another(webhook, theirs)

    def test_one_that_is_made_anew(self):
        first = self.made("delta")
        webhook = self.webhook(first, "/Shop.Paid", **SECRETS)
        self.delete_key("delta")
        self.assertEqual(self.get("/Svc.Admin.Webhook", first).status, 401)
        self.expect_another(webhook, self.made("delta"))

    def test_one_of_the_configuration(self):
        webhook = self.webhook(self.made("delta"), "/Shop.Paid", **SECRETS)
        self.delete_key("delta")
        self.reload([*self.keys(), key("delta", (["*"], ["*"]))])
        self.expect_another(webhook, {"Authorization": "apikey delta-key"})

    def test_keys_that_changed_while_it_was_down(self):
        """One of the configuration goes, and another one of its name, of no tenant, is there at the start."""
        of_acme = {**key("delta", (["*"], ["*"])), "Tenant": "acme"}
        self.reload([*self.keys(), of_acme])
        webhook = self.webhook({"Authorization": "apikey delta-key"}, "/Shop.Paid", **SECRETS)
        self.server.stop()
        self.server.config["ApiKeys"] = [*self.keys(), key("delta", (["*"], ["*"]))]
        self.server.start()
        self.expect_another(webhook, {"Authorization": "apikey delta-key"})

    def test_the_key_itself_may_be_another(self):
        """What the configuration gives a name to is its own affair: keys are changed without a gap so."""
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        beta = self.keys()[1]
        self.reload([self.keys()[0], dict(beta, KeySha256=key("other")["KeySha256"])])
        self.expect_paused(webhook, False)
        headers = {"Authorization": "apikey other-key"}
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:3/"}, headers).status, 200)

    def test_who_it_is_survives(self):
        first = self.made("delta")
        webhook = self.webhook(first, "/Shop.Paid", **SECRETS)
        self.server.kill()
        self.server.start()
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:4/"}, first).status, 200)
        self.delete_key("delta")
        second = self.made("delta")
        self.server.kill()
        self.server.start()
        self.expect_another(webhook, second)

    def test_it_is_not_shown(self):
        webhook = self.webhook(BETA, "/Shop.Paid", **SECRETS)
        self.assertFalse({"OwnerKey", "WriterKey"} & set(webhook))
        self.assertFalse({"OwnerKey", "WriterKey"} & set(self.now(webhook)))
        for target in ("_/add=OwnerKey", "_/select=WriterKey", "OwnerKey=x", "_/order_asc=WriterKey"):
            answer = self.get(f"/Svc.Admin.Webhook/{target}", ADMIN)
            self.assertEqual((answer.status, answer.json()["ErrorCode"]), (404, "UnknownProperty"), target)
        self.assertEqual(self.get("/Svc.Admin.Webhook/_/search=beta,Label", ADMIN).status, 204)
        self.assertEqual(self.get("/Svc.Admin.Webhook/_/search=%2F%2Fbeta", ADMIN).status, 204)


class Moved(OwnersCase):
    def test_to_another_tenant(self):
        """The owner may not have that one's events: who moves it answers for it."""
        theirs, everybodys = self.made("delta", "acme"), self.made("epsilon")
        for headers, owner in ((theirs, "admin"), (everybodys, "epsilon")):
            webhook = self.webhook(headers, "/Shop.Paid", **SECRETS)
            moved, = self.patch(webhook, {"Tenant": "globex"}, ADMIN).json()
            self.assertEqual((moved["Owner"], moved["IsPaused"]), (owner, False))
            self.expect_no_travel(webhook, ADMIN)


class Nobodys(OwnersCase):
    """Webhooks that were made while no key was required."""

    def make_config(self):
        return dict(super().make_config(), RequireApiKey=False)

    def test_when_keys_are_required_their_secrets_are_nobodys(self):
        webhook = self.webhook({}, "/Shop.Paid", **SECRETS)
        self.assertEqual(self.patch(webhook, {"Destination": "http://127.0.0.1:2/"}, {}).status, 200)
        paused = self.webhook({}, "/Shop.Paid", **SECRETS, IsPaused=True)
        self.server.stop()
        self.server.config["RequireApiKey"] = True
        self.server.start()
        self.expect_paused(webhook, False)
        self.expect_no_travel(webhook, ADMIN)
        self.assertEqual(self.patch(paused, {"IsPaused": False}, ADMIN).json()[0]["Owner"], "admin")
        self.expect_no_travel(paused, ADMIN)
        self.assertEqual(self.patch(paused, {"Destination": "http://127.0.0.1:3/", **ANEW}, ADMIN).status, 200)
        self.assertEqual(self.patch(paused, {"Method": "PUT"}, ADMIN).status, 200)


if __name__ == "__main__":
    unittest.main()

"""Svc.OpenApi: a document that holds together, says of each resource what the key may do with it, as long as that
is so, and whose examples can be sent as they stand."""
import json
import unittest

import harness
import test_keys

METHODS = ("get", "post", "patch", "put", "delete", "head", "x-report")
VERBS = {"x-report": "REPORT"}


def references(node):
    """All that the document refers to."""
    if isinstance(node, dict):
        if "$ref" in node:
            yield node["$ref"]
        for child in node.values():
            yield from references(child)
    elif isinstance(node, list):
        for child in node:
            yield from references(child)


def find(document, reference):
    found = document
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def operations(document):
    for path, item in document["paths"].items():
        for key in METHODS:
            if key in item:
                yield path, key, item[key]


class OpenApiCase(harness.ServerCase):
    def document(self, **headers):
        answer = self.get("/openapi.json", headers)
        self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, "application/json"), answer.body[:300])
        return answer.json()

    def check_whole(self, document):
        """It refers to nothing that is missing, has nothing that nobody refers to, and names nothing twice."""
        self.assertEqual(document["openapi"], "3.1.0")
        used = set(references(document))
        for reference in used:
            find(document, reference)
        for kind in ("schemas", "parameters", "responses", "headers"):
            for name in document["components"][kind]:
                self.assertIn(f"#/components/{kind}/{name}", used)
        names = [operation["operationId"] for _, _, operation in operations(document)]
        self.assertEqual(len(names), len(set(names)))
        tags = {tag["name"] for tag in document["tags"]}
        for path, key, operation in operations(document):
            self.assertLessEqual(set(operation["tags"]), tags)
            self.assertIn("default", operation["responses"], (path, key))
            asked = [find(document, entry["$ref"]) for entry in operation.get("parameters", [])]
            self.assertEqual(len({entry["name"] for entry in asked}), len(asked))

    def check_listed(self, document, listed):
        """Each resource that is listed has its path, with its methods; event resources their webhook."""
        for resource in listed:
            name, methods = resource["Name"], set(resource["Methods"])
            if resource["Kind"] == "EventResource":
                self.assertIn("post", document["webhooks"][name])
                continue
            if name in ("Svc.Aggregator", "Svc.Echo"):
                methods &= {"POST"}
            item = document["paths"].get("/" + name, {})
            self.assertEqual({VERBS.get(key, key.upper()) for key in item if key in METHODS}, methods, name)
        names = {resource["Name"] for resource in listed}
        self.assertLessEqual({path.split("/")[1] for path in document["paths"]}, names)
        self.assertLessEqual(set(document["webhooks"]), names)
        self.assertEqual([tag["name"] for tag in document["tags"]], [resource["Name"] for resource in listed])


class Everything(OpenApiCase):
    def test_it_holds_together(self):
        document = self.document()
        self.check_whole(document)
        self.check_listed(document, self.get("/").json())

    def test_schemas(self):
        schemas = self.document()["components"]["schemas"]
        person = schemas["Svc.Input.Shop.Person"]
        self.assertEqual(person["required"], ["Name"])
        self.assertFalse(person["additionalProperties"])
        self.assertTrue(person["properties"]["Id"]["readOnly"])
        self.assertNotIn("required", schemas["Svc.Patch.Shop.Person"])
        self.assertNotIn("required", schemas["Shop.Person"])
        self.assertIn("Name", schemas["Svc.Payload.Shop.PersonCreated"]["properties"])
        self.assertEqual(schemas["Svc.Payload.Shop.OrderPlaced"]["properties"], {})
        webhook = schemas["Svc.Input.Svc.Admin.Webhook"]
        self.assertEqual(webhook["required"], ["Destination"])
        self.assertEqual(webhook["properties"]["Tags"]["items"], {"type": "string"})
        self.assertIn("UnknownProperty", schemas["ErrorCode"]["enum"])
        self.assertEqual(len(schemas["ErrorCode"]["enum"]), len(set(schemas["ErrorCode"]["enum"])))

    def test_what_webhooks_send(self):
        """Each format that a webhook can have; bytes as they are."""
        document = self.document()
        formats = document["components"]["schemas"]["Svc.Input.Svc.Admin.Webhook"]["properties"]["Format"]["enum"]
        sent = document["webhooks"]["Shop.PersonCreated"]["post"]
        bodies = sent["requestBody"]["content"]["application/json"]["schema"]["oneOf"]
        self.assertEqual([body["title"] for body in bodies], [name for name in formats if name])
        names = {find(document, entry["$ref"])["name"] for entry in sent["parameters"]}
        report = document["webhooks"]["Shop.ReportReady"]["post"]["requestBody"]["content"]
        self.assertEqual(list(report), ["application/pdf"])
        receiver = self.receiver()
        for name in formats:
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.PersonCreated", Format=name,
                         Signing={"Secrets": ["whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"]})
        self.created("/Shop.Person", {"Name": "Ada"})
        for _ in formats:
            request = receiver.take()
            self.assertLessEqual({name.lower() for name in names}, {name.lower() for name in request.headers})
            body = request.json()
            schema = bodies[isinstance(body, dict)]
            self.assertEqual(set(schema.get("required", [])), set(body) if isinstance(body, dict) else set())
            if isinstance(body, dict):
                self.assertEqual(schema["properties"]["type"]["const"], body["type"])

    def test_its_paths_are_answered(self):
        """What it says that can be read is there; what it says of one entity is so of one that is not."""
        for path, key, _ in operations(self.document()):
            if key not in ("get", "head") or "{Event}" in path:
                continue
            target = path.replace("{Id}", "01a205ab-ae0c-7514-a42e-1c7bc266a3a7")
            self.assertIn(self.server.request(key.upper(), target).status, (200, 204), target)

    def test_its_examples_can_be_sent(self):
        document = self.document()
        sent = set()
        for key in ("post", "patch", "put"):
            for path, method, operation in operations(document):
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                if method != key or "example" not in body or "{Id}" in path:
                    continue
                name = path.split("/")[1]
                target = path
                if key != "post" and name != "Svc.Admin.Delivery":
                    made = self.get(f"/{name}/_/limit=1&offset=-1").json()[0]
                    target = f"/{name}/Id={made['Id']}"
                if name == "Svc.Admin.Delivery":
                    continue  # there is none
                answer = self.server.request(key.upper(), target, body["example"])
                self.assertIn(answer.status, (200, 201), (key, target, body["example"], answer.body))
                sent.add((key, name))
        for expected in ("Shop.Person", "Shop.Message", "Svc.Event", "Svc.Admin.Webhook", "Svc.Admin.Resource",
                         "Svc.Explain", "Svc.Aggregator", "Svc.Echo", "Svc.Admin.ApiKey"):
            self.assertIn(("post", expected), sent)

    def test_it_changes_with_what_is_declared(self):
        first = self.get("/Svc.OpenApi")
        known = {"If-None-Match": first.headers["ETag"]}
        self.assertEqual(self.get("/openapi.json").body, first.body)
        answer = self.get("/openapi.json", known)
        self.assertEqual((answer.status, answer.body), (304, b""))
        self.created("/Svc.Admin.Resource", {"Name": "Zoo.Animal", "Kind": "EntityResource",
                                             "Properties": [{"Name": "Legs", "Type": "integer", "Required": True}]})
        answer = self.get("/openapi.json", known)
        self.assertEqual(answer.status, 200)
        self.assertNotEqual(answer.headers["ETag"], first.headers["ETag"])
        self.check_whole(answer.json())
        self.assertEqual(answer.json()["components"]["schemas"]["Svc.Input.Zoo.Animal"]["required"], ["Legs"])
        self.assertEqual(self.server.request("DELETE", "/Svc.Admin.Resource/Name=Zoo.Animal").status, 200)
        self.assertEqual(self.get("/openapi.json", known).status, 304)

    def test_many_resources(self):
        """Too many for one turn."""
        many = [{"Name": f"Zoo.Animal{i}", "Kind": "EntityResource", "Properties": [
            {"Name": f"Property{j}", "Type": "integer"} for j in range(20)]} for i in range(500)]
        self.assertEqual(self.post("/Svc.Admin.Resource", many).status, 201)
        document = self.document()
        self.check_whole(document)
        self.check_listed(document, self.get("/").json())


class BasePath(OpenApiCase):
    def make_config(self):
        return dict(harness.load_config(harness.SHOP), BasePath="/api/v1")

    def settle(self):
        pass

    def test_below_the_base_path(self):
        answer = self.get("/api/v1/openapi.json")
        self.assertEqual(answer.json()["servers"], [{"url": "/api/v1"}])
        self.assertEqual(self.get("/openapi.json").status, 400)


READS = {"Resources": ["Svc.OpenApi", "Svc.AvailableResource"], "Methods": ["GET"]}
KEYS = {
    "reader": [READS],
    "writer": [READS, {"Resources": ["Shop.Person"], "Methods": ["POST", "PATCH"]}],
    "events": [READS, {"Resources": ["Shop.PersonCreated", "Shop.ReportReady"], "Methods": ["GET"]},
               {"Resources": ["Svc.Event"], "Methods": ["POST"]}],
    "asks": [READS, {"Resources": ["Svc.Aggregator", "Svc.Explain"], "Methods": ["POST"]}],
    "binary": [READS, {"Resources": ["Shop.ReportReady", "Shop.Terms"], "Methods": ["GET"]},
               {"Resources": ["Svc.Event"], "Methods": ["POST"]}],
    "root": [{"Resources": ["*"], "Methods": ["*"]}],
}


class Keys(OpenApiCase):
    def make_config(self):
        keys = [dict(test_keys.key(name, name + "-key"), AllowAccess=allow) for name, allow in KEYS.items()]
        keys.append(dict(test_keys.key("portal", "portal-key"), Tenant="acme",
                         AllowAccess=[READS, {"Resources": ["Svc.Admin.Webhook"], "Methods": ["*"]}]))
        keys.append(dict(test_keys.key("blind", "blind-key"),
                         AllowAccess=[{"Resources": ["Shop.*"], "Methods": ["*"]}]))
        return dict(harness.load_config(harness.SHOP), RequireApiKey=True, ApiKeys=keys)

    def settle(self):
        pass

    def ask(self, key, target):
        return self.get(target, {"Authorization": f"apikey {key}-key"})

    def test_each_has_its_own(self):
        tags = set()
        for key in [*KEYS, "portal"]:
            with self.subTest(key=key):
                document = self.document(Authorization=f"apikey {key}-key")
                self.check_whole(document)
                self.check_listed(document, self.ask(key, "/").json())
                self.assertNotIn({}, document["security"])
                tags.add(self.ask(key, "/openapi.json").headers["ETag"])
        self.assertEqual(len(tags), len(KEYS) + 1)

    def test_another_key_knows_another_document(self):
        known = self.ask("root", "/openapi.json").headers["ETag"]
        answer = self.get("/openapi.json", {"Authorization": "apikey reader-key", "If-None-Match": known})
        self.assertEqual(answer.status, 200)

    def test_who_may_not_read_is_shown_no_answers(self):
        document = self.document(Authorization="apikey writer-key")
        self.assertNotIn("Shop.Person", document["components"]["schemas"])
        created = document["paths"]["/Shop.Person"]["post"]["responses"]["201"]
        self.assertNotIn("content", created)

    def test_it_needs_the_right(self):
        self.assertEqual(self.ask("blind", "/openapi.json").status, 403)
        self.assertEqual(self.get("/openapi.json").status, 401)
        self.assertNotIn("Svc.OpenApi", json.dumps(self.ask("blind", "/").json()))


if __name__ == "__main__":
    unittest.main()

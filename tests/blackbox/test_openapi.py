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
        for kind in ("schemas", "parameters", "responses", "headers", "examples"):
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
    shares_server = True

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
        self.assertEqual(schemas["Svc.Payload.Shop.OrderPlaced"],
                         {"type": "object", "properties": {}, "additionalProperties": True})
        self.assertTrue(schemas["Svc.Input.Shop.Message"]["additionalProperties"])
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
        clouds = [name for name in formats if name and name.startswith("CloudEvents")]  # which need a source
        formats = [name for name in formats if name not in clouds]
        self.assertEqual([body["title"] for body in bodies], [name for name in formats if name])
        cloud = sent["requestBody"]["content"]["application/cloudevents+json"]["schema"]
        self.assertIn(cloud["title"], clouds)
        self.assertEqual(cloud["required"], ["specversion", "id", "source", "type"])
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

    def test_examples_of_what_webhooks_send(self):
        """An entity that can be raised."""
        webhooks = self.document()["webhooks"]
        examples = {name: entry["post"]["requestBody"]["content"].get("application/json", {}).get("example")
                    for name, entry in webhooks.items()}
        self.assertEqual(list(examples["Shop.PersonCreated"][0]), ["Name", "Email", "Age", "Born"])
        self.assertIn("Reason", examples["Svc.WebhookPaused"][0])
        self.assertIsNone(examples["Shop.ReportReady"])
        for name in ("Shop.PersonCreated", "Shop.OrderPlaced"):
            self.created("/Svc.Event", {"Resource": name, "Payload": examples[name]})

    def test_its_paths_are_answered(self):
        """What it says that can be read is there; what it says of one entity is so of one that is not."""
        for path, key, _ in operations(self.document()):
            if key not in ("get", "head") or "{Event}" in path:
                continue
            target = path.replace("{Id}", "01a205ab-ae0c-7514-a42e-1c7bc266a3a7")
            self.assertIn(self.server.request(key.upper(), target).status, (200, 204), target)

    @harness.apart
    def test_its_examples_can_be_sent(self):
        document = self.document()
        sent = set()
        for key in ("post", "patch", "put"):
            for path, method, operation in operations(document):
                body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                if method != key or "example" not in body or "{" in path:
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
        for expected in ("Shop.Person", "Svc.Admin.Webhook", "Svc.Admin.Resource"):
            self.assertIn(("put", expected), sent)
        self.assertIn(("patch", "Svc.Admin.ApiKey"), sent)

    def test_every_body_has_an_example(self):
        """Of JSON; in binary mode of CloudEvents it is data of any kind."""
        document = self.document()
        for path, method, operation in operations(document):
            body = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if body is not None and path != "/Svc.Event/_":
                self.assertIn("example", body, (method, path))
        body = document["paths"]["/Svc.Event/Resource={Event}"]["post"]["requestBody"]["content"]
        event = document["paths"]["/Svc.Event"]["post"]["requestBody"]["content"]["application/json"]["example"]
        self.created(f"/Svc.Event/Resource={event['Resource']}", body["application/json"]["example"])

    def test_cloudevents_can_be_raised_by_it(self):
        """Its examples in JSON, and in binary mode the fields that it names."""
        document = self.document()
        operation = document["paths"]["/Svc.Event/_"]["post"]
        content = operation["requestBody"]["content"]
        self.assertEqual(list(content), ["application/cloudevents+json", "application/cloudevents-batch+json",
                                         "application/json"])
        one = content["application/cloudevents+json"]["example"]
        schema = find(document, content["application/cloudevents+json"]["schema"]["$ref"])
        self.assertLessEqual(set(schema["required"]), set(one))
        self.assertLessEqual(set(one), set(schema["properties"]))
        made = self.created("/Svc.Event/_", one, {"Content-Type": "application/cloudevents+json"})
        again = self.post("/Svc.Event/_", content["application/cloudevents-batch+json"]["example"],
                          {"Content-Type": "application/cloudevents-batch+json"})
        self.assertEqual(again.json()[0]["Id"], made["Id"], "its source and id are the same")
        values = dict(one, id="2", time="2026-11-23T09:30:00Z", subject="x", dataschema="https://x.example/")
        names = [find(document, entry["$ref"])["name"] for entry in operation["parameters"]]
        fields = {name: values[name.removeprefix("ce-")] for name in names if name.startswith("ce-")}
        made = self.created("/Svc.Event/_", one["data"], fields)
        kept = self.get(f"/Svc.Event/Id={made['Id']}").json()[0]["ce"]
        self.assertEqual({f"ce-{name}": value for name, value in kept.items() if name != "datacontenttype"}, fields)

    def test_what_is_written_otherwise_than_shown(self):
        """A delivery is written as Pending alone, a file is the configuration's, an event needs a payload; the
        server says the same."""
        schemas = self.document()["components"]["schemas"]
        self.assertEqual(schemas["Svc.Patch.Svc.Admin.Delivery"]["properties"]["State"]["enum"], ["Pending", None])
        self.assertIn("Dead", schemas["Svc.Admin.Delivery"]["properties"]["State"]["enum"])
        self.assertIn("File", schemas["Svc.Admin.Resource"]["properties"])
        self.assertNotIn("File", schemas["Svc.Input.Svc.Admin.Resource"]["properties"])
        self.assertNotIn("File", schemas["Svc.Patch.Svc.Admin.Resource"]["properties"])
        answer = self.post("/Svc.Admin.Resource", {"Name": "Zoo.Plan", "Kind": "BinaryResource", "File": "plan.txt"})
        self.assertEqual(answer.status, 400)
        event = schemas["Svc.Input.Svc.Event"]
        self.assertEqual(event["required"], ["Resource", "Payload"])
        self.assertIn("WebhookId", event["properties"])
        self.assertNotIn("WebhookId", schemas["Svc.Event"]["properties"])
        self.assertEqual([form["type"] for form in event["properties"]["Payload"]["oneOf"]], ["object", "array"])
        for payload in (None, "text", [1]):
            answer = self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": payload})
            self.assertEqual(answer.status, 400, payload)
        self.assertIn("Payload", self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced"}).json()["detail"])

    def test_a_key_is_shown_once(self):
        document = self.document()
        self.assertIn("Key", document["components"]["schemas"]["Svc.Admin.ApiKey"]["properties"])
        self.assertNotIn("Key", document["components"]["schemas"]["Svc.Input.Svc.Admin.ApiKey"]["properties"])
        made = self.created("/Svc.Admin.ApiKey", {"Name": "one", "AllowAccess": []})
        self.assertIn("Key", made)

    def test_bytes_have_their_types(self):
        document = self.document()
        types = {"Shop.Terms": "text/plain", "Svc.Metrics": "text/plain", "Svc.Console": "text/html",
                 "Svc.Health": "application/json", "Svc.OpenApi": "application/json"}
        for name, media_type in types.items():
            described = document["paths"]["/" + name]["get"]["responses"]["200"]["content"]
            answered = self.get("/" + name).headers["Content-Type"].partition(";")[0]
            self.assertEqual((list(described), answered), ([media_type], media_type), name)
        sent = document["paths"]["/Svc.Event/Resource={Event}"]["post"]["requestBody"]["content"]
        self.assertEqual(list(sent), ["application/json", "application/pdf"])
        health = find(document, "components/schemas/Svc.Health")
        self.assertLessEqual(set(self.get("/Svc.Health").json()), set(health["properties"]))

    def test_bytes_that_may_be_known(self):
        """304 is told where there is an ETag."""
        document = self.document()
        for path in ("/Shop.Terms", "/Svc.Metrics", "/Svc.Health", "/Svc.Console", "/Svc.OpenApi"):
            operation = document["paths"][path]["get"]
            etag = self.get(path).headers.get("ETag")
            self.assertEqual("304" in operation["responses"], etag is not None, path)
            self.assertEqual(bool(operation.get("parameters")), etag is not None, path)
            if etag:
                self.assertEqual(self.get(path, {"If-None-Match": etag}).status, 304)

    @harness.apart
    def test_names_that_generators_confuse(self):
        """Letters and digits of each name differ from those of all others."""
        self.created("/Svc.Admin.Resource", [
            {"Name": name, "Kind": "EntityResource", "Properties": [{"Name": "Name", "Type": "string"}]}
            for name in ("Zoo.Big-Cat", "Zoo.Big_Cat", "Zoo.BigCat", "Zoo.Big.Cat", "_._", "-.-", "Error.Code",
                         "SvcInput.Shop.Person")])
        document = self.document()
        self.check_whole(document)
        names = [operation["operationId"] for _, _, operation in operations(document)]
        for found in (names, list(document["components"]["schemas"])):
            bare = ["".join(filter(str.isalnum, name)).lower() for name in found]
            self.assertEqual(len(set(bare)), len(bare))
            self.assertTrue(all(bare))
        self.assertIn("get_Shop.Person", names)  # which nothing is like
        self.assertNotIn("get_Zoo.BigCat", names)

    def answer_of(self, document, path, method, status="200"):
        media = document["paths"][path][method]["responses"][status]["content"]["application/json"]
        if "examples" not in media:
            return media["example"]
        return find(document, media["examples"]["one"]["$ref"])["value"]

    @harness.apart
    def test_examples_of_answers(self):
        """They have the members of what is answered, in the same order, and the values that were sent."""
        document = self.document()
        receiver = self.receiver()
        for name in ("Svc.Admin.ApiKey", "Svc.Admin.Resource", "Svc.Admin.Webhook", "Svc.Aggregator", "Svc.Echo",
                     "Svc.Event", "Svc.Explain", "Shop.Message", "Shop.Person"):
            operation = document["paths"]["/" + name]["post"]
            sent = operation["requestBody"]["content"]["application/json"]["example"]
            answered = self.post("/" + name, sent).json()[0]
            example, = self.answer_of(document, "/" + name, "post", "201" if "201" in operation["responses"] else "200")
            self.assertEqual(list(example), list(answered), name)
            if name == "Svc.Aggregator":
                sent = {}  # it has what became of it
            for member in set(sent) & set(answered):
                self.assertEqual(example[member], answered[member], (name, member))
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.PersonCreated")
        self.created("/Shop.Person", {"Name": "Ada"})
        receiver.take()
        self.assertEqual(self.get("/Nothing").status, 404)
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog").status == 200, "an entry of the log")
        for path, item in document["paths"].items():
            content = item.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
            if "{" in path or "application/json" not in content or path == "/Svc.OpenApi":
                continue
            example, answered = self.answer_of(document, path, "get"), self.get(path).json()
            if isinstance(answered, list):
                example, answered = example[0], answered[-1]
            if path != "/Shop.Message":
                self.assertEqual(list(example), list(answered), path)
            for member, value in example.items():
                if member == "Payload":
                    continue  # an object, or an array of them
                given = {type(value), type(answered.get(member))}
                self.assertTrue(len(given - {type(None)}) < 2 or given == {int, float}, (path, member, given))

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

    @harness.apart
    def test_many_resources(self):
        """Too many for one turn."""
        many = [{"Name": f"Zoo.Animal{i}", "Kind": "EntityResource", "Properties": [
            {"Name": f"Property{j}", "Type": "integer"} for j in range(20)]} for i in range(500)]
        self.assertEqual(self.post("/Svc.Admin.Resource", many).status, 201)
        document = self.document()
        self.check_whole(document)
        self.check_listed(document, self.get("/").json())


class Notices(OpenApiCase):
    """The server alone raises its own events: nothing in the document says otherwise."""

    def make_config(self):
        return {}

    def events(self, document):
        """Those that can be raised, and the example of that."""
        path = document["paths"].get("/Svc.Event/Resource={Event}")
        content = document["paths"]["/Svc.Event"]["post"]["requestBody"]["content"]["application/json"]
        return path and path["parameters"][0]["schema"]["enum"], content.get("example")

    def test_nothing_is_declared(self):
        document = self.document()
        self.check_whole(document)
        self.assertEqual(self.events(document), (None, None))
        self.assertEqual(len(document["webhooks"]), 3)

    def test_bytes_alone_are_declared(self):
        self.created("/Svc.Admin.Resource", {"Name": "Zoo.Sheet", "Kind": "EventResource",
                                             "Payload": {"ContentType": "application/pdf"}})
        document = self.document()
        self.check_whole(document)
        self.assertEqual(self.events(document), (["Zoo.Sheet"], None))
        body = document["paths"]["/Svc.Event/Resource={Event}"]["post"]["requestBody"]
        self.assertEqual(list(body["content"]), ["application/pdf"])
        for body in document["paths"]["/Svc.Event/_"]["post"]["requestBody"]["content"].values():
            self.assertNotIn("example", body)

    def test_what_is_declared_comes_first(self):
        """Whatever it is called."""
        self.created("/Svc.Admin.Resource", {"Name": "Zoo.Born", "Kind": "EventResource"})
        names, example = self.events(self.document())
        self.assertIn("Zoo.Born", names)
        self.assertFalse([name for name in names if name.startswith("Svc.")])
        self.assertEqual(example["Resource"], "Zoo.Born")
        self.created("/Svc.Event", example)


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
    shares_server = True

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

    def test_who_may_read_is_shown_what_was_written(self):
        """Whatever the methods of the resource: the right to GET it decides."""
        self.server.request("POST", "/Svc.Admin.Resource", {"Name": "Zoo.Box", "Kind": "EntityResource",
                                                            "Methods": ["POST"]},
                            {"Authorization": "apikey root-key"})
        document = self.document(Authorization="apikey root-key")
        self.check_whole(document)
        described = document["paths"]["/Zoo.Box"]["post"]["responses"]["201"]
        answer = self.server.request("POST", "/Zoo.Box", {"a": 1}, {"Authorization": "apikey root-key"})
        self.assertEqual((answer.status, list(answer.json()[0])), (201, ["Id", "a", "ObjectNo"]))
        self.assertIn("content", described)

    def test_the_console_needs_no_key(self):
        document = self.document(Authorization="apikey root-key")
        for path, _, operation in operations(document):
            self.assertEqual("security" in operation, path == "/Svc.Console", path)
        self.assertEqual(document["paths"]["/Svc.Console"]["get"]["security"], [])
        self.assertEqual(self.get("/Svc.Console").status, 200)

    def test_it_needs_the_right(self):
        self.assertEqual(self.ask("blind", "/openapi.json").status, 403)
        self.assertEqual(self.get("/openapi.json").status, 401)
        self.assertNotIn("Svc.OpenApi", json.dumps(self.ask("blind", "/").json()))


if __name__ == "__main__":
    unittest.main()

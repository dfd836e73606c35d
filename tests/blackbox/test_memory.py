"""What requests, deliveries, logs and answers may take together: bytes, not numbers."""
import json
import socket
import threading
import unittest

import harness

MIB = 1 << 20


def resident(server):
    """The most that has been resident since the start."""
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))


class MemoryCase(harness.ServerCase):
    """With sanitizers, which make all of it slow, there is less of what fills memory, as they leave nothing to measure."""
    env = harness.SMALL_QUARANTINE

    def check_resident(self, bound_mib):
        """What the sanitizers add to each block is not the server's."""
        if not harness.is_sanitized():
            self.assertLess(resident(self.server), (bound_mib + 32) * MIB)


class Deaf:
    """A receiver that takes connections and little more, until it is told to listen."""

    def __init__(self, case):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.may_read = threading.Event()
        self.ids = set()
        self.lock = threading.Lock()
        self.connections = 0
        case.addCleanup(self.close)
        threading.Thread(target=self.accept, daemon=True).start()

    def url(self):
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/"

    def close(self):
        self.may_read.set()
        harness.end(self.listener)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        self.may_read.wait()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)  # no more in little pieces
        with connection, connection.makefile("rb") as file:
            try:
                while file.readline():
                    headers = {}
                    while (line := file.readline().strip()):
                        name, _, value = line.decode().partition(":")
                        headers[name.lower()] = value.strip()
                    length = int(headers.get("content-length", 0))
                    if len(file.read(length)) < length:
                        return
                    with self.lock:
                        self.ids.add((headers["svc-webhook-id"], headers["webhook-id"]))
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            except OSError:
                return


class Bodies(MemoryCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"MemoryBytes": 100 * MIB, "BodyBytes": 4 * MIB}
        config["Delivery"] = {"BodyBytesInFlight": 16 * MIB}
        return config

    def bodies(self):
        return self.metric("svc_ledger_bytes", kind="Bodies")

    def metric(self, name, **labels):
        text = self.get("/Svc.Metrics").body.decode()
        wanted = name + ("{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else "")
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines()
                    if line.rpartition(" ")[0] == wanted)

    def test_custom_payloads_wait_their_turn_and_none_is_lost(self):
        receiver = Deaf(self)
        for i in range(5):
            self.post("/Shop.Message", {"Text": chr(97 + i) * MIB})
        hooks, events = 8, 2 if harness.is_sanitized() else 3  # 80 or 120 MiB
        for i in range(hooks):  # bodies that differ: each has its own URI, and so its own order
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         CustomPayloadRequest={"Uri": f"/Shop.Message/_/add=Text.Length&rename=Text->T{i}"},
                         Delivery={"TimeoutSeconds": 600})
        raised = self.post("/Svc.Event", [{"Resource": "Shop.OrderPlaced", "Payload": {}}] * events)
        self.assertEqual(raised.status, 201)
        harness.wait_until(lambda: receiver.connections >= 2, "attempts begin")
        for _ in range(20):
            self.assertLessEqual(self.bodies(), 16 * MIB)
        self.assertGreater(self.bodies(), 4 * MIB)
        self.assertEqual(self.metric("svc_deliveries_pending"), hooks * events)
        receiver.may_read.set()
        harness.wait_until(lambda: self.metric("svc_deliveries_pending") == 0, "all are delivered")
        self.assertEqual(len(receiver.ids), hooks * events)
        harness.wait_until(lambda: self.bodies() == 0, "nothing is left")
        self.check_resident(100)

    def test_what_is_being_made_is_weighed(self):
        """Bodies of 12 MiB, each of which takes twice as much while it is made."""
        hooks = 4 if harness.is_sanitized() else 8
        receiver = Deaf(self)
        receiver.may_read.set()
        for i in range(12):
            self.post("/Shop.Message", {"Text": chr(97 + i) * MIB})
        for i in range(hooks):
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         CustomPayloadRequest={"Uri": f"/Shop.Message/_/rename=Text->T{i}"},
                         Delivery={"TimeoutSeconds": 600})
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        harness.wait_until(lambda: self.metric("svc_deliveries_pending") == 0, "all are delivered")
        self.assertEqual(len(receiver.ids), hooks)
        self.check_resident(100)

    def test_a_body_that_many_send_is_there_once(self):
        receiver = Deaf(self)
        for _ in range(40):
            self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                         Delivery={"TimeoutSeconds": 600})
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Text": "x" * 2 * MIB}})
        harness.wait_until(lambda: receiver.connections >= 20, "many attempts are under way")
        self.assertLess(self.bodies(), 2 * MIB + 1000)
        receiver.may_read.set()
        harness.wait_until(lambda: self.metric("svc_deliveries_pending") == 0, "all are delivered")
        self.assertEqual(len(receiver.ids), 40)

    def test_one_larger_than_the_bound_goes_alone(self):
        receiver = self.receiver()
        for i in range(18):
            self.post("/Shop.Message", {"Text": chr(97 + i) * MIB})
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced",
                     CustomPayloadRequest={"Uri": "/Shop.Message"})
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        self.assertGreater(len(receiver.take().body), 16 * MIB)


class Logs(MemoryCase):
    memory = 10 if harness.is_sanitized() else 20  # MiB

    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"MemoryBytes": self.memory * MIB}
        return config

    def test_errors_of_anybody_fill_no_memory(self):
        head = "POST /" + "a" * 8000 + " HTTP/1.1\r\nHost: x\r\nX: "
        request = (head.encode() + "€".encode() * 7000 + b"\r\nContent-Length: 10000\r\n\r\n" +
                   b"\x01" * 10000)
        with socket.create_connection(("127.0.0.1", self.server.port)) as client:
            with client.makefile("rb") as file:
                for _ in range(45 * self.memory):  # 14 or 28 MiB
                    client.sendall(request)
                    status = int(file.readline().split()[1])
                    length = 0
                    while (line := file.readline().strip()):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    file.read(length)
                    self.assertIn(status, (400, 404))
        errors = self.get("/Svc.Admin.Error/_/limit=20").json()
        self.assertLessEqual(max(len(json.dumps(e, ensure_ascii=False)) for e in errors), 32768)
        self.assertEqual(self.post("/Shop.Message", {"Text": "x" * 100000}).status, 201)
        self.check_resident(self.memory)
        # How many stay near MemoryBytes depends on the heap, which is another after a restart.
        self.server.request("DELETE", "/Svc.Admin.Error/_/unsafe=true")

    def test_answers_of_receivers_are_kept_as_they_are_written(self):
        receiver = self.receiver(lambda request: (200, {}, b"\x01" * 4096))
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {}})
        receiver.take()
        harness.wait_until(lambda: self.get("/Svc.Admin.WebhookLog").status == 200, "it is logged")
        answer = self.get("/Svc.Admin.WebhookLog")
        self.assertEqual(answer.json()[0]["ResponseBody"], "\x01" * (4096 // 6))
        self.assertLess(len(answer.body), 6000)


class Retention(harness.ServerCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Retention"] = {"ErrorBytes": 200000, "WebhookLogBytes": 100000, "EventBytes": 100000}
        return config

    def numbers(self, resource):
        answer = self.get(resource)
        return [entity["ObjectNo"] for entity in answer.json()] if answer.status == 200 else []

    def sizes(self, resource):
        answer = self.get(resource)
        return len(answer.body) if answer.status == 200 else 0

    def settled(self, resource, most):
        harness.wait_until(lambda: self.sizes(resource) <= most, f"{resource} is shortened")
        return self.numbers(resource)

    def test_what_is_oldest_goes_first_also_after_a_restart(self):
        receiver = self.receiver()
        self.webhook(Destination=receiver.url(), EventSelector="/Shop.OrderPlaced")
        for i in range(30):
            self.assertEqual(self.post("/Shop.Nothing", {"Text": "x" * 9000, "No": i}).status, 404)
            self.post("/Svc.Event", {"Resource": "Shop.OrderPlaced", "Payload": {"Text": "x" * 8000}})
        for _ in range(30):
            receiver.take()
        for resource, most in (("/Svc.Admin.Error", 200000), ("/Svc.Event", 100000)):
            before = self.settled(resource, most)
            self.assertGreater(len(before), 5, resource)
            newest = self.get(resource + "/_/offset=-1").json()[0]
            self.assertEqual(newest["ObjectNo"], before[-1])
        last = self.numbers("/Svc.Admin.Error")
        self.server.stop()
        self.server.start()
        self.assertEqual(self.numbers("/Svc.Admin.Error"), last)
        self.post("/Shop.Nothing", {"Text": "y" * 9000})
        self.post("/Shop.Nothing", {"Text": "y" * 9000})
        after = self.settled("/Svc.Admin.Error", 200000)
        self.assertNotIn(last[0], after)
        self.assertEqual(after[:-2], last[len(last) - len(after) + 2:])


if __name__ == "__main__":
    unittest.main()

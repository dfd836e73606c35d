"""A backlog whose payloads are in the journal only, because memory may hold few of them."""
import unittest

import harness

EVENTS = 300


class Backlog(harness.ServerCase):
    def make_config(self):
        config = harness.load_config(harness.SHOP)
        config["Limits"] = {"PayloadBytes": self.payload_bytes}
        return config

    payload_bytes = 20000

    @staticmethod
    def payload(number):
        return {"No": number, "Text": f"{number:04}" * 300}

    def backlog(self):
        """Events for a receiver that does not answer yet."""
        self.is_open = False
        receiver = self.receiver(lambda request: 200 if self.is_open else 503)
        self.webhook(Destination=receiver.url(), EventSelector="/OrderPlaced",
                     Delivery={"RetrySchedule": [0.5] * 30, "Ordered": True})
        for first in range(0, EVENTS, 10):
            events = [{"Resource": "Shop.OrderPlaced", "Payload": self.payload(number)}
                      for number in range(first, first + 10)]
            answer = self.post("/Svc.Event", events)
            self.assertEqual(answer.status, 201, answer)
        return receiver

    def check_kept(self):
        kept = [event["Payload"] for event in self.get("/Svc.Event").json()]
        self.assertEqual(kept, [[self.payload(number)] for number in range(EVENTS)])

    def check_all_arrive(self, receiver):
        receiver.forget()
        self.is_open = True
        arrived = []
        while len(arrived) < EVENTS:
            number = receiver.take().json()[0]["No"]
            if not arrived or arrived[-1] != number:
                arrived.append(number)
        self.assertEqual(arrived, list(range(EVENTS)))

    def test_payloads_are_read_back(self):
        receiver = self.backlog()
        self.check_kept()
        self.server.kill()
        self.server.start()
        self.check_kept()
        self.check_all_arrive(receiver)


class NoneInMemory(Backlog):
    payload_bytes = 0


if __name__ == "__main__":
    unittest.main()

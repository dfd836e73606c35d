#!/usr/bin/env python3
"""The checkers of nodes.py, checked: each finds what it is there for, and nothing in what is right."""
import itertools
import random
import sys
import unittest

import ledger
import linear
from linear import Operation


def read(begin, end, value):
    return Operation("read", begin, end, value)


def swap(begin, end, old, value):
    return Operation("swap", begin, end, value, old)


def keep(begin, end, old):
    return Operation("keep", begin, end, None, old)


def maybe(begin, old, value):
    return Operation("maybe", begin, None, value, old)


def by_trying_all(operations, state):
    """Is there an order? Every one is tried, of each choice of those without an answer."""
    sure = [one for one in operations if one.kind != "maybe"]
    perhaps = [one for one in operations if one.kind == "maybe"]
    for count in range(len(perhaps) + 1):
        for chosen in itertools.combinations(perhaps, count):
            if any(explains(order, state) for order in itertools.permutations([*sure, *chosen])):
                return True
    return False


def explains(order, state):
    for place, one in enumerate(order):
        can, state = one.after(state)
        if not can or any(later.end < one.begin for later in order[place + 1:]):
            return False
    return True


def record(rng, clients, steps):
    """A history of a real register, one effect at a time, each within its operation."""
    state, now, under_way, done, number = 0, 0, {}, [], itertools.count(1)
    for _ in range(steps):
        now += 1
        who = rng.randrange(clients)
        if who not in under_way:
            kind = rng.choice(["read", "swap"])
            under_way[who] = [kind, now, state if rng.random() < 0.7 else -1, next(number), None]
            continue
        one = under_way[who]
        if one[4] is None:  # its effect
            if one[0] == "read":
                one[4] = read(one[1], None, state)
            elif rng.random() < 0.1:
                one[4] = maybe(one[1], one[2], one[3])
                if rng.random() < 0.5 and state == one[2]:
                    state = one[3]
            elif state == one[2]:
                one[4], state = swap(one[1], None, one[2], one[3]), one[3]
            else:
                one[4] = keep(one[1], None, one[2])
        else:
            if one[4].kind != "maybe":
                one[4].end = now
            done.append(one[4])
            del under_way[who]
    return done + [one[4] for one in under_way.values() if one[4] is not None and one[4].kind == "maybe"]


class Linear(unittest.TestCase):
    def right(self, *operations, state=0):
        self.assertIsNone(linear.explain(list(operations), state))

    def wrong(self, *operations, state=0):
        self.assertIsNotNone(linear.explain(list(operations), state))

    def test_nothing(self):
        self.right()

    def test_one_after_another(self):
        self.right(read(1, 2, 0), swap(3, 4, 0, 1), read(5, 6, 1), keep(7, 8, 0))

    def test_a_stale_read(self):
        self.wrong(swap(1, 2, 0, 1), read(3, 4, 0))

    def test_a_read_beside_a_change_sees_either(self):
        self.right(swap(1, 5, 0, 1), read(2, 3, 0))
        self.right(swap(1, 5, 0, 1), read(2, 3, 1))

    def test_a_read_goes_back(self):
        """Two reads beside one change, the later of which sees what was before."""
        self.wrong(swap(1, 9, 0, 1), read(2, 3, 1), read(4, 5, 0))

    def test_a_lost_change(self):
        self.wrong(swap(1, 2, 0, 1), swap(3, 4, 0, 2))

    def test_two_win(self):
        self.wrong(swap(1, 4, 0, 1), swap(2, 5, 0, 2))

    def test_one_wins(self):
        self.right(swap(1, 4, 0, 1), keep(2, 5, 0))

    def test_refused_for_nothing(self):
        self.wrong(keep(1, 2, 0))

    def test_no_answer(self):
        """It may have been done, at any time later, or never; but it is not undone."""
        self.right(maybe(1, 0, 1), read(2, 3, 0), read(4, 5, 1))
        self.right(maybe(1, 0, 1), read(2, 3, 0), read(4, 5, 0))
        self.wrong(maybe(1, 0, 1), read(2, 3, 1), read(4, 5, 0))

    def test_no_answer_is_not_done_before_its_begin(self):
        self.wrong(read(1, 2, 1), maybe(3, 0, 1))

    def test_an_earlier_choice_is_taken_back(self):
        self.right(maybe(1, 0, 1), maybe(1, 0, 2), swap(2, 3, 2, 3), read(4, 5, 3))

    def test_says_which(self):
        found = list(linear.check({"r": [swap(1, 2, 0, 1), read(3, 4, 0)]}, {"r": 0}))
        self.assertEqual(len(found), 1)
        self.assertIn("register r: no order explains 3.000000 to 4.000000 : read 0; it was 1 then", found[0])

    def test_as_all_orders_say(self):
        """Small histories, right and spoilt: the same as when all orders are tried."""
        rng, told = random.Random(1), {True: 0, False: 0}
        while min(told.values()) < 60:
            operations = record(rng, 3, 22)[:7]
            if rng.random() < 0.7 and operations:
                spoilt = rng.choice(operations)
                spoilt.value = rng.randrange(6)
            right = by_trying_all(operations, 0)
            self.assertEqual(linear.explain(operations, 0) is None, right, operations)
            told[right] += 1

    def test_long(self):
        """Many operations, eight at a time: found right, and wrong once one read is made stale."""
        rng = random.Random(2)
        operations = record(rng, 8, 9000)
        self.assertIsNone(linear.explain(operations, 0))
        reads = [one for one in operations if one.kind == "read"]
        reads[len(reads) // 2].value = 0
        self.assertIsNotNone(linear.explain(operations, 0))


class Items(unittest.TestCase):
    def setUp(self):
        self.ledger = ledger.Ledger()

    def found(self, *rows):
        return list(ledger.check_items(self.ledger, rows))

    def test_right(self):
        self.ledger.acknowledged("a", (1,))
        self.ledger.acknowledged("a", (2,))
        self.ledger.acknowledged("b", ledger.ABSENT)
        self.ledger.refuse("a", (3,))
        self.assertEqual(self.found(("a", 2)), [])

    def test_lost(self):
        self.ledger.acknowledged("a", (1,))
        self.assertEqual(self.found(), ["a: acknowledged and lost; it may be [(1,)]"])

    def test_an_older_value(self):
        self.ledger.acknowledged("a", (1,))
        self.ledger.acknowledged("a", (2,))
        self.assertEqual(self.found(("a", 1)), ["a: (1,) is there; it may be [(2,)]"])

    def test_deleted_and_back(self):
        self.ledger.acknowledged("a", (1,))
        self.ledger.acknowledged("a", ledger.ABSENT)
        self.assertEqual(len(self.found(("a", 1))), 1)

    def test_refused_and_there(self):
        self.ledger.acknowledged("a", (1,))
        self.ledger.refuse("a", (2,), "no")
        self.assertEqual(self.found(("a", 2)), ["a: (2,) was refused and is there; it may be [(1,)]; no"])
        self.ledger.refuse("b", (1,), "503")
        self.assertEqual(self.found(("a", 1), ("b", 1)), ["b: (1,) was refused and is there; it may be [()]; 503"])

    def test_open(self):
        self.ledger.acknowledged("a", (1,))
        self.ledger.leave_open("a", (2,))
        self.assertEqual(self.found(("a", 1)) + self.found(("a", 2)), [])
        self.assertEqual(len(self.found(("a", 3))), 1)
        self.assertEqual(len(self.found()), 1)

    def test_half(self):
        self.ledger.leave_open("a", (1, 1, 1))
        self.assertEqual(self.found() + self.found(("a", 1), ("a", 1), ("a", 1)), [])
        self.assertEqual(self.found(("a", 1)), ["a: (1,) is there; it may be [(), (1, 1, 1)]"])

    def test_twice(self):
        self.ledger.acknowledged("a", (1,))
        self.assertEqual(len(self.found(("a", 1), ("a", 1))), 1)

    def test_from_nowhere(self):
        self.assertEqual(self.found(("a", 1)), ["a: [1] is there, and nobody wrote it"])


class Events(unittest.TestCase):
    def setUp(self):
        self.ledger = ledger.Ledger()
        self.arrivals = ledger.Arrivals()

    def found(self, *rows):
        return list(ledger.check_events(self.ledger, rows))

    def arrived(self, *rows):
        return list(ledger.check_arrivals(self.ledger, self.arrivals, rows))

    def test_right(self):
        self.assertIsNone(self.ledger.raised(1, "x"))
        self.ledger.may_be_raised(2)
        self.assertIsNone(self.ledger.raised(2, "y"))
        self.ledger.refuse_event(3)
        self.ledger.may_be_raised(4)
        self.ledger.refuse_event(4)  # the first try may have gone through
        rows = [(1, "x"), (2, "y"), (4, "z")]
        self.assertEqual(self.found(*rows), [])
        for number, ident in [*rows, rows[0]]:
            self.arrivals.arrive(ident, number)
        self.assertEqual(self.arrived(*rows), [])

    def test_another_id(self):
        self.ledger.raised(1, "x")
        self.assertEqual(self.ledger.raised(1, "y"), "event 1 was raised as x, and again as y")

    def test_lost(self):
        self.ledger.raised(1, "x")
        self.assertEqual(self.found(), ["event 1 was acknowledged as x; there is []"])

    def test_twice(self):
        self.ledger.raised(1, "x")
        self.assertEqual(self.found((1, "x"), (1, "y")), ["event 1 is there 2 times: ['x', 'y']"])

    def test_refused(self):
        self.ledger.refuse_event(1)
        self.assertEqual(self.found((1, "x")), ["event 1 was refused and is there: ['x']"])

    def test_never_sent(self):
        self.assertEqual(self.found((1, "x")), ["event 1 was never sent and is there: ['x']"])

    def test_not_delivered(self):
        self.ledger.raised(1, "x")
        self.assertEqual(self.arrived((1, "x")), ["event x was acknowledged and never delivered"])

    def test_another_webhook_id(self):
        self.ledger.raised(1, "x")
        self.arrivals.arrive("x", 1)
        self.arrivals.arrive("y", 1)
        self.assertEqual(self.arrived((1, "x")), ["event 1 was delivered with 2 webhook-ids: ['x', 'y']",
                                                  "event 1 was delivered as y, which no node has"])

    def test_a_webhook_id_for_two(self):
        self.arrivals.arrive("x", 1)
        self.arrivals.arrive("x", 2)
        self.assertIn("webhook-id x came with event 1 and 2", self.arrived((1, "x")))

    def test_delivered_before_it_was_sure(self):
        self.ledger.may_be_raised(1)
        self.arrivals.arrive("x", 1)
        self.assertEqual(self.arrived(), ["event 1 was delivered as x, which no node has"])


def run():
    """(passed, failed)."""
    tests = unittest.defaultTestLoader.loadTestsFromModule(sys.modules[__name__])
    result = unittest.TextTestRunner(sys.stdout, verbosity=0).run(tests)
    failed = len(result.failures) + len(result.errors)
    return result.testsRun - failed, failed


if __name__ == "__main__":
    GOOD, BAD = run()
    print(f"{GOOD} passed, {BAD} failed")
    sys.exit(BAD > 0)

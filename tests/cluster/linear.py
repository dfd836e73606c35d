"""Could one register, which takes one operation at a time, have given these answers? A checker of histories after
Wing and Gong, with Lowe's memory of places that lead nowhere.

An operation took effect at one moment between its begin and its end. Kinds:

  read      answered `value`
  swap      from `old` to `value`, was answered: done
  keep      a swap from `old`, was answered: there is something else
  maybe     a swap from `old` to `value` without an answer that tells: it took effect at any time after its begin, or
            never
"""
import math


class Operation:
    def __init__(self, kind, begin, end, value=None, old=None, who=""):
        self.kind, self.begin, self.value, self.old, self.who = kind, begin, value, old, who
        self.end = math.inf if kind == "maybe" else end

    def after(self, state):
        """(could it take effect now, what is there then)."""
        if self.kind == "read":
            return state == self.value, state
        if self.kind == "keep":
            return state != self.old, state
        return state == self.old, self.value

    def __repr__(self):
        what = {"read": f"read {self.value}", "swap": f"{self.old} -> {self.value}", "keep": f"not {self.old}",
                "maybe": f"{self.old} -> {self.value}, perhaps"}[self.kind]
        return f"{self.begin:.6f} to {self.end:.6f} {self.who}: {what}"


class Place:
    """Of a begin or an end in the list of what is still to be explained."""
    __slots__ = ("number", "end", "before", "next")

    def __init__(self, number, end):
        self.number = number
        self.end = end  # the place of the operation's end; None: this is an end
        self.before = self.next = None


def places_of(operations):
    """The first of a ring, before which there is nothing."""
    events = []
    for number, operation in enumerate(operations):
        end = Place(number, None)
        events.append((operation.begin, 0, number, Place(number, end)))
        events.append((operation.end, 1, number, end))
    head = last = Place(-1, None)
    for event in sorted(events, key=lambda e: e[:3]):  # what begins as another ends is beside it
        last.next, event[3].before = event[3], last
        last = event[3]
    return head


def take_out(place):
    for one in (place, place.end):
        one.before.next = one.next
        if one.next:
            one.next.before = one.before


def put_back(place):
    for one in (place.end, place):
        one.before.next = one
        if one.next:
            one.next.before = one


def explain(operations, state):
    """None when there is an order that explains all; else the operation that none could reach, with what was before
    it in the longest order found."""
    head = places_of(operations)
    taken, stack, seen = 0, [], set()
    longest, stuck = -1, None
    left = sum(operation.end != math.inf for operation in operations)
    place = head.next
    while left:
        if place.end is not None:
            can, then = operations[place.number].after(state)
            key = (taken | 1 << place.number, then)
            if can and key not in seen:
                seen.add(key)
                stack.append((place, state))
                taken, state = key
                left -= operations[place.number].end != math.inf
                take_out(place)
                place = head.next
            else:
                place = place.next
            continue
        # An end whose operation has had no effect yet: an earlier choice was wrong.
        if len(stack) > longest:
            longest, stuck = len(stack), (operations[place.number], state)
        if not stack:
            return stuck
        place, state = stack.pop()
        taken &= ~(1 << place.number)
        left += operations[place.number].end != math.inf
        put_back(place)
        place = place.next
    return None


def check(histories, first):
    """{register: [Operation]}, {register: what it was at first}. Yields what is wrong, a line each."""
    for name, operations in sorted(histories.items()):
        found = explain(operations, first[name])
        if found:
            operation, state = found
            beside = [one for one in operations if one.begin <= operation.end and one.end >= operation.begin]
            yield (f"register {name}: no order explains {operation}; it was {state} then; beside it: "
                   f"{'; '.join(map(str, beside[:8]))}")

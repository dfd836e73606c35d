"""What clients were told, and whether the nodes have it.

An item is what one client alone writes: an entity, or entities that were inserted together. `may` holds what it may
be: a tuple of the values that are found of it, empty when it is not there. An acknowledged change leaves one, a change
that may have been done adds one, a refused change adds none. So what was acknowledged and is lost, what was refused
and is there, and what is there by half are all the same: something that may not be."""

ABSENT = ()


class Ledger:
    def __init__(self):
        self.may = {}        # item -> set of tuples
        self.refused = {}    # item -> {values that were refused: in which words}
        self.events = {}     # number -> Id, or None: it may have been raised
        self.no_events = set()  # numbers that were refused
        self.counts = {"acknowledged": 0, "refused": 0, "open": 0}

    # Entities.

    def acknowledged(self, item, values):
        self.counts["acknowledged"] += 1
        self.may[item] = {values}

    def refuse(self, item, values, why=""):
        self.counts["refused"] += 1
        self.refused.setdefault(item, {})[values] = why
        self.may.setdefault(item, {ABSENT})

    def leave_open(self, item, values):
        self.counts["open"] += 1
        self.may.setdefault(item, {ABSENT}).add(values)

    # Events.

    def raised(self, number, ident):
        """Returns what is wrong, or None."""
        self.counts["acknowledged"] += 1
        before = self.events.get(number)
        self.events[number] = ident
        if before not in (None, ident):
            return f"event {number} was raised as {before}, and again as {ident}"
        return None

    def may_be_raised(self, number):
        self.counts["open"] += 1
        self.events.setdefault(number, None)

    def refuse_event(self, number):
        """It says nothing of an earlier try."""
        self.counts["refused"] += 1
        if number not in self.events:
            self.no_events.add(number)


def check_items(ledger, rows):
    """rows: (item, value) of each entity that is there. Yields what is wrong."""
    found = {}
    for item, value in rows:
        found.setdefault(item, []).append(value)
    for item, may in ledger.may.items():
        there = tuple(sorted(found.pop(item, ())))
        if there in may:
            continue
        if there in ledger.refused.get(item, ()):
            yield f"{item}: {there} was refused and is there; it may be {sorted(may)}; {ledger.refused[item][there]}"
        elif there == ABSENT:
            yield f"{item}: acknowledged and lost; it may be {sorted(may)}"
        else:
            yield f"{item}: {there} is there; it may be {sorted(may)}"
    for item, values in found.items():
        yield f"{item}: {values} is there, and nobody wrote it"


def check_events(ledger, rows):
    """rows: (number, Id) of each event that is there. Yields what is wrong."""
    found = {}
    for number, ident in rows:
        found.setdefault(number, []).append(ident)
    for number, ident in ledger.events.items():
        there = found.pop(number, [])
        if len(there) > 1:
            yield f"event {number} is there {len(there)} times: {there}"
        elif ident is not None and there != [ident]:
            yield f"event {number} was acknowledged as {ident}; there is {there}"
    for number, idents in found.items():
        why = "was refused" if number in ledger.no_events else "was never sent"
        yield f"event {number} {why} and is there: {idents}"


class Arrivals:
    """What a receiver got."""

    def __init__(self):
        self.number_of = {}  # webhook-id -> number
        self.ids_of = {}     # number -> webhook-ids
        self.times = 0
        self.problems = []

    def arrive(self, ident, number):
        self.times += 1
        if self.number_of.setdefault(ident, number) != number:
            self.problems.append(f"webhook-id {ident} came with event {self.number_of[ident]} and {number}")
        self.ids_of.setdefault(number, set()).add(ident)


def lacking(ledger, arrivals):
    """Ids of acknowledged events that have not arrived."""
    return {ident for ident in ledger.events.values() if ident is not None} - arrivals.number_of.keys()


def check_arrivals(ledger, arrivals, rows):
    """rows as in check_events. Yields what is wrong."""
    yield from arrivals.problems
    there = {ident for _, ident in rows}
    for ident in sorted(lacking(ledger, arrivals)):
        yield f"event {ident} was acknowledged and never delivered"
    for number, idents in arrivals.ids_of.items():
        if len(idents) > 1:
            yield f"event {number} was delivered with {len(idents)} webhook-ids: {sorted(idents)}"
        for ident in idents - there:
            yield f"event {number} was delivered as {ident}, which no node has"

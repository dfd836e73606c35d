"""Interleaved runs: every round measures each target once, so that whatever else the machine does
meets all of them alike. A row holds what the rounds gave for one target."""
import random
import statistics
import sys

from . import machine

CALLS_SECONDS = 1


class Target:
    """Something to measure: `run(seconds)` gives a load.Result for work done by `pids()`, unless the
    result carries its own CPU time. `before` and `after` surround each round, unmeasured."""

    def __init__(self, name, run, pids=None, before=None, after=None):
        self.name = name
        self.run = run
        self.pids = pids or (lambda: [])
        self.before = before or (lambda: None)
        self.after = after or (lambda: None)


class Row:
    def __init__(self, name, unit="/s"):
        self.name = name
        self.unit = unit
        self.values = []
        self.p50_us = []
        self.p99_us = []
        self.cpu_us = []
        self.calls = None
        self.epoll_ctl = None
        self.errors = 0
        self.ratio = None  # ours over this one, round by round
        self.note = ""

    def add(self, value, result=None, cpu_us=None):
        self.values.append(value)
        if cpu_us is not None:
            self.cpu_us.append(cpu_us)
        if result is not None:
            self.errors += result.errors
            if result.p99_us is not None:
                self.p50_us.append(result.p50_us)
                self.p99_us.append(result.p99_us)
        return self

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def spread_percent(self):
        """Half the distance of the extremes, of the median."""
        half = (max(self.values) - min(self.values)) / 2
        return 100 * half / self.median if self.median else 0.0

    def compare_to(self, ours):
        if ours.values and all(self.values):
            self.ratio = statistics.median(a / b for a, b in zip(ours.values, self.values))
        return self.ratio

    def as_json(self):
        def middle(values):
            return statistics.median(values) if values else None
        return {"name": self.name, "unit": self.unit, "median": self.median,
                "spread_percent": round(self.spread_percent, 1), "values": self.values,
                "p50_us": middle(self.p50_us), "p99_us": middle(self.p99_us),
                "cpu_us_per_operation": middle(self.cpu_us),
                "calls_per_operation": self.calls, "epoll_ctl_per_operation": self.epoll_ctl,
                "ours_over_this": self.ratio, "errors": self.errors, "note": self.note}


class Goal:
    """A figure that is to be reached."""

    def __init__(self, what, value, limit, at_least=True):
        self.what = what
        self.value = value
        self.limit = limit
        self.at_least = at_least

    @property
    def is_met(self):
        if self.value is None:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_json(self):
        return {"what": self.what, "value": self.value, "limit": self.limit,
                "at_least": self.at_least, "met": self.is_met}


class Scenario:
    def __init__(self, name, title, rows, goals=()):
        self.name = name
        self.title = title
        self.rows = rows
        self.goals = list(goals)

    def as_json(self):
        return {"name": self.name, "title": self.title,
                "rows": [row.as_json() for row in self.rows],
                "goals": [goal.as_json() for goal in self.goals]}


def say(text):
    print(f"  {text}", file=sys.stderr, flush=True)


def _one(target, seconds):
    pids = target.pids()
    before = machine.cpu_ns(pids)
    result = target.run(seconds)
    spent = getattr(result, "cpu_ns", None)
    if spent is None and pids:
        spent = machine.cpu_ns(pids) - before
    cpu_us = spent / 1000 / result.ops if spent and result.ops else None
    return result, cpu_us


def _count_calls(target, row):
    target.before()
    pids = target.pids()
    calls = machine.Calls(pids) if pids else None
    result = target.run(CALLS_SECONDS) if calls else None
    counted = calls.stop() if calls else None
    target.after()
    if counted and result.ops:
        row.calls = counted[0] / result.ops
        row.epoll_ctl = counted[1] / result.ops


def interleave(targets, runs, seconds, count_calls=True):
    """Each round in another order: what runs behind a target that leaves the processor idle is faster."""
    rows = [Row(target.name) for target in targets]
    order = random.Random(runs)
    for round_number in range(runs):
        for target, row in order.sample(list(zip(targets, rows)), len(rows)):
            target.before()
            result, cpu_us = _one(target, seconds)
            target.after()
            rate = result.ops / result.seconds if result.seconds else 0.0
            row.add(rate, result, cpu_us)
            say(f"{round_number + 1}/{runs} {target.name}: {rate:,.0f}/s")
    for target, row in zip(targets, rows):
        if count_calls:
            _count_calls(target, row)
    for row in rows[1:]:
        row.compare_to(rows[0])
    return rows

#!/usr/bin/env python3
"""Runs the black-box tests: `run.py [-v] [-j N] [-s SEED] [-x NAME-PART]... [NAME-PART...]`. SVCD names the
binary; where that is a program that becomes it, SVCD_PROGRAM does. Most tests wait for something most of the time, so
that there are four at a time for each processor; those of a class that share a server run one after another. With -v
each is told with the seconds it took, with -s they run in another order, which must make no difference. Before the last
line, which counts what ran, the slowest are told, and the processor time of what runs the tests and of what they
started."""
import argparse
import concurrent.futures
import os
import random
import resource
import sys
import time
import traceback
import unittest

SLOWEST = 10
HERE = os.path.dirname(os.path.abspath(__file__))


def flatten(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from flatten(item)
        else:
            yield item


def used_s(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


class Result(unittest.TestResult):
    """With the seconds that each test took."""

    def __init__(self):
        super().__init__()
        self.took = []

    def startTest(self, test):
        super().startTest(test)
        self.took.append((time.monotonic(), test.id()))

    def stopTest(self, test):
        super().stopTest(test)
        began, name = self.took[-1]
        self.took[-1] = (time.monotonic() - began, name)


def shares(test):
    return getattr(test, "shares_server", False)


def group(tests):
    """Those that share a server, and each of the others alone."""
    groups = {}
    for test in tests:
        groups.setdefault(type(test) if shares(test) else test, []).append(test)
    return list(groups.values())


def run_group(tests):
    """What each test said, and what was said at their common end."""
    result, kind = Result(), type(tests[0])
    for test in tests:
        test.run(result)
    outcomes = {name: ([], [], seconds) for seconds, name in result.took}
    for test, text in result.failures + result.errors:
        whole = getattr(test, "test_case", test)  # of a part of a test, what `test` is
        part = test.id().removeprefix(whole.id()).strip()
        outcomes[whole.id()][0].append(f"{part}\n{text}" if part else text)
    for test, why in result.skipped:
        outcomes[getattr(test, "test_case", test).id()][1].append(why)
    try:
        if shares(tests[0]):
            kind.tearDownClass()
    except Exception:  # pylint: disable=broad-exception-caught
        outcomes[f"{unittest.util.strclass(kind)}.tearDownClass"] = ([traceback.format_exc()], [], 0)
    return outcomes


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=4 * os.cpu_count())
    parser.add_argument("-s", "--shuffle", metavar="SEED", help="in an order that this number stands for")
    parser.add_argument("-x", "--without", action="append", default=[],
                        help="leave out tests whose name contains this")
    parser.add_argument("parts", nargs="*", help="run tests whose name contains one of these")
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    tests = list(flatten(unittest.defaultTestLoader.discover(HERE, "test_*.py")))
    if options.parts:
        tests = [t for t in tests if any(part in t.id() for part in options.parts)]
    tests = [t for t in tests if not any(part in t.id() for part in options.without)]
    if options.shuffle:
        random.Random(options.shuffle).shuffle(tests)
    passed = failed = skipped = 0
    took = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for outcomes in pool.map(run_group, group(tests)):
            for name, (problems, skips, seconds) in outcomes.items():
                took.append((seconds, name))
                if problems:
                    failed += 1
                    print(f"FAILED {name}\n" + "\n".join(problems), flush=True)
                elif skips:
                    skipped += 1
                    print(f"skipped {name}: {skips[0]}", flush=True)
                else:
                    passed += 1
                    if options.verbose:
                        print(f"ok {name} {seconds:.1f} s", flush=True)
    slowest = ", ".join(f"{name} {seconds:.1f} s" for seconds, name in sorted(took, reverse=True)[:SLOWEST])
    print(f"the slowest: {slowest}\nprocessor time: {used_s(resource.RUSAGE_SELF):.1f} s here, "
          f"{used_s(resource.RUSAGE_CHILDREN):.1f} s of what was started")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())

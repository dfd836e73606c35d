#!/usr/bin/env python3
"""Runs the black-box tests: `run.py [-v] [-j N] [-x NAME-PART]... [NAME-PART...]`. SVCD names the
binary; where that is a script that becomes it, SVCD_PROGRAM does. Most tests wait for something most of the time, so that there are four at a time for each processor. With
-v each is told with the seconds it took. Before the last line, which counts what ran, the slowest are told, and
the processor time of what runs the tests and of what they started."""
import argparse
import concurrent.futures
import os
import resource
import sys
import time
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


def run_one(test):
    result, began = unittest.TestResult(), time.monotonic()
    test.run(result)
    problems = result.failures + result.errors
    return test.id(), [text for _, text in problems], result.skipped, time.monotonic() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("-j", "--jobs", type=int, default=4 * os.cpu_count())
    parser.add_argument("-x", "--without", action="append", default=[],
                        help="leave out tests whose name contains this")
    parser.add_argument("parts", nargs="*", help="run tests whose name contains one of these")
    options = parser.parse_args()
    sys.path.insert(0, HERE)
    tests = list(flatten(unittest.defaultTestLoader.discover(HERE, "test_*.py")))
    if options.parts:
        tests = [t for t in tests if any(part in t.id() for part in options.parts)]
    tests = [t for t in tests if not any(part in t.id() for part in options.without)]
    passed = failed = skipped = 0
    took = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, problems, skips, seconds in pool.map(run_one, tests):
            took.append((seconds, name))
            if problems:
                failed += 1
                print(f"FAILED {name}\n" + "\n".join(problems), flush=True)
            elif skips:
                skipped += 1
                print(f"skipped {name}: {skips[0][1]}", flush=True)
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

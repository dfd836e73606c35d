#!/usr/bin/env python3
"""Has spin look through all that can happen in order.pml: as it is, where no assert may fail, and with one
thing left out or done wrong each, where one must. Prints a line each; the last is `N passed, N failed`."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "order.pml")
MEMORY_MIB = 2048
COMPILER = ["ccache", "cc"] if shutil.which("ccache") else ["cc"]
# What is changed, and a part of the assert that must fail; None: none may.
CASES = [
    (None, None),
    ("NO_EPOCH", "epoch==key_epoch"),
    ("NO_RANGE", "log[copies["),
    ("TIMEOUT_REFUSES", "!=2"),
    ("EARLY_ANSWERS", "!=1"),
    ("KEEPS_MEMORY", "memory_end[n]==journal_end[n]"),
    ("REACHED_ACKNOWLEDGED", "batch<3"),
    ("REACHED_REFUSED", "told[1]!=1"),
]


def run(*command, directory):
    result = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(command)}:\n{result.stdout}{result.stderr}")
    return result.stdout


def search(change, directory):
    """What pan says of the model."""
    shutil.copy(MODEL, directory)  # spin writes its name into what it makes, which is compiled once where that is the same
    run("spin", "-a", *([f"-D{change}"] if change else []), os.path.basename(MODEL), directory=directory)
    # What is wrong is found at once: there the compiler would take longest.
    run(*COMPILER, "-O0" if change else "-O1", "-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MIB}", "-c", "pan.c", directory=directory)
    run("cc", "-o", "pan", "pan.o", directory=directory)
    return run("./pan", "-m10000", "-n", directory=directory)


def squeezed(text):
    return re.sub(r"[\s()]", "", text)


def complaint(change, expected, said):
    """What is wrong with that; empty: nothing."""
    errors = re.search(r"errors: (\d+)", said)
    failed = re.search(r"assertion violated (.*?)\(at depth", said)
    if not errors or "out of memory" in said or "max search depth too small" in said:
        return "it was not looked through:\n" + said
    if expected is None:
        return "" if errors.group(1) == "0" else "found: " + said
    if not failed:
        return f"{change} was not found wrong"
    if expected and squeezed(expected) not in squeezed(failed.group(1)):
        return f"found another thing: {failed.group(1)}"
    return ""


def main():
    failed = 0
    for change, expected in CASES:
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="svcd-model-") as directory:
            said = search(change, directory)
        wrong = complaint(change, expected, said)
        states = re.search(r"(\d+(?:\.\d+e\+\d+)?) states, stored", said)
        print(f"{'FAILED' if wrong else 'ok'} {change or 'as it is'}: {states.group(1) if states else '?'} states, "
              f"{time.monotonic() - began:.1f} s", flush=True)
        if wrong:
            failed += 1
            print(wrong)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

"""What puts load on a server and reports what came back: wrk, our bench_load, redis-benchmark."""
import csv
import io
import json
import os
import re
import subprocess

from . import machine
from .peers import BENCH, NODE_PATH

NODE_ENV = {"NODE_PATH": NODE_PATH, **os.environ}
UNIT_US = {"us": 1, "ms": 1000, "s": 1000000}


class Result:
    def __init__(self, ops, seconds, p50_us=None, p99_us=None, errors=0):
        self.ops = ops
        self.seconds = seconds
        self.p50_us = p50_us
        self.p99_us = p99_us
        self.errors = errors


def run(command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def wrk(port, target, seconds, connections=64, script=None, arguments=()):
    threads = min(2, len(machine.LOAD_CORES))
    command = ["wrk", "-t", threads, "-c", connections, "-d", f"{seconds}s", "--latency",
               "--timeout", "20s"]
    if script:
        command += ["-s", os.path.join(BENCH, "wrk", script)]
    command += [f"http://127.0.0.1:{port}{target}"]
    if arguments:
        command += ["--", *arguments]
    text = run(machine.pinned(machine.LOAD_CORES, command))
    found = re.search(r"(\d+) requests in ([\d.]+)(\w+),", text)
    bad = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    sockets = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)",
                        text)
    errors = int(bad.group(1)) if bad else 0
    errors += sum(map(int, sockets.groups())) if sockets else 0
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    ops = int(found.group(1))
    return Result(ops, ops / rate if rate else seconds, _wrk_latency(text, 50),
                  _wrk_latency(text, 99), errors)


def _wrk_latency(text, percent):
    """None also where wrk says 0, as it does of pipelined requests."""
    found = re.search(rf"\s{percent}%\s+([\d.]+)(us|ms|s)", text)
    return float(found.group(1)) * UNIT_US[found.group(2)] or None if found else None


def load_command(place, port, request, seconds, connections=64, count=0, rate=0, stamps=None,
                 slots=0):
    command = [place.program("load"), port, request, connections, int(seconds), count, rate]
    if stamps:
        command += [stamps, slots]
    return machine.pinned(machine.LOAD_CORES, command)


def read_load(text):
    found = json.loads(text)
    return Result(found["answers"], found["seconds"], found["p50_us"], found["p99_us"],
                  found["errors"] + found["broken"])


def load(place, port, request, seconds, **options):
    return read_load(run(load_command(place, port, request, seconds, **options)))


def redis_set(port, value_bytes, seconds, rate_guess=60000):
    """redis-benchmark counts requests, not seconds."""
    text = run(machine.pinned(machine.LOAD_CORES,
                              ["redis-benchmark", "-h", "127.0.0.1", "-p", port, "-c", 64, "-n",
                               int(seconds * rate_guess), "-d", value_bytes, "-r", 100000, "-t",
                               "set", "--csv"]))
    row = list(csv.DictReader(io.StringIO(text)))[0]
    rate = float(row["rps"])
    ops = int(seconds * rate_guess)
    return Result(ops, ops / rate, float(row["p50_latency_ms"]) * 1000,
                  float(row["p99_latency_ms"]) * 1000)


def undici(origin, request, seconds, connections=64, secret="", authority=""):
    """On the server's core, as what would deliver in our place; with a secret it signs each. The
    result has its CPU time, and `posted`: how many were answered, those before it is timed too."""
    text = run(machine.pinned(machine.SERVER_CORE,
                              ["node", os.path.join(BENCH, "undici_client.js"), origin, request,
                               connections, seconds, secret, authority]),
               env=NODE_ENV, timeout=seconds + 90)
    found = json.loads(text)
    result = Result(found["answers"], found["seconds"], errors=found["errors"])
    result.cpu_ns = found["cpu_us"] * 1000
    result.posted = found["posted"]
    return result


def undici_version():
    return run(["node", "-p", "require('undici/package.json').version"], env=NODE_ENV).strip()

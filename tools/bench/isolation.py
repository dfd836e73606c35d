#!/usr/bin/env python3
"""Does one slow, dead or flooding receiver delay another? `isolation.py SVCD [--webhooks N] [--rate N]
[--seconds N] [--runs N]`.

Two kinds of runs alternate: in one all webhooks have healthy receivers, in the other 10 % hang until the
time-out, 5 % refuse the connection, 5 % answer 500 and one streams an endless body. Events are raised at a
steady rate, one matching webhook each; for those with a healthy receiver the time from the acknowledgement to
the arrival is taken. Prints the median and the 99th percentile of each run, and the ratio of the medians of the
99th percentiles."""
import argparse
import asyncio
import http.client
import json
import multiprocessing
import os
import random
import shutil
import socket
import statistics
import subprocess
import tempfile
import time

KINDS = (("hang", 0.10), ("refuse", 0.05), ("fail", 0.05))


async def serve(kind, arrivals):
    """One receiver of a kind; tells its port first, healthy ones then the number of each event."""
    async def take(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(int(line.split(b":")[1]) for line in head.split(b"\r\n")
                              if line.lower().startswith(b"content-length"))
                body = await reader.readexactly(length)
                if kind == "hang":
                    await asyncio.sleep(3600)
                elif kind == "endless":
                    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
                    while True:
                        writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                        await writer.drain()
                        await asyncio.sleep(0.001)
                status = b"500 No" if kind == "fail" else b"200 OK"
                writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
                if kind == "healthy":
                    arrivals.append((json.loads(body)[0]["No"], time.monotonic()))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()
    return await asyncio.start_server(take, "127.0.0.1", 0, backlog=4096)


def receivers(pipe):
    """The receivers' process: tells the ports, then at the end all arrivals."""
    async def run():
        arrivals, ports, servers = [], {}, []
        for kind in ("healthy", "hang", "fail", "endless"):
            servers.append(await serve(kind, arrivals))
            ports[kind] = servers[-1].sockets[0].getsockname()[1]
        pipe.send(ports)
        await asyncio.get_running_loop().run_in_executor(None, pipe.recv)
        pipe.send(arrivals)
        os._exit(0)
    asyncio.run(run())


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


class Service:
    def __init__(self, binary):
        self.directory = tempfile.mkdtemp(prefix="svcd-bench-")
        path = os.path.join(self.directory, "config.json")
        with open(path, "w", encoding="utf-8") as out:
            json.dump({"Listen": ["127.0.0.1:0"], "DataDirectory": os.path.join(self.directory, "data"),
                       "Limits": {"BodyBytes": 1 << 26, "JsonNodes": 10000000},
                       "Resources": [{"Name": "Bench.Event", "Kind": "EventResource"}]}, out)
        self.process = subprocess.Popen([binary, "--config", path], stderr=subprocess.PIPE, text=True)
        port = next(int(line.rsplit(" ", 1)[1]) for line in self.process.stderr if "port" in line)
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def post(self, target, body):
        self.connection.request("POST", target, json.dumps(body), {"Prefer": "return=minimal"})
        answer = self.connection.getresponse()
        answer.read()
        assert answer.status == 201, answer.status

    def remove(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        shutil.rmtree(self.directory)


def kinds_of(count, has_bad):
    kinds = ["healthy"] * count
    if has_bad:
        place = 0
        for kind, part in KINDS:
            kinds[place:place + int(part * count)] = [kind] * int(part * count)
            place += int(part * count)
        kinds[place] = "endless"
        random.Random(1).shuffle(kinds)
    return kinds


def run(options, has_bad):
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=receivers, args=(theirs,), daemon=True)
    receiver.start()
    ports = dict(ours.recv(), refuse=free_port())
    kinds = kinds_of(options.webhooks, has_bad)
    service = Service(options.svcd)
    try:
        service.post("/Svc.Admin.Webhook", [
            {"Destination": f"http://127.0.0.1:{ports[kind]}/", "EventSelector": f"/Bench.Event/For={number}"}
            for number, kind in enumerate(kinds)])
        acknowledged, rng, began = {}, random.Random(2), time.monotonic()
        for number in range(int(options.rate * options.seconds)):
            target = rng.randrange(options.webhooks)
            time.sleep(max(0, began + number / options.rate - time.monotonic()))
            service.post("/Svc.Event", {"Resource": "Bench.Event", "Payload": {"For": target, "No": number}})
            if kinds[target] == "healthy":
                acknowledged[number] = time.monotonic()
        time.sleep(2)
        ours.send("done")
        arrived = dict(ours.recv())
    finally:
        service.remove()
        receiver.join(5)
    missing = [number for number in acknowledged if number not in arrived]
    assert not missing, f"{len(missing)} events have not arrived"
    delays = sorted(max(0, arrived[number] - at) * 1000 for number, at in acknowledged.items())
    return statistics.median(delays), delays[int(len(delays) * 0.99)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("svcd")
    parser.add_argument("--webhooks", type=int, default=1000)
    parser.add_argument("--rate", type=float, default=500, help="events a second")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    results = {False: [], True: []}
    for _ in range(options.runs):
        for has_bad in (False, True):
            median, p99 = run(options, has_bad)
            results[has_bad].append(p99)
            print(f"{'with bad receivers' if has_bad else 'all healthy':20} median {median:6.2f} ms  p99 {p99:6.2f} ms",
                  flush=True)
    ratio = statistics.median(results[True]) / statistics.median(results[False])
    print(f"p99 with bad receivers is {ratio:.2f} of p99 without")


if __name__ == "__main__":
    main()

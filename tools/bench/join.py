#!/usr/bin/env python3
"""How fast a node takes a copy of another's journal: join.py BUILD [MiB]. Fills a server with so much (default
1024), restarts it, so that nothing of it is warm but what the kernel keeps, and has bench_join take the copy, twice: the
first time the files are in the page cache, the second time they are not. BUILD has svcd and bench_join."""
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time

CONFIG = {"Listen": ["127.0.0.1:0"], "Resources": [{"Name": "Bench.Thing", "Kind": "EntityResource"}],
          "Limits": {"BodyBytes": 4 << 20}}
ENTITIES, TEXT_BYTES = 1000, 1000


def start(svcd, config, directory):
    # pylint: disable-next=consider-using-with
    server = subprocess.Popen([svcd, "--config", config, "--data", directory], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        if "port " in line:
            return server, int(line.rsplit(" ", 1)[1])
    raise SystemExit("the server did not start")


def fill(port, mebibytes):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    text = os.urandom(TEXT_BYTES // 2).hex()
    body = json.dumps([{"Name": f"n{i}", "Text": text} for i in range(ENTITIES)])
    for _ in range((mebibytes << 20) // len(body) + 1):
        connection.request("POST", "/Bench.Thing", body,
                           {"Content-Type": "application/json", "Prefer": "return=minimal"})
        answer = connection.getresponse()
        answer.read()
        if answer.status >= 300:
            raise SystemExit(f"POST: {answer.status}")


def stop(server):
    server.terminate()
    server.stderr.close()
    server.wait()


def uncache(directory):
    for name in os.listdir(directory):
        fd = os.open(os.path.join(directory, name), os.O_RDONLY)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(fd)


def main():
    build, mebibytes = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    with tempfile.TemporaryDirectory(dir=".") as where:
        config, data, copy = (os.path.join(where, name) for name in ("config.json", "data", "copy"))
        os.mkdir(copy)
        with open(config, "w", encoding="ascii") as file:
            json.dump(CONFIG, file)
        os.chmod(config, 0o600)
        server, port = start(os.path.join(build, "svcd"), config, data)
        begun = time.monotonic()
        fill(port, mebibytes)
        print(f"filled in {time.monotonic() - begun:.0f} s")
        for which in ("cached", "from the disk"):
            stop(server)
            server, port = start(os.path.join(build, "svcd"), config, data)
            if which != "cached":
                uncache(data)
            print(f"{which}: ", end="", flush=True)
            subprocess.run([os.path.join(build, "tools/bench/bench_join"), copy, f"http://127.0.0.1:{port}"],
                           check=True, stderr=subprocess.DEVNULL)
        stop(server)


if __name__ == "__main__":
    main()

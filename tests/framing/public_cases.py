#!/usr/bin/env python3
"""Public collections of requests, fetched by whoever runs this, sent to svcd whole and byte by byte:

    SVCD=... tests/framing/public_cases.py --llhttp DIRECTORY     a checkout of nodejs/llhttp
    SVCD=... tests/framing/public_cases.py --h1spec DIRECTORY     a checkout of uNetworking/h1spec

Both ways must be answered alike. svcd may refuse what a parser takes (RFC 9112 asks servers for more), but
must not read anything as more requests than the collection does."""
import argparse
import glob
import json
import os
import re
import socket
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "blackbox"))
import harness  # noqa: E402
from proxies import answers_of, read_all  # noqa: E402

REFUSED = {400, 408, 413, 414, 417, 431, 501, 505}


def exchange(port, data, is_slow):
    """Statuses of the answers."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            for at in range(0, len(data), 1 if is_slow else len(data) or 1):
                connection.send(data[at:at + (1 if is_slow else len(data))])
        except OSError:
            pass
        return [status for status, _, _ in answers_of(read_all(connection))]


def unescape(text):
    text = re.sub(r"\n$", "", text)
    text = re.sub(r"\\\n", "", text).replace("\n", "\r\n")
    for escape, char in (("\\r", "\r"), ("\\n", "\n"), ("\\t", "\t"), ("\\f", "\f")):
        text = text.replace(escape, char)
    text = re.sub(r"\\x([0-9a-fA-F]+)", lambda m: chr(int(m.group(1), 16)), text)
    text = re.sub(r"\\([0-7]{1,3})", lambda m: chr(int(m.group(1), 8)), text)
    return re.sub(r"\$\{'(.)'\.repeat\((\d+)\)\}", lambda m: m.group(1) * int(m.group(2)), text)


def llhttp_cases(directory):
    """(name, bytes, how many requests it may be read as) of each strict request: those that are complete
    before an error, where there is one."""
    block = re.compile(r"<!-- meta=(\{[^\n]*?\}) -->\s*```http\n((?:(?!```).)*)```(?:(?!```).)*```log\n(.*?)```", re.S)
    for path in sorted(glob.glob(os.path.join(directory, "test", "request", "*.md"))):
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for found in block.finditer(text):
            meta, log = json.loads(found.group(1)), found.group(3)
            if meta["type"] != "request" or meta.get("skip") or "pause" in meta:
                continue
            line = text.count("\n", 0, found.start()) + 1
            data = unescape(found.group(2)).encode("latin-1", "replace")
            yield f"{os.path.basename(path)}:{line}", data, log.count("message complete")


def h1spec_cases(directory):
    with open(os.path.join(directory, "http_test.ts"), encoding="utf-8") as file:
        text = file.read()
    block = re.compile(r'request: ("(?:[^"\\]|\\.)*"),\s*description: ("(?:[^"\\]|\\.)*"),\s*'
                       r"expectedStatus: (\[\[.*?\]\])")
    for found in block.finditer(text):
        parts = (re.sub(r"\\x([0-9a-fA-F]{2})", r"\\u00\1", part) for part in found.groups())
        data, name, ranges = (json.loads(part) for part in parts)
        yield f"h1spec: {name}", data.encode(), int(any(200 <= low < 300 for low, _ in ranges))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llhttp")
    parser.add_argument("--h1spec")
    options = parser.parse_args()
    collected = list(llhttp_cases(options.llhttp)) if options.llhttp else []
    collected += list(h1spec_cases(options.h1spec)) if options.h1spec else []
    server = harness.Server(dict(harness.load_config(harness.SHOP), Limits={"HeaderSeconds": 2, "BodySeconds": 2}))
    server.start()
    passed = failed = accepted = 0
    try:
        for name, data, most in collected:
            whole, slow = exchange(server.port, data, False), exchange(server.port, data, True)
            taken = [status for status in whole if status not in REFUSED]
            problem = None
            if whole != slow:
                problem = f"whole {whole}, byte by byte {slow}"
            elif len(taken) > most:
                problem = f"{most} requests at most, answered {whole}"
            accepted += bool(taken)
            passed += problem is None
            failed += problem is not None
            if problem:
                print(f"{name}: {problem}: {data[:120]!r}")
        assert server.process.poll() is None, "svcd ended"
    finally:
        server.remove()
    print(f"{len(collected)} cases, {accepted} accepted")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not collected else 0


if __name__ == "__main__":
    sys.exit(main())

"""Reads: one entity by Id, a list of one, pipelined, a long list, many connections. The peers send
the same bytes: nginx has its own head, filled up to the length of ours."""
import re
import socket

from . import load, peers
from .measure import Goal, Scenario, Target, interleave

WEBHOOK = {"Label": "bench", "Destination": "http://127.0.0.1:9/hook",
           "EventSelector": "/Bench.Placed/Amount>100", "IsPaused": True}
LIST_BYTES = 100000
PIPELINED = 16


def raw_answer(port, target):
    """Head and body as they come over the socket."""
    with socket.create_connection(("127.0.0.1", port)) as s:
        s.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        data = b""
        while True:
            data += s.recv(65536)
            head, blank, body = data.partition(b"\r\n\r\n")
            length = re.search(rb"Content-Length: (\d+)", head)
            if blank and len(body) >= int(length.group(1)):
                return head + blank, body


def nginx_return(context, port, target):
    """`return 200` with our body and as many bytes of head."""
    head, body = raw_answer(port, target)
    text = body.decode().replace("\\", "\\\\").replace("'", "\\'")

    def start(padding):
        header = f"add_header Svc-padding '{'x' * padding}';" if padding else ""
        return peers.nginx(context.place, {},
                           f"location / {{ {header} return 200 '{text}'; }}", "nginx return 200")
    peer = start(0)
    missing = len(head) - len(raw_answer(peer.port, "/")[0]) - len("Svc-padding: \r\n")
    if missing > 0:
        peer.stop()
        peer = start(missing)
    return peer


def nginx_file(context, body):
    return peers.nginx(context.place, {"list.json": body},
                       "location / { try_files /list.json =404; }", "nginx, a file, no sendfile")


def reading(peer, target, script=None, connections=64, name=None, arguments=()):
    return Target(name or peer.name,
                  lambda seconds: load.wrk(peer.port, target, seconds, connections, script, arguments),
                  lambda: peer.pids)


def _with_one(context):
    servers = context.start_builds()
    for server in servers:
        server.id = server.post("/Svc.Admin.Webhook", WEBHOOK)[0]["Id"]
    return servers


def _goal_p99(rows, ours, theirs):
    def middle(row):
        return sorted(row.p99_us)[len(row.p99_us) // 2]
    return Goal(f"p99 of {theirs.name} over ours", middle(theirs) / max(middle(ours), 1), 1.0)


def _small(context, name, title, path_of):
    servers = _with_one(context)
    targets = [reading(server, path_of(server)) for server in servers]
    started = []
    if context.peers:
        path = path_of(servers[0])
        head, body = raw_answer(servers[0].port, path)
        started = [nginx_return(context, servers[0].port, path), nginx_file(context, body),
                   peers.h2o(context.place, body), peers.node(body.decode()),
                   peers.epoll(context.place, head + body)]
        paths = ["/", "/", "/answer.json", "/", "/"]
        targets += [reading(peer, path) for peer, path in zip(started, paths)]
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(started + servers)
    goals = []
    if context.peers:
        goals = [Goal("ours over nginx return 200", rows[1].ratio, 1.0),
                 _goal_p99(rows, rows[0], rows[1]),
                 Goal("ours over an epoll loop without a parser", rows[5].ratio, 0.85)]
    return Scenario(name, title, rows, goals)


def get(context):
    return _small(context, "get", "GET of one webhook by Id, 64 connections",
                  lambda server: f"/Svc.Admin.Webhook/Id={server.id}")


def one(context):
    return _small(context, "list", "GET of a list of one, 64 connections",
                  lambda server: "/Svc.Admin.Webhook")


def pipeline(context):
    servers = _with_one(context)
    path = f"/Svc.Admin.Webhook/Id={servers[0].id}"
    targets = [reading(server, f"/Svc.Admin.Webhook/Id={server.id}", "pipeline.lua")
               for server in servers]
    started = []
    if context.peers:
        started = [nginx_return(context, servers[0].port, path)]
        targets.append(reading(started[0], "/", "pipeline.lua"))
        targets.append(reading(started[0], "/", name="nginx return 200, one by one"))
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(started + servers)
    goals = [Goal("ours over nginx, both pipelined", rows[-2].ratio, 5.0)] if context.peers else []
    return Scenario("pipeline", f"The same, pipelined by {PIPELINED}", rows, goals)


def fields(context):
    """Fields as those of many clients: no two requests have the same."""
    servers = _with_one(context)
    started = [nginx_return(context, servers[0].port, f"/Svc.Admin.Webhook/Id={servers[0].id}")]
    targets = []
    for times in (1, PIPELINED):
        how = "one by one" if times == 1 else f"pipelined by {times}"
        targets += [reading(server, f"/Svc.Admin.Webhook/Id={server.id}", "numbered.lua",
                            name=f"{server.name}, {how}", arguments=[times]) for server in servers]
        targets.append(reading(started[0], "/", "numbered.lua", name=f"nginx return 200, {how}",
                               arguments=[times]))
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(started + servers)
    half = len(rows) // 2
    rows[-1].compare_to(rows[half])
    return Scenario("fields", "GET by Id with a field that differs each time, 64 connections", rows,
                    [Goal("ours over nginx return 200", rows[half - 1].ratio, 1.0),
                     Goal("both pipelined", rows[-1].ratio, 5.0)])


def big(context):
    servers = context.start_builds()
    for server in servers:
        server.post("/Svc.Admin.Webhook", WEBHOOK)
        count = LIST_BYTES // len(raw_answer(server.port, "/Svc.Admin.Webhook")[1])
        server.post("/Svc.Admin.Webhook", [WEBHOOK] * (count - 1))
    targets = [reading(server, "/Svc.Admin.Webhook") for server in servers]
    started = []
    if context.peers:
        body = raw_answer(servers[0].port, "/Svc.Admin.Webhook")[1]
        started = [nginx_file(context, body)]
        targets.append(reading(started[0], "/"))
    try:
        rows = interleave(targets, context.runs, context.seconds)
    finally:
        context.stop(started + servers)
    goals = [Goal("ours over nginx", rows[-1].ratio, 1.0)] if context.peers else []
    return Scenario("big", "GET of a list of 100 kB, 64 connections", rows, goals)


def connections(context):
    servers = _with_one(context)
    targets = []
    for server in servers:
        path = f"/Svc.Admin.Webhook/Id={server.id}"
        targets.append(reading(server, path, connections=10000, name=f"{server.name}, 10,000"))
        targets.append(reading(server, path, name=f"{server.name}, 64"))
    try:
        # wrk needs a while to open so many.
        rows = interleave(targets, context.runs, max(context.seconds, 4), count_calls=False)
    finally:
        context.stop(servers)
    return Scenario("connections", "GET by Id over 10,000 connections, and over 64", rows,
                    [Goal("10,000 over 64", rows[1].ratio, 0.6)])


SCENARIOS = {"get": get, "list": one, "pipeline": pipeline, "fields": fields, "big": big,
             "connections": connections}

#!/usr/bin/env python3
"""Follows the stream of events, without a gap: after a broken connection, a restart of the server or of this
program it goes on behind the last event that it has dealt with, whose number it keeps in a file.

    SVC_URL=http://localhost:8080 SVC_KEY=... python3 follow.py last-id [Resource=Shop.OrderPlaced]
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request

STATE = sys.argv[1]
TARGET = os.environ["SVC_URL"] + "/Svc.Event/" + (sys.argv[2] if len(sys.argv) > 2 else "")
HEADERS = {"Accept": "text/event-stream"}
if "SVC_KEY" in os.environ:
    HEADERS["Authorization"] = "apikey " + os.environ["SVC_KEY"]


def last_id():
    if not os.path.exists(STATE):
        return "0"  # from the oldest event that is kept
    with open(STATE, encoding="ascii") as file:
        return file.read()


def deal_with(message):
    print(message["event"], json.dumps(json.loads(message["data"])), flush=True)
    if "id" in message:  # only now: what was under way when we crash comes again
        with open(STATE + ".new", "w", encoding="ascii") as file:
            file.write(message["id"])
        os.replace(STATE + ".new", STATE)


def follow():
    request = urllib.request.Request(TARGET, headers=HEADERS | {"Last-Event-ID": last_id()})
    with urllib.request.urlopen(request, timeout=60) as answer:  # a comment comes every 15 s
        message = {}
        for line in answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                message[name] = value
            elif "data" in message:
                deal_with(message)
                message = {}


while True:
    try:
        follow()
    except urllib.error.HTTPError as e:
        if e.code < 500:
            sys.exit(e.read().decode())
    except OSError:
        pass
    time.sleep(1)

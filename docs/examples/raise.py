#!/usr/bin/env python3
"""Raises an event once, however often it has to be tried: the ClientId tells the server which one it is.

    SVC_URL=http://localhost:8080 SVC_KEY=... python3 raise.py Shop.OrderPlaced order-17 '{"Total":12.50}'
"""
import json
import os
import sys
import time
import urllib.error
import urllib.request

HEADERS = {"Content-Type": "application/json"}
if "SVC_KEY" in os.environ:
    HEADERS["Authorization"] = "apikey " + os.environ["SVC_KEY"]


def raise_event(resource, client_id, payload):
    body = json.dumps({"Resource": resource, "ClientId": client_id, "Payload": payload}).encode()
    request = urllib.request.Request(os.environ["SVC_URL"] + "/Svc.Event", body, HEADERS)
    for wait_s in (1, 2, 4, 8, None):
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)[0]
        except urllib.error.HTTPError as error:  # what is refused stays refused, but for these
            if error.code not in (408, 429, 500, 502, 503, 504, 507) or wait_s is None:
                raise SystemExit(error.read().decode()) from error
        except OSError:  # nobody knows whether it arrived: the next try finds out
            if wait_s is None:
                raise
        time.sleep(wait_s)


if __name__ == "__main__":
    event = raise_event(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
    print(event["Id"], event["Webhooks"])

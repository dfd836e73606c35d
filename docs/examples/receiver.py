#!/usr/bin/env python3
"""Receives webhooks of svcd: verifies each signature, refuses old ones, handles each event once.

    WEBHOOK_SECRET=whsec_... PORT=9000 python3 receiver.py
"""
import base64
import collections
import hashlib
import hmac
import http.server
import json
import os
import threading
import time

SECRET = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
TOLERANCE_S = 300  # how far the clocks may be apart
BODY_BYTES_MOST = 1 << 20
KNOWN_MOST = 10000

known = collections.OrderedDict()  # ids of events that were handled; a real receiver stores them
lock = threading.Lock()


def is_genuine(headers, body):
    """Standard Webhooks: v1 is HMAC-SHA256 over id, timestamp and body. One good signature will do."""
    event_id = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not timestamp.isascii() or not timestamp.isdigit():
        return False
    if abs(time.time() - int(timestamp)) > TOLERANCE_S:
        return False
    signed = f"{event_id}.{timestamp}.".encode() + body
    expected = b"v1," + base64.b64encode(hmac.digest(SECRET, signed, hashlib.sha256))
    given = headers.get("webhook-signature", "").encode("utf-8", "replace").split()
    return any(hmac.compare_digest(expected, one) for one in given)


def handle(event, entities):
    print(f"{event}: {json.dumps(entities)}", flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > BODY_BYTES_MOST:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(length)
        if not is_genuine(self.headers, body):
            return self.answer(400)
        with lock:  # the same event may come twice, even at once
            if self.headers["webhook-id"] not in known:
                handle(self.headers["Svc-event"], json.loads(body))
                known[self.headers["webhook-id"]] = True
                if len(known) > KNOWN_MOST:
                    known.popitem(last=False)
        return self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    address = ("127.0.0.1", int(os.environ.get("PORT", "9000")))
    server = http.server.ThreadingHTTPServer(address, Receiver)
    print(f"listening on port {server.server_port}", flush=True)
    server.serve_forever()

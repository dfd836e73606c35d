#!/usr/bin/env python3
"""Goes through the log of attempts page by page, oldest first. Nothing is left out and nothing comes twice,
whatever is added meanwhile: the next page begins behind the last ObjectNo.

    SVC_URL=http://localhost:8080 SVC_KEY=... python3 page.py 'IsSuccess=false'
"""
import json
import os
import sys
import urllib.request

HEADERS = {"Accept": "application/json"}
if "SVC_KEY" in os.environ:
    HEADERS["Authorization"] = "apikey " + os.environ["SVC_KEY"]
PAGE = 500


def pages(conditions):
    target = f"/Svc.Admin.WebhookLog/{conditions or '_'}/limit={PAGE}"
    while target is not None:
        request = urllib.request.Request(os.environ["SVC_URL"] + target, headers=HEADERS)
        with urllib.request.urlopen(request, timeout=30) as answer:
            if answer.status == 204:  # none at all
                return
            yield json.load(answer)
            target = answer.headers.get("Svc-pager")  # absent on the last page


if __name__ == "__main__":
    for page in pages(sys.argv[1] if len(sys.argv) > 1 else ""):
        for attempt in page:
            print(attempt["Time"], attempt["Destination"], attempt["StatusCode"], attempt["Error"] or "")

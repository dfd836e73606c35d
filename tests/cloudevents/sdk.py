"""The public SDK for Python, as sdk.js has that for JavaScript: one line of JSON in, one out. Bodies are text."""
import json
import sys
import warnings

warnings.simplefilter("ignore")
from cloudevents.conversion import to_binary, to_structured  # noqa: E402
from cloudevents.http import CloudEvent, from_http  # noqa: E402

for line in sys.stdin:
    try:
        asked = json.loads(line)
        if "write" in asked:
            attributes = {name: value for name, value in asked["write"].items() if name != "data"}
            event = CloudEvent(attributes, asked["write"].get("data"))
            headers, body = {"binary": to_binary, "structured": to_structured}[asked["mode"]](event)
            result = {"headers": headers, "body": body.decode()}
        else:
            event = from_http(asked["read"]["headers"], asked["read"]["body"])
            result = dict(event.get_attributes(), data=event.get_data())
        print(json.dumps({"result": result}), flush=True)
    except Exception as error:  # whatever the SDK refuses is an answer
        print(json.dumps({"error": repr(error)}), flush=True)

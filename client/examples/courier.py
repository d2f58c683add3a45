"""A courier in one file: sends events in signed, compressed messages, and repeats what was not answered.

    export WAYBILL_URL=https://push.example WAYBILL_TOKEN=tok_… WAYBILL_SIGNING_SECRET=sig_… WAYBILL_COURIER=GLS_ITA
    python3 courier.py < events.ndjson    one event a line; with VALIDATE=1 they are judged, and not stored

Needs Python 3.11 or newer.
"""

import datetime
import gzip
import hashlib
import hmac
import http.client
import json
import os
import random
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

PATH = "/v1/events/validate" if os.environ.get("VALIDATE") == "1" else "/v1/events"
EVENTS_PER_MESSAGE = 500
TIMEOUT_SECONDS = 60
# Over 15 minutes, each with up to as much again by chance.
WAITS_SECONDS = (1, 4, 16, 64, 256, 600)


def post(body: bytes) -> Any:
    # A signature of now, over the bytes as they are sent.
    t = str(int(time.time()))
    secret = os.environ["WAYBILL_SIGNING_SECRET"].encode()
    v1 = hmac.new(secret, t.encode() + b"." + body, hashlib.sha256).hexdigest()
    headers = {
        "Authorization": f"Bearer {os.environ['WAYBILL_TOKEN']}",
        "Content-Type": "application/json",
        "Content-Encoding": "gzip",
        "X-Service-Signature": f"t={t},v1={v1}",
    }
    request = urllib.request.Request(os.environ["WAYBILL_URL"] + PATH, body, headers)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)


def deliver(body: bytes) -> Any:
    """The same bytes each time: events that an attempt has stored come back as DUPLICATE."""
    for least_seconds in WAITS_SECONDS:
        asked = 0.0
        try:
            return post(body)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                sys.exit(f"{error.code} {error.read().decode()}")
            asked = float(error.headers.get("Retry-After") or 0)
        except (OSError, http.client.HTTPException) as error:
            print(error, file=sys.stderr)
        time.sleep(max(asked, least_seconds * (1 + random.random())))
    sys.exit("There was no answer for 15 minutes. Send the events again later.")


def send(events: list[Any]) -> None:
    message = {
        "schemaVersion": "1.0",
        "messageId": str(uuid.uuid4()),
        "sentAt": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "courier": os.environ["WAYBILL_COURIER"],
        "events": events,
    }
    answer = deliver(gzip.compress(json.dumps(message).encode()))
    counts = [answer[name] for name in ("accepted", "duplicate", "unknownTracking", "invalid")]
    print("accepted {}, duplicate {}, unknown {}, invalid {}".format(*counts))
    for result in answer["results"]:
        # Correct these and send them again with the same eventId; all others are done.
        if result["outcome"] == "INVALID":
            print(json.dumps(result), file=sys.stderr)


def main() -> None:
    batch: list[Any] = []
    for line in sys.stdin:
        if not line.strip():
            continue
        batch.append(json.loads(line))
        if len(batch) == EVENTS_PER_MESSAGE:
            send(batch)
            batch = []
    if batch:
        send(batch)


main()

"""A merchant in one file, without a package: imports shipments, prints and confirms labels, reconciles, and receives webhooks.

    export WAYBILL_URL=https://api.example WAYBILL_API_KEY=key_…
    python3 merchant.py import < shipments.json           a list of shipments, as POST /v2/shipments/import takes them
    python3 merchant.py print < label.json                the body of POST /v2/labels
    python3 merchant.py confirm GENERIC 81 65             closes the day: a carrier, and the ids of labels that were printed
    python3 merchant.py reconcile '2026-11-01 00:00:00'   prints every change since then, and where the next run starts
    WAYBILL_WEBHOOK_SECRET=whsec_… PORT=3000 python3 merchant.py receive

Needs Python 3.11 or newer.
"""

import base64
import hashlib
import hmac
import http.client
import http.server
import json
import os
import pathlib
import random
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any

# Over half a minute, each with up to as much again by chance.
WAITS_SECONDS = (1, 2, 4, 8, 16, None)
PAGE = 100
TOLERANCE_SECONDS = 300
TIMEOUT_SECONDS = 60

token: str | None = None


def send(method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
    """Again after a lost connection, 429 and every 5xx, and while another request with the same key is under way."""
    for least_seconds in WAITS_SECONDS:
        url = os.environ["WAYBILL_URL"] + path
        request = urllib.request.Request(url, data, headers, method=method)
        asked_seconds = 0.0
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            asked_seconds = float(error.headers.get("Retry-After") or 0)
            is_under_way = error.code == 409 and asked_seconds > 0
            if least_seconds is None or not (error.code == 429 or error.code >= 500 or is_under_way):
                raise
        except (OSError, http.client.HTTPException):
            if least_seconds is None:
                raise
        time.sleep(max(asked_seconds, least_seconds * (1 + random.random())))


def login() -> str:
    data = json.dumps({"apiKey": os.environ["WAYBILL_API_KEY"]}).encode()
    return send("POST", "/v2/auth/token", data, {"Content-Type": "application/json"})["token"]


def key_of(path: str, data: bytes) -> str:
    """The same request has the same key after a restart of this program, too."""
    return hashlib.sha256(f"{path} ".encode() + data).hexdigest()


def call(method: str, path: str, body: Any = None, key: str | None = None) -> Any:
    """A POST may be repeated, since its repetitions have the same key."""
    global token
    data = None if body is None else json.dumps(body).encode()
    headers = {}
    if data is not None:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key or key_of(path, data)}
    token = token or login()
    try:
        return send(method, path, data, headers | {"Authorization": f"Bearer {token}"})
    except urllib.error.HTTPError as error:
        if error.code != 401:
            raise
    token = login()
    return send(method, path, data, headers | {"Authorization": f"Bearer {token}"})


def import_shipments(shipments: list[Any]) -> None:
    job_id = call("POST", "/v2/shipments/import", {"shipments": shipments})["jobId"]
    while (job := call("GET", f"/v2/jobs/{job_id}"))["status"] in ("pending", "processing"):
        time.sleep(1)
    result = job["result"] or {"summary": {"totalSuccess": 0, "totalFailed": 0}, "errors": []}
    summary = result["summary"]
    print(job["status"], summary["totalSuccess"], "created", summary["totalFailed"], "refused")
    for error in result["errors"]:
        print(json.dumps(error), file=sys.stderr)
    if job["status"] == "failed":
        sys.exit(job["error"])


def print_label(request: Any) -> None:
    label = call("POST", "/v2/labels", request)
    is_pdf = label["labelFormat"] == "PDF"
    for at, sheet in enumerate(label["labels"], start=1):
        name = f"label-{label['id']}-{at}.{label['labelFormat'].lower()}"
        pathlib.Path(name).write_bytes(base64.b64decode(sheet) if is_pdf else sheet.encode())
        print(name)


def confirm(courier: str, label_ids: list[int]) -> None:
    """May be repeated: a confirmed label stays in its transmission."""
    body = {"courier": courier, "labelIds": label_ids}
    # A key of its own for each run, so that labels the carrier refused are sent again.
    answer = call("POST", "/v2/labels/confirm", body, str(uuid.uuid4()))
    confirmed, before = len(answer["confirmedIds"]), len(answer["alreadyConfirmedIds"])
    print(f"{confirmed} confirmed, {before} confirmed before")
    for transmission in answer["transmissions"]:
        ids = ",".join(str(one) for one in transmission["labelIds"])
        print(transmission["transmissionNumber"], ids, transmission["slipUrl"])
    for error in answer["errors"]:
        print(json.dumps(error), file=sys.stderr)
    if answer["notFoundIds"]:
        print("not found:", *answer["notFoundIds"], file=sys.stderr)
    if answer["errors"] or answer["notFoundIds"]:
        sys.exit(1)


def reconcile(since: str) -> None:
    """Always page 1, from the last change of the page before, until a page is not full."""
    seen: set[tuple[int, str]] = set()
    while True:
        query = {"updatedAfter": since, "sortBy": "updatedAt_asc", "limit": PAGE}
        items = call("GET", f"/v2/shipments?{urllib.parse.urlencode(query)}")["items"]
        for item in items:
            since = item["statusUpdatedAt"] or since
            change = (item["id"], since)
            if change not in seen:
                seen.add(change)
                # Store the shipment here.
                print(item["trackingNumber"], item["status"], since)
        if len(items) < PAGE:
            break
    print("next time from", since)


def is_authentic(body: bytes, signature: str, secret: str) -> bool:
    parts = [part.strip().partition("=") for part in signature.split(",")]
    t = next((value for name, _, value in parts if name == "t"), "")
    if not (t.isascii() and t.isdigit()) or abs(time.time() - int(t)) > TOLERANCE_SECONDS:
        return False
    expected = hmac.new(secret.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()
    # Two of them while a rotation runs: it is enough if one matches.
    given = [value for name, _, value in parts if name == "v1"]
    return any(hmac.compare_digest(expected.encode(), value.encode()) for value in given)


class Receiver(http.server.BaseHTTPRequestHandler):
    # Keep the ids in your database for 30 days: these are forgotten when the program ends.
    seen: set[str] = set()

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        signature = self.headers.get("X-Service-Signature", "")
        if not is_authentic(body, signature, os.environ["WAYBILL_WEBHOOK_SECRET"]):
            return self.answer(401)
        event = json.loads(body)
        if event["type"] == "shipment.updated" and event["id"] not in self.seen:
            # Store the event here, and work on it after the answer. If that fails, answer 503: it is sent again.
            shipment = event["data"]["shipment"]
            print(shipment["trackingNumber"], shipment["status"], flush=True)
        self.seen.add(event["id"])
        return self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


def main() -> None:
    match sys.argv[1:]:
        case ["import"]:
            import_shipments(json.load(sys.stdin))
        case ["print"]:
            print_label(json.load(sys.stdin))
        case ["confirm", courier, *ids]:
            confirm(courier, [int(one) for one in ids])
        case ["reconcile", since]:
            reconcile(since)
        case ["receive"]:
            address = ("", int(os.environ.get("PORT", "3000")))
            http.server.ThreadingHTTPServer(address, Receiver).serve_forever()
        case _:
            sys.exit("Say import, print, confirm, reconcile or receive.")


try:
    main()
except urllib.error.HTTPError as refusal:
    sys.exit(f"{refusal.code} {refusal.read().decode()}")

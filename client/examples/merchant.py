"""A merchant in one file, without a package: imports shipments, prints labels, reconciles, and receives webhooks.

    export WAYBILL_URL=https://api.example WAYBILL_API_KEY=key_…
    python3 merchant.py import < shipments.json           a list of shipments, as POST /v2/shipments/import takes them
    python3 merchant.py print < label.json                the body of POST /v2/labels
    python3 merchant.py reconcile '2026-11-01 00:00:00'   prints every change since then, and where the next run starts
    WAYBILL_WEBHOOK_SECRET=whsec_… PORT=3000 python3 merchant.py receive

Needs Python 3.11 or newer.
"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

ATTEMPTS = 5
PAGE = 100
TOLERANCE_SECONDS = 300
TIMEOUT_SECONDS = 30

token: str | None = None


def send(method: str, path: str, data: bytes | None, headers: dict[str, str]) -> Any:
    request = urllib.request.Request(os.environ["WAYBILL_URL"] + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:
        return json.load(response)


def login() -> str:
    data = json.dumps({"apiKey": os.environ["WAYBILL_API_KEY"]}).encode()
    return send("POST", "/v2/auth/token", data, {"Content-Type": "application/json"})["token"]


def call(method: str, path: str, body: Any = None) -> Any:
    """Repeats what is safe to repeat: a GET always, and a POST because its repetitions have the same key."""
    global token
    data = None if body is None else json.dumps(body).encode()
    # The same request has the same key after a restart of this program, too.
    key = hashlib.sha256(f"{method} {path} ".encode() + (data or b"")).hexdigest()
    for attempt in range(1, ATTEMPTS + 1):
        token = token or login()
        headers = {"Authorization": f"Bearer {token}"}
        if data is not None:
            headers |= {"Content-Type": "application/json", "Idempotency-Key": key}
        try:
            return send(method, path, data, headers)
        except urllib.error.HTTPError as error:
            after = error.headers.get("Retry-After")
            is_busy = error.code in (429, 503) or after is not None
            if attempt == ATTEMPTS or not (is_busy or error.code == 401):
                sys.exit(f"{error.code} {error.read().decode()}")
            if error.code == 401:
                token = None
            time.sleep(float(after or 0))
        except OSError:
            if attempt == ATTEMPTS:
                raise
            time.sleep(2**attempt)


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
        case ["reconcile", since]:
            reconcile(since)
        case ["receive"]:
            address = ("", int(os.environ.get("PORT", "3000")))
            http.server.ThreadingHTTPServer(address, Receiver).serve_forever()
        case _:
            sys.exit("Say import, print, reconcile or receive.")


main()

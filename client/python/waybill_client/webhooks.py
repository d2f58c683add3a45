"""Webhooks and import callbacks: verified, then typed."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import time
from collections.abc import Sequence
from typing import Any, Literal, TypedDict

from .types import ImportResult, WebhookPayload

TOLERANCE_SECONDS = 300


class SignatureError(Exception):
    """The request is not authentic: answer it 401."""

    def __init__(self, reason: Literal["malformed", "expired", "mismatch"]) -> None:
        super().__init__(f"The signature is not valid: {reason}.")
        self.reason = reason


class ImportFinished(TypedDict):
    """What is sent to the `webhookUrl` of an import."""

    jobId: str
    status: Literal["completed", "failed"]
    result: ImportResult | None


def verify_webhook(
    body: bytes,
    signature: str | None,
    secret: str | Sequence[str],
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> WebhookPayload:
    """Return the event of an authentic webhook, or raise SignatureError.

    `body` is the raw body, before any JSON parsing, `signature` the header X-Service-Signature. During a rotation `secret` may be both
    secrets. The type `webhook.test` comes from the control panel with a sample shipment: leave your data alone.
    """
    event: WebhookPayload = _verified(body, signature, secret, tolerance_seconds, now)
    return event


def verify_import_callback(
    body: bytes,
    signature: str | None,
    secret: str | Sequence[str],
    *,
    tolerance_seconds: float = TOLERANCE_SECONDS,
    now: float | None = None,
) -> ImportFinished:
    """The same for the callback of an import."""
    finished: ImportFinished = _verified(body, signature, secret, tolerance_seconds, now)
    return finished


def _verified(
    body: bytes,
    signature: str | None,
    secret: str | Sequence[str],
    tolerance_seconds: float,
    now: float | None,
) -> Any:
    parts = [part.strip().partition("=") for part in (signature or "").split(",")]
    stamp = next((value for name, _, value in parts if name == "t"), "")
    given = [value for name, _, value in parts if name == "v1" and re.fullmatch("[0-9a-f]{64}", value)]
    if not re.fullmatch("[0-9]{1,12}", stamp) or not given:
        raise SignatureError("malformed")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance_seconds:
        raise SignatureError("expired")
    for one in [secret] if isinstance(secret, str) else secret:
        expected = hmac.new(one.encode(), stamp.encode() + b"." + body, hashlib.sha256).hexdigest()
        if any([hmac.compare_digest(expected, value) for value in given]):
            return json.loads(body)
    raise SignatureError("mismatch")

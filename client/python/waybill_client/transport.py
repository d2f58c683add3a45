"""Sends a request until it has an answer worth having: with a token, within the budget, again where that is safe."""

from __future__ import annotations

import email.utils
import json
import random
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import urllib3

from .errors import WaybillError

TRIES = 5
"""Of one request in all."""
LONGEST_WAIT_SECONDS = 120.0
"""A longer Retry-After is the caller's to decide about; refills of the budget are a minute apart."""
FIRST_WAIT_SECONDS = 0.5
RENEW_BEFORE_SECONDS = 300.0
"""Before the end of a token's life: a request that waits for the budget must not outlive it."""
CONNECTIONS = 8
"""That are kept open for the next requests."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class Transport:
    """May be shared by threads."""

    def __init__(self, base_url: str, api_key: str, timeout: float) -> None:
        self._base_url = base_url.rstrip("/")
        self._api_key = api_key
        # A redirect would take the token to another host, and retries of our own know what may be repeated.
        self._http = urllib3.PoolManager(maxsize=CONNECTIONS, timeout=timeout, retries=False)
        self._lock = threading.Lock()
        self._token = ""
        self._token_until = 0.0
        self._remaining: int | None = None
        self._refill_at = 0.0

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        given = {name: value for name, value in (query or {}).items() if value is not None}
        target = path + ("?" + urllib.parse.urlencode(given) if given else "")
        headers = {}
        if method == "POST":
            headers["Idempotency-Key"] = idempotency_key or str(uuid.uuid4())
        answer = self._persistently(lambda: self._send_with_token(method, target, headers, body))
        if answer.status >= 300:
            raise WaybillError(answer.status, answer.body)
        return answer

    def _persistently(self, send: Callable[[], Answer]) -> Answer:
        """Every POST has an idempotency key, so that it may be repeated after its answer was lost."""
        for tries in range(1, TRIES + 1):
            try:
                answer = send()
                wait = _retry_wait(answer, tries)
                if wait is None or tries == TRIES:
                    return answer
            except urllib3.exceptions.HTTPError:
                if tries == TRIES:
                    raise
                wait = _backoff(tries)
            time.sleep(wait)
        raise AssertionError("unreachable")

    def _send_with_token(self, method: str, target: str, headers: Mapping[str, str], body: Any) -> Answer:
        token = self._access_token()
        answer = self._send_within_budget(method, target, {**headers, "Authorization": f"Bearer {token}"}, body)
        if answer.status != 401:
            return answer
        with self._lock:
            if self._token == token:
                self._token_until = 0.0
        token = self._access_token()
        return self._send_within_budget(method, target, {**headers, "Authorization": f"Bearer {token}"}, body)

    def _access_token(self) -> str:
        with self._lock:
            if time.monotonic() >= self._token_until:
                request = {"apiKey": self._api_key}
                answer = self._persistently(lambda: self._exchange("POST", "/v2/auth/token", {}, request))
                if answer.status >= 300:
                    raise WaybillError(answer.status, answer.body)
                self._token = answer.body["token"]
                life = answer.body["expires_in"] - RENEW_BEFORE_SECONDS
                self._token_until = time.monotonic() + life
            return self._token

    def _send_within_budget(self, method: str, target: str, headers: Mapping[str, str], body: Any) -> Answer:
        """Ten answers 429 within five minutes suspend a key: nobody sends who knows that the budget is spent."""
        with self._lock:
            wait = self._refill_at - time.monotonic() if self._remaining == 0 else 0.0
        if wait > 0:
            time.sleep(wait)
        answer = self._exchange(method, target, headers, body)
        left, reset = answer.headers.get("X-RateLimit-Remaining"), answer.headers.get("X-RateLimit-Reset")
        if left is not None and reset is not None:
            seconds = min(max(float(reset) - _server_time(answer.headers), 0.0), LONGEST_WAIT_SECONDS)
            with self._lock:
                self._remaining = int(left)
                self._refill_at = time.monotonic() + seconds
        return answer

    def _exchange(self, method: str, target: str, headers: Mapping[str, str], body: Any) -> Answer:
        data = None if body is None else json.dumps(body).encode()
        own = {"Accept": "application/json", "Accept-Encoding": "gzip", **headers}
        if data is not None:
            own["Content-Type"] = "application/json"
        response = self._http.request(method, self._base_url + target, body=data, headers=own, redirect=False)
        return _answer_of(response.status, response.headers, response.data)


def _answer_of(status: int, headers: Mapping[str, str], raw: bytes) -> Answer:
    try:
        body = json.loads(raw) if raw else None
    except ValueError:
        body = raw.decode(errors="replace")
    return Answer(status, headers, body)


def _retry_wait(answer: Answer, tries: int) -> float | None:
    """None = the answer stands. 409 with Retry-After: the same request is being carried out."""
    asked = answer.headers.get("Retry-After")
    is_busy = answer.status == 409 and asked is not None
    if answer.status not in (429, 503) and not is_busy:
        return None
    if asked is None or not asked.isdigit():
        return _backoff(tries)
    return float(asked) + random.random() * FIRST_WAIT_SECONDS if float(asked) <= LONGEST_WAIT_SECONDS else None


def _backoff(tries: int) -> float:
    return FIRST_WAIT_SECONDS * 2 ** (tries - 1) * (0.5 + random.random())


def _server_time(headers: Mapping[str, str]) -> float:
    """The local clock may be wrong."""
    date = headers.get("Date")
    return email.utils.parsedate_to_datetime(date).timestamp() if date else time.time()

"""Answers that are no success."""

from __future__ import annotations

from typing import Any

from .types import Violation


class WaybillError(Exception):
    """An answer of the API that is no success.

    `code` is stable, and every code is explained in the API's reference. `violations` say what is wrong with the request, by path;
    `request_id` is what to quote to whoever runs the service, and None if a proxy answered. `body` is the whole answer.
    """

    def __init__(self, status: int, body: Any) -> None:
        members = body if isinstance(body, dict) else {}
        text = members.get("detail") or members.get("message") or f"The API answered {status}."
        self.violations: list[Violation] = members.get("violations", [])
        for first in self.violations[:1]:
            text += f" {first['path']}: {first['message']}"
        super().__init__(text)
        self.status = status
        self.code = str(members.get("code", "UNKNOWN"))
        self.request_id: str | None = members.get("requestId")
        self.body = body

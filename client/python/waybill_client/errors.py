"""Answers that are no success."""

from __future__ import annotations

from typing import Any


class WaybillError(Exception):
    """An answer of the API that is no success.

    `code` is stable, and every code is explained in the API's reference. `body` is the whole answer.
    """

    def __init__(self, status: int, body: Any) -> None:
        members = body if isinstance(body, dict) else {}
        text = members.get("detail") or members.get("message")
        super().__init__(text or f"The API answered {status}.")
        self.status = status
        self.code = str(members.get("code", "UNKNOWN"))
        self.body = body

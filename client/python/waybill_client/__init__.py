"""The merchants' client of Waybill. See README.md."""

from .client import Client
from .errors import WaybillError
from .webhooks import SignatureError, verify_import_callback, verify_webhook

__all__ = [
    "Client",
    "SignatureError",
    "WaybillError",
    "verify_import_callback",
    "verify_webhook",
]

"""Every call of the API, and what takes several calls."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from .transport import Answer, Transport
from .types import (
    AcceptedImport,
    AcceptedNotification,
    AddressCheck,
    AddressCheckRequest,
    Channel,
    Confirmation,
    ConfirmRequest,
    CreatedShipments,
    DeliveryTimes,
    EfficiencyIndex,
    ImportJob,
    Label,
    LabelRequest,
    LaneRequest,
    NewShipment,
    NotificationRequest,
    Order,
    OrderParcel,
    ShipmentChanged,
    ShipmentCorrection,
    ShipmentDetail,
    ShipmentSummary,
    StockRelease,
    StockReleaseRequest,
)

PAGE = 100
"""The largest page. With smaller ones a single second could fill a page of changes for ever."""
FIRST_POLL_SECONDS = 0.5
LONGEST_POLL_SECONDS = 10.0


class Client:
    """May be shared by threads. Every POST takes an `idempotency_key`, to make your own repetitions safe too."""

    def __init__(self, base_url: str, api_key: str, *, timeout: float = 30.0) -> None:
        self._transport = Transport(base_url, api_key, timeout)

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        idempotency_key: str | None = None,
    ) -> Answer:
        """Any call of the API, such as `request("GET", "/v2/sandbox/1").body`. Raises WaybillError."""
        return self._transport.send(method, path, query=query, body=body, idempotency_key=idempotency_key)

    def create_shipments(
        self, shipments: Sequence[NewShipment], *, idempotency_key: str | None = None
    ) -> CreatedShipments:
        """At most 100; each item of the answer says whether it was created."""
        created: CreatedShipments = self._post("/v2/shipments", {"shipments": shipments}, idempotency_key)
        return created

    def run_import(
        self,
        shipments: Sequence[NewShipment],
        *,
        webhook_url: str | None = None,
        idempotency_key: str | None = None,
    ) -> ImportJob:
        """Import at most 5,000 shipments and wait until the job has ended."""
        body: dict[str, Any] = {"shipments": shipments}
        if webhook_url is not None:
            body["webhookUrl"] = webhook_url
        accepted: AcceptedImport = self._post("/v2/shipments/import", body, idempotency_key)
        wait = FIRST_POLL_SECONDS
        while True:
            time.sleep(wait)
            job: ImportJob = self._get(f"/v2/jobs/{accepted['jobId']}")
            if job["status"] not in ("pending", "processing"):
                return job
            wait = min(wait * 2, LONGEST_POLL_SECONDS)

    def shipment(self, shipment_id: int) -> ShipmentDetail:
        """A shipment with its history."""
        detail: ShipmentDetail = self._get(f"/v2/shipments/{shipment_id}")
        return detail

    def correct_shipment(self, shipment_id: int, correction: ShipmentCorrection) -> ShipmentChanged:
        """Correct the recipient, the order reference or the texts of a shipment."""
        path = f"/v2/shipments/{shipment_id}"
        changed: ShipmentChanged = self._transport.send("PATCH", path, body=correction).body
        return changed

    def channel(self) -> Channel:
        """What the key may use: couriers, boxes, platforms, languages, status details, scopes and limits."""
        channel: Channel = self._get("/v2/channel")
        return channel

    def shipments(self, **filters: str) -> Iterator[ShipmentSummary]:
        """All matches, oldest first unless `sortBy` says otherwise, so that new shipments do not move the pages."""
        return self._pages("/v2/shipments", {"sortBy": "id_asc", **filters})

    def changes_since(
        self, since: str, *, scope: Literal["channel", "company"] = "channel"
    ) -> Iterator[ShipmentSummary]:
        """The reconciliation procedure: every shipment whose status has changed since a time, and none missed.

        `since` is `YYYY-MM-DD HH:MM:SS` in Italian time: the `statusUpdatedAt` of the last shipment that you have processed. The
        shipments of that second come again.
        """
        updated_after = since
        seen: set[int] = set()
        while True:
            query = {"scope": scope, "updatedAfter": updated_after, "sortBy": "updatedAt_asc", "limit": PAGE}
            items: list[ShipmentSummary] = self._get("/v2/shipments", query)["items"]
            boundary, known = updated_after, seen
            for item in items:
                at = item["statusUpdatedAt"] or updated_after
                if at == boundary and item["id"] in known:
                    continue
                if at != updated_after:
                    updated_after, seen = at, set()
                seen.add(item["id"])
                yield item
            if len(items) < PAGE:
                return
            if updated_after == boundary:
                raise RuntimeError(f"more than {PAGE} changes at {boundary}")

    def release_stock(
        self, shipment_id: int, release: StockReleaseRequest, *, idempotency_key: str | None = None
    ) -> StockRelease:
        """Ask the carrier to release a shipment held in depot."""
        path = f"/v2/shipments/{shipment_id}/stock-release"
        released: StockRelease = self._post(path, release, idempotency_key)
        return released

    def notify(
        self, shipment_id: int, notification: NotificationRequest, *, idempotency_key: str | None = None
    ) -> AcceptedNotification:
        """Send the recipient the e-mail of one of your events."""
        path = f"/v2/shipments/{shipment_id}/notifications"
        accepted: AcceptedNotification = self._post(path, notification, idempotency_key)
        return accepted

    def create_label(self, label: LabelRequest, *, idempotency_key: str | None = None) -> Label:
        """The labels of a shipment; the same channel, carrier and reference give the same ones."""
        made: Label = self._post("/v2/labels", label, idempotency_key)
        return made

    def confirm_labels(
        self, confirmation: ConfirmRequest, *, idempotency_key: str | None = None
    ) -> Confirmation:
        """Close the day."""
        confirmed: Confirmation = self._post("/v2/labels/confirm", confirmation, idempotency_key)
        return confirmed

    def orders(self) -> Iterator[Order]:
        """All orders, the newest first, each once: new ones move those behind them to the next page."""
        page = 1
        seen: set[int] = set()
        while True:
            found: list[Order] = self._get("/v2/orders", {"page": page, "limit": PAGE})
            yield from (order for order in found if order["id"] not in seen)
            seen.update(order["id"] for order in found)
            if len(found) < PAGE:
                return
            page += 1

    def parcels(self, order_reference: str, order_origin: str) -> Iterator[OrderParcel]:
        """The parcels of an order."""
        query = {"orderReference": order_reference, "orderOrigin": order_origin}
        return self._pages("/v2/parcels", query)

    def check_address(
        self, address: AddressCheckRequest, *, idempotency_key: str | None = None
    ) -> AddressCheck:
        """Every accepted request is billed; a repetition under the same key is not."""
        checked: AddressCheck = self._post("/v2/addresses/check", address, idempotency_key)
        return checked

    def delivery_times(self, lane: LaneRequest) -> DeliveryTimes:
        """How fast couriers are on a lane."""
        times: DeliveryTimes = self._post("/v2/couriers/delivery-times", lane, None)
        return times

    def efficiency_index(self, lane: LaneRequest) -> EfficiencyIndex:
        """How good couriers are on a lane."""
        index: EfficiencyIndex = self._post("/v2/couriers/efficiency-index", lane, None)
        return index

    def _get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        return self._transport.send("GET", path, query=query).body

    def _post(self, path: str, body: Any, idempotency_key: str | None) -> Any:
        return self._transport.send("POST", path, body=body, idempotency_key=idempotency_key).body

    def _pages(self, path: str, query: Mapping[str, Any]) -> Iterator[Any]:
        page, pages = 1, 1
        while page <= pages:
            found = self._get(path, {**query, "page": page, "limit": PAGE})
            pages = found["pages"]
            yield from found["items"]
            page += 1

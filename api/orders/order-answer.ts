/** An order of the store as the merchant sees it. */
import type { Caller } from "#api/auth/authenticated.ts";
import { type OrderView, orderRecord, orderView } from "#core/merchants/rules/order.ts";
import type { OrderOwner, StoredOrder } from "#core/merchants/store/orders.ts";
import { Problem } from "#core/platform/errors/problem.ts";

const EXAMPLE_MS = Date.UTC(2026, 10, 20, 9);

export const EXAMPLE_ORDER = orderView(
  33,
  orderRecord(
    1,
    {
      source: "shopify",
      reference: "1001",
      orderId: "gid-1",
      courier: "GLS_ITA",
      createdAt: "2026-11-01T10:00:00+01:00",
      consignee: { name: "Mario Rossi", street: "Via Roma 1", city: "Roma", country: "IT" },
      monetary: { isCod: false, value: 49.9 },
      parcels: [{ weight: 1.2, length: 30, width: 20, height: 10 }, { weight: 0.8 }],
      items: [{ sku: "LMP-01", name: "Lampada", quantity: 1, price: 49.9 }],
    },
    null,
    EXAMPLE_MS,
  ),
  () => 1,
);

export function orderAnswer({ id, record }: StoredOrder, { configuration }: Caller): OrderView {
  return orderView(id, record, (code) => configuration.couriers.get(code)?.number);
}

export function ownerOf({ channel, company }: Caller): OrderOwner {
  return { companyId: company.id, channelId: channel.id };
}

/** The same for a missing order, a deleted one, one of another channel and a text that is no id. */
export function orderNotFound(): Problem {
  return new Problem(404, "ORDER_NOT_FOUND", "There is no such order.");
}

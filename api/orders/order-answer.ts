/** An order of the store as the merchant sees it. */
import type { Caller } from "#api/auth/authenticated.ts";
import { type OrderView, orderView } from "#core/domain/orders/order.ts";
import { Problem } from "#core/problem.ts";
import type { OrderOwner, StoredOrder } from "#core/redis/merchant/orders.ts";

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

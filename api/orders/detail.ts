/** `GET /v2/orders/{id}` (document 1, "Orders"). */
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { readOrders } from "#core/redis/orders.ts";
import { orderAnswer, orderNotFound } from "./order-answer.ts";

/** Ids have at most twelve digits; any other text is the id of no order. */
const ID_FORM = /^[1-9]\d{0,11}$/;

export function orderRoute(deps: ApiDeps) {
  const { redis } = deps;
  return new Elysia().use(authenticated(deps)).get(
    "/v2/orders/:id",
    async ({ params, caller }) => {
      // A missing one is read like any other, so that a foreign one is not told apart by time.
      const id = ID_FORM.test(params.id) ? Number(params.id) : 0;
      const [order] = await readOrders(redis, [id]);
      const own = order?.record.channelId === caller.channel.id && !order.record.input.deleted;
      if (!order || !own) throw orderNotFound();
      return orderAnswer(order, caller);
    },
    { scope: "orders:read" },
  );
}

/** `GET /v2/orders/{id}` (document 1, "Orders"). */

import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { OrderView } from "#core/domain/orders/order.ts";
import { idOf } from "#core/domain/schema/path-id.ts";
import { described, idInPath, json } from "#core/http/openapi/operation.ts";
import { readOrders } from "#core/redis/merchant/orders.ts";
import { EXAMPLE_ORDER, orderAnswer, orderNotFound } from "./order-answer.ts";

const operation = described({
  id: "readOrder",
  summary: "Read an order",
  parameters: [idInPath(EXAMPLE_ORDER.id)],
  answers: {
    200: json("The order.", OrderView, EXAMPLE_ORDER),
  },
  errors: ["ORDER_NOT_FOUND"],
});

export function orderRoute(deps: ApiDeps) {
  const { redis } = deps;
  return new Elysia().use(authenticated(deps)).get(
    "/v2/orders/:id",
    async ({ params, caller }) => {
      // A missing one is read like any other, so that a foreign one cannot be recognised by its timing.
      const [order] = await readOrders(redis, [idOf(params.id)]);
      const own = order?.record.channelId === caller.channel.id && !order.record.input.deleted;
      if (!order || !own) throw orderNotFound();
      return orderAnswer(order, caller);
    },
    { scope: "orders:read", ...operation },
  );
}

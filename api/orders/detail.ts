/** `GET /v2/orders/{id}` (document 1, "Orders"). */

import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { OrderView } from "#core/merchants/rules/order.ts";
import { readOwnOrder } from "#core/merchants/store/orders.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { EXAMPLE_ORDER, orderAnswer, orderNotFound, ownerOf } from "./order-answer.ts";

const operation = declared({
  access: { scope: "orders:read" },
  id: "readOrder",
  summary: "Read an order",
  parameters: [idInPath(EXAMPLE_ORDER.id)],
  answers: {
    200: { ...json("The order.", OrderView, EXAMPLE_ORDER), headers: TAG_HEADERS },
    ...NOT_MODIFIED,
  },
  errors: ["ORDER_NOT_FOUND"],
});

export function orderRoute(deps: ApiDeps) {
  const { redis } = deps;
  return merchantRoutes(deps).get(
    "/v2/orders/:id",
    async ({ request, params, caller }) => {
      const order = await readOwnOrder(redis, ownerOf(caller), idOf(params.id));
      if (!order) throw orderNotFound();
      return tagged(request, orderAnswer(order, caller));
    },
    route(operation),
  );
}

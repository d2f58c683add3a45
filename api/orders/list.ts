/** `GET /v2/orders` (document 1, "Orders"): a page of the channel's orders, or the one of a natural key. */

import { Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import {
  linkPages,
  NOT_MODIFIED,
  PAGE_HEADERS,
  TAG_HEADERS,
  tagged,
  taggedText,
} from "#api/http/paging.ts";
import { OrderView } from "#core/merchants/rules/order.ts";
import { findOrder, listOrders } from "#core/merchants/store/orders.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import { inSamples, query } from "#core/platform/openapi/operation.ts";
import { jsonList } from "#core/platform/process/json-text.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { EXAMPLE_ORDER, orderAnswer, orderNotFound, ownerOf } from "./order-answer.ts";

/** Document 1, "Limits". */
const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;
/** Far past any channel's last page; keeps positions exact numbers. */
const PAGE_MAX = 1_000_000_000;

const text = Type.String();
/** Never refused. */
const lenient = Type.Union([Type.Integer(), text, Type.Array(text)]);

const operation = declared({
  access: { scope: "orders:read" },
  id: "listOrders",
  summary: "List the channel's orders, or look one up by its natural key",
  description:
    "Newest order date first, ties by the higher id; deleted orders are left out. `source` and `reference` together look one order up, without pages: an array of one, or 404. Either alone is ignored. `page` and `limit` out of range are clamped; what is no whole number counts as absent.",
  parameters: [
    query("source", text, "Origin platform, exact.", "shopify"),
    query("reference", text, "Order reference, exact.", "1001"),
    query("page", lenient, "Default 1.", 1),
    inSamples(query("limit", lenient, `Default ${LIMIT_DEFAULT}, at most ${LIMIT_MAX}.`, 50)),
  ],
  answers: {
    200: {
      description: "Full orders.",
      headers: {
        ...PAGE_HEADERS,
        ...TAG_HEADERS,
        "X-Page": "Page shown; not sent by the lookup.",
        "X-Limit": "Orders a page; not sent by the lookup.",
        "X-Total-Count": "Orders in all; 1 for the lookup.",
      },
      content: { schema: Type.Array(OrderView), example: [EXAMPLE_ORDER] },
    },
    ...NOT_MODIFIED,
  },
  errors: ["ORDER_NOT_FOUND", "VALIDATION_FAILED"],
});

export function ordersRoute(deps: ApiDeps) {
  const { redis } = deps;
  return merchantRoutes(deps).get(
    "/v2/orders",
    async ({ request, caller, set }) => {
      const params = searchParamsOf(request);
      const source = single(params, "source");
      const reference = single(params, "reference");
      if (source && reference) {
        const found = await lookUp(redis, caller, source, reference);
        set.headers["x-total-count"] = "1";
        return tagged(request, [found]);
      }
      const page = clamped(params.get("page"), 1, PAGE_MAX);
      const limit = clamped(params.get("limit"), LIMIT_DEFAULT, LIMIT_MAX);
      const { total, orders } = await listOrders(redis, ownerOf(caller), (page - 1) * limit, limit);
      linkPages(request, set, page, Math.ceil(total / limit));
      Object.assign(set.headers, {
        "x-page": String(page),
        "x-limit": String(limit),
        "x-total-count": String(total),
      });
      return taggedText(request, await jsonList(orders, (order) => orderAnswer(order, caller)));
    },
    route(operation),
  );
}

/** @throws {Problem} 404 */
async function lookUp(
  redis: Redis,
  caller: Caller,
  source: string,
  reference: string,
): Promise<OrderView> {
  const order = await findOrder(redis, ownerOf(caller), source, reference);
  if (!order) throw orderNotFound();
  return orderAnswer(order, caller);
}

/** @throws {Problem} 422 when it is given more than once */
function single(params: URLSearchParams, name: string): string | null {
  const [value = null, ...more] = params.getAll(name);
  if (more.length === 0) return value;
  const message = "The parameter is given more than once.";
  throw validationFailed([{ path: name, code: "TOO_MANY", message }]);
}

/** Out of range is clamped without an error; what is no whole number counts as absent. */
function clamped(text: string | null, fallback: number, max: number): number {
  if (text === null || !/^[+-]?\d+$/.test(text)) return fallback;
  return Math.min(max, Math.max(1, Number(text)));
}

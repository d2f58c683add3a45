/** `GET`, `POST` and `DELETE /v2/parcels` (document 1, "Order parcels"). */

import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { LIST_BODY_BYTES } from "#api/http/body-limits.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { linkPages, NOT_MODIFIED, PAGE_HEADERS, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { ownerOf } from "#api/orders/order-answer.ts";
import {
  OrderParcelView,
  orderOfParcels,
  PARCELS_ANSWERED_AT_ONCE,
  ParcelsCreation,
  parcelView,
  withoutParcels,
} from "#core/merchants/rules/order-parcel.ts";
import { saveParcelJob } from "#core/merchants/store/jobs/parcel-jobs.ts";
import { changeOrder, createOrder, findOrder } from "#core/merchants/store/orders.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import { json, query } from "#core/platform/openapi/operation.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import {
  checkProduct,
  EXAMPLE_CREATION,
  EXAMPLE_PARCELS,
  KEY_LENGTH,
  LIMIT_DEFAULT,
  LIMIT_MAX,
  PAGE_MAX,
  parcelNotFound,
  readParcelQuery,
} from "./parcel-access.ts";

export const OrderParcelPage = Type.Object({
  items: Type.Array(OrderParcelView),
  total: Type.Integer(),
  page: Type.Integer(),
  limit: Type.Integer(),
  pages: Type.Integer(),
});
type OrderParcelPage = Static<typeof OrderParcelPage>;

export const AcceptedParcels = Type.Object({
  jobId: Type.String(),
  status: Type.Literal("processing"),
  statusUrl: Type.String({ description: "relative to /v2" }),
  totalParcels: Type.Integer(),
  warnings,
});
type AcceptedParcels = Static<typeof AcceptedParcels>;

const key = Type.String({ minLength: 1, maxLength: KEY_LENGTH });
const ofOrder = [
  query("orderReference", key, "Order reference.", "1002", true),
  query("orderOrigin", key, "Origin platform.", "shopify", true),
];

const OPERATIONS = {
  list: declared({
    access: { scope: "parcels:read", check: checkProduct },
    id: "listParcels",
    summary: "List the parcels of an order",
    parameters: [
      ...ofOrder,
      query("page", Type.Integer({ minimum: 1, maximum: PAGE_MAX }), "Default 1.", 1),
      query(
        "limit",
        Type.Integer({ minimum: 1, maximum: LIMIT_MAX }),
        `Default ${LIMIT_DEFAULT}.`,
        20,
      ),
    ],
    answers: {
      200: {
        ...json("A page of parcels; an order without parcels is an empty page.", OrderParcelPage, {
          items: EXAMPLE_PARCELS,
          total: 1,
          page: 1,
          limit: 20,
          pages: 1,
        }),
        headers: { ...PAGE_HEADERS, ...TAG_HEADERS },
      },
      ...NOT_MODIFIED,
    },
    errors: ["PRODUCT_NOT_OWNED", "VALIDATION_FAILED"],
  }),
  create: repeatable({
    access: { scope: "parcels:create", check: checkProduct },
    id: "createParcels",
    summary: "Create an order with its parcels",
    description: `More than ${PARCELS_ANSWERED_AT_ONCE} parcels, at most 1,000, are answered 202 with a job.`,
    rules: [{ path: "orderOrigin", code: "NOT_ALLOWED", rule: "in the platform registry" }],
    body: jsonBody(ParcelsCreation, EXAMPLE_CREATION, LIST_BODY_BYTES),
    answers: {
      201: json("The parcels, in the order given.", Type.Array(OrderParcelView), EXAMPLE_PARCELS, {
        "X-Warnings": "`warnings` of the request as JSON in ASCII, at most 5; absent without any.",
      }),
      202: json("A job; its result has the hashes.", AcceptedParcels, {
        jobId: "0f6a2d6b-5a54-4a05-8f5f-2f9a7a7b7d10",
        status: "processing",
        statusUrl: "/jobs/0f6a2d6b-5a54-4a05-8f5f-2f9a7a7b7d10",
        totalParcels: 101,
      }),
    },
    errors: ["PRODUCT_NOT_OWNED", "ORDER_EXISTS"],
  }),
  remove: declared({
    access: { scope: "parcels:delete", check: checkProduct },
    id: "deleteParcels",
    summary: "Delete all parcels of an order",
    parameters: ofOrder,
    answers: { 204: { description: "Deleted; the order stays." } },
    errors: ["PRODUCT_NOT_OWNED", "PARCEL_NOT_FOUND", "VALIDATION_FAILED"],
  }),
};

export function parcelsRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return merchantRoutes(deps)
    .get(
      "/v2/parcels",
      async ({ request, caller, set }) => {
        const query = readParcelQuery(searchParamsOf(request));
        const { orderOrigin, orderReference, page, limit } = query;
        const order = await findOrder(redis, ownerOf(caller), orderOrigin, orderReference);
        const parcels = order?.record.parcels ?? [];
        const shown = parcels.slice((page - 1) * limit, page * limit);
        const pages = Math.ceil(parcels.length / limit);
        linkPages(request, set, page, pages);
        return tagged(request, {
          items: order ? shown.map((parcel) => parcelView(order.record, parcel)) : [],
          total: parcels.length,
          page,
          limit,
          pages,
        } satisfies OrderParcelPage);
      },
      route(OPERATIONS.list),
    )
    .post(
      "/v2/parcels",
      async ({ body, request, caller, set }): Promise<OrderParcelView[] | AcceptedParcels> => {
        checkOrigin(body.orderOrigin, caller);
        const owner = ownerOf(caller);
        const carryOut = async (): Promise<AcceptedParcels | { readonly createdAtMs: number }> => {
          const record = orderOfParcels(owner.channelId, body, live.now());
          if ((await createOrder(redis, owner, record)) === null) throw orderExists();
          if (record.parcels.length <= PARCELS_ANSWERED_AT_ONCE) {
            set.status = 201;
            return { createdAtMs: record.updatedAtMs };
          }
          set.status = 202;
          const jobId = await saveParcelJob(redis, owner.companyId, {
            channelId: owner.channelId,
            hashes: record.parcels.map(({ hash }) => hash),
            createdAtMs: live.now(),
          });
          const totalParcels = record.parcels.length;
          return {
            jobId,
            status: "processing",
            statusUrl: `/jobs/${jobId}`,
            totalParcels,
          };
        };
        const done = await onceByKey(deps, { request, caller, set }, [body], carryOut);
        if (!("createdAtMs" in done)) return done;
        // The parcels follow from the request: their texts are not kept for a repetition.
        const record = orderOfParcels(owner.channelId, body, done.createdAtMs);
        return record.parcels.map((parcel) => parcelView(record, parcel));
      },
      route(OPERATIONS.create),
    )
    .delete(
      "/v2/parcels",
      async ({ request, caller, set }) => {
        const query = readParcelQuery(searchParamsOf(request));
        const owner = ownerOf(caller);
        const order = await findOrder(redis, owner, query.orderOrigin, query.orderReference);
        const changed =
          order &&
          (await changeOrder(redis, owner, order.id, (record) =>
            withoutParcels(record, null, live.now()),
          ));
        if (!changed) throw parcelNotFound();
        set.status = 204;
      },
      route(OPERATIONS.remove),
    );
}

/** @throws {Problem} 422 */
function checkOrigin(origin: string, { configuration }: Caller): void {
  if (configuration.platforms.has(origin)) return;
  const message = "The origin is not in the platform registry.";
  throw validationFailed([{ path: "orderOrigin", code: "NOT_ALLOWED", message }], {
    orderOrigin: origin,
  });
}

function orderExists(): Problem {
  const detail = "The channel has an order with this origin and reference.";
  return new Problem(409, "ORDER_EXISTS", detail);
}

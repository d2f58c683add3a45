/** `GET`, `POST` and `DELETE /v2/parcels` (document 1, "Order parcels"). */

import { Elysia } from "elysia";
import { authenticated, type Caller } from "#api/auth/authenticated.ts";
import { LIST_BODY_BYTES } from "#api/body-limits.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import { ownerOf } from "#api/orders/order-answer.ts";
import { readChecked } from "#api/read-json.ts";
import {
  orderOfParcels,
  PARCELS_ANSWERED_AT_ONCE,
  ParcelsCreation,
  parcelView,
  withoutParcels,
} from "#core/domain/orders/order-parcel.ts";
import { compileSchema } from "#core/domain/schema/compile-schema.ts";
import { searchParamsOf } from "#core/http/search-params.ts";
import { Problem } from "#core/problem.ts";
import { changeOrder, createOrder, findOrder } from "#core/redis/merchant/orders.ts";
import { saveParcelJob } from "#core/redis/merchant/parcel-jobs.ts";
import { checkProduct, parcelNotFound, readParcelQuery } from "./parcel-access.ts";

const checker = compileSchema(ParcelsCreation);

export function parcelsRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return new Elysia()
    .use(authenticated(deps))
    .get(
      "/v2/parcels",
      async ({ request, caller }) => {
        checkProduct(caller);
        const query = readParcelQuery(searchParamsOf(request));
        const { orderOrigin, orderReference, page, limit } = query;
        const order = await findOrder(redis, ownerOf(caller), orderOrigin, orderReference);
        const parcels = order?.record.parcels ?? [];
        const shown = parcels.slice((page - 1) * limit, page * limit);
        return {
          items: order ? shown.map((parcel) => parcelView(order.record, parcel)) : [],
          total: parcels.length,
          page,
          limit,
          pages: Math.ceil(parcels.length / limit),
        };
      },
      { scope: "parcels:read" },
    )
    .post(
      "/v2/parcels",
      async ({ request, caller, set }) => {
        checkProduct(caller);
        const body = await readChecked(request, checker, LIST_BODY_BYTES);
        checkOrigin(body.orderOrigin, caller);
        const owner = ownerOf(caller);
        const record = orderOfParcels(owner.channelId, body, live.now());
        if ((await createOrder(redis, owner, record)) === null) throw orderExists();
        if (record.parcels.length <= PARCELS_ANSWERED_AT_ONCE) {
          set.status = 201;
          return record.parcels.map((parcel) => parcelView(record, parcel));
        }
        set.status = 202;
        const jobId = await saveParcelJob(redis, owner.companyId, {
          channelId: owner.channelId,
          hashes: record.parcels.map(({ hash }) => hash),
          createdAtMs: live.now(),
        });
        const totalParcels = record.parcels.length;
        return { jobId, status: "processing", statusUrl: `/jobs/${jobId}`, totalParcels };
      },
      { scope: "parcels:create", parse: "none" },
    )
    .delete(
      "/v2/parcels",
      async ({ request, caller, set }) => {
        checkProduct(caller);
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
      { scope: "parcels:delete" },
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

/** `GET /v2/shipments/{id}/stock-releases/{releaseId}`, an extension of document 1: what became of a stock release. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { besideOwn } from "#api/shipments/own-shipment.ts";
import {
  readRelease,
  releaseAmong,
  type StockRelease,
} from "#core/merchants/store/stock-releases.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, inPath, json } from "#core/platform/openapi/operation.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";

const STATUSES = ["sending", "sent", "refused", "unknown"] as const;
const OUTCOMES = ["ok", "error", "pending"] as const;

export const StockReleaseAgain = Type.Object({
  releaseId: Type.Integer(),
  shipmentId: Type.Integer(),
  status: Type.Union(
    STATUSES.map((name) => Type.Literal(name)),
    {
      description:
        "sending: the carrier is being asked; sent: it has accepted; refused: it has not; unknown: it could not be reached or understood, and the same request sends the release again under this id",
    },
  ),
  courierOutcome: Type.Union([...OUTCOMES.map((name) => Type.Literal(name)), Type.Null()], {
    description: "null unless sent; pending: a tracking event reports the outcome later",
  }),
  message: nullableText,
  action: Type.String(),
  redeliveryDate: nullableText,
  requestedAt: Type.String({ description: "ISO 8601" }),
});
type StockReleaseAgain = Static<typeof StockReleaseAgain>;

const operation = declared({
  access: { scope: "shipments:read" },
  id: "readStockRelease",
  summary: "Read a stock release again",
  description: "A shipment keeps its latest 50 releases.",
  extension: true,
  parameters: [idInPath(4096), inPath("releaseId", Type.Integer({ minimum: 1 }), 17)],
  answers: {
    200: {
      ...json("The release.", StockReleaseAgain, {
        releaseId: 17,
        shipmentId: 4096,
        status: "sent",
        courierOutcome: "ok",
        message: null,
        action: "redeliver",
        redeliveryDate: "2026-11-24",
        requestedAt: "2026-11-20T18:00:00.000+01:00",
      }),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
  errors: ["SHIPMENT_NOT_FOUND", "STOCK_RELEASE_NOT_FOUND", "ARCHIVE_UNAVAILABLE"],
});

export function releaseRoute(deps: ApiDeps) {
  const { redis } = deps;
  return merchantRoutes(deps).get(
    "/v2/shipments/:id/stock-releases/:releaseId",
    async ({ params, request, caller: { channel } }): Promise<Response> => {
      const releaseId = idOf(params.releaseId);
      const { shipmentId, found } = await besideOwn(
        ...[deps, channel, params.id],
        (id) => readRelease(redis, id, releaseId),
        ({ releases }) => releaseAmong(releases, releaseId),
      );
      if (found) return tagged(request, viewOf(shipmentId, found));
      throw new Problem(404, "STOCK_RELEASE_NOT_FOUND", "There is no such stock release.");
    },
    route(operation),
  );
}

function viewOf(shipmentId: number, release: StockRelease): StockReleaseAgain {
  const { releaseId, outcome, message = null, action, redeliveryDate, askedAtMs } = release;
  const courierOutcome = OUTCOMES.find((name) => name === outcome) ?? null;
  return {
    releaseId,
    shipmentId,
    status: courierOutcome === null ? statusWithout(outcome) : "sent",
    courierOutcome,
    message,
    action,
    redeliveryDate,
    requestedAt: romeIso(askedAtMs),
  };
}

/** Of a release that the carrier has not accepted. */
function statusWithout(outcome: StockRelease["outcome"]): StockReleaseAgain["status"] {
  if (outcome === undefined) return "sending";
  return outcome === "refused" ? "refused" : "unknown";
}

/** `POST /v2/shipments/{id}/stock-release` (document 1, "Shipments"): asks the carrier to release a held parcel. */

import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { ownShipment } from "#api/shipments/own-shipment.ts";
import {
  RELEASE_LIMIT_MS,
  type ReleaseAnswer,
  releaseCarrier,
} from "#api/shipments/release-carrier.ts";
import { testReleaseCarrier } from "#api/shipments/test-release-carrier.ts";
import {
  redeliveryDateOf,
  releaseDigest,
  StockReleaseBody,
  stockReleaseFaults,
} from "#core/merchants/rules/stock-release.ts";
import {
  type AcceptedRelease,
  type AnsweredRelease,
  answerRelease,
  claimRelease,
  readRelease,
} from "#core/merchants/store/stock-releases.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import { romeDate } from "#core/platform/time/rome-time.ts";

export const StockRelease = Type.Object({
  status: Type.Literal("sent"),
  courierOutcome: Type.Union(
    (["ok", "error", "pending"] as const).map((name) => Type.Literal(name)),
    { description: "pending: a tracking event reports the outcome later" },
  ),
  message: nullableText,
  releaseId: Type.Integer(),
  warnings,
});
type StockRelease = Static<typeof StockRelease>;

const operation = repeatable({
  access: { scope: "shipments:write" },
  id: "releaseStock",
  summary: "Ask the carrier to release a shipment held in depot",
  description:
    "May be repeated after a lost answer: while the same event holds the shipment, the same body is the same release. If the carrier has accepted it, its answer is repeated for an hour without calling the carrier; if its outcome is unknown, it is sent again under the same `Idempotency-Key`.",
  parameters: [idInPath(4096)],
  rules: [
    { path: "address", code: "REQUIRED", rule: "the action redeliver_new_address needs it" },
    { path: "address", code: "NOT_ALLOWED", rule: "only that action takes it" },
    { path: "redeliveryDate", code: "NOT_ALLOWED", rule: "not with return_to_sender" },
    { path: "redeliveryDate", code: "OUT_OF_RANGE", rule: "today or later" },
  ],
  // Has no date: a date in the past would be refused.
  body: jsonBody(StockReleaseBody, { action: "redeliver", notes: "Second floor, ring twice." }),
  answers: {
    200: json("Sent to the carrier.", StockRelease, {
      status: "sent",
      courierOutcome: "ok",
      message: null,
      releaseId: 17,
    }),
  },
  errors: [
    "SHIPMENT_NOT_FOUND",
    "NOT_HELD_IN_DEPOT",
    "STOCK_RELEASE_UNDER_WAY",
    "CARRIER_REFUSED",
    "CARRIER_UNREACHABLE",
    "CARRIER_UNREADABLE",
    "ARCHIVE_UNAVAILABLE",
  ],
});

export function stockReleaseRoute(deps: ApiDeps) {
  const { live } = deps;
  return merchantRoutes(deps).post(
    "/v2/shipments/:id/stock-release",
    async ({ params, body, request, caller, set }): Promise<StockRelease> => {
      const askedAtMs = live.now();
      const faults = stockReleaseFaults(body, romeDate(askedAtMs));
      if (faults.length > 0) throw validationFailed(faults, body);
      const carryOut = () => releaseStock(deps, caller, params.id, body, askedAtMs);
      // The carrier's message stands with the shipment, where it can be erased.
      return onceByKey(deps, { request, caller, set }, [body], carryOut, {
        keep: (view) => ({ ...view, message: null }),
        recall: async (view) => {
          const found = await readRelease(deps.redis, idOf(params.id), view.releaseId);
          return { ...view, message: found?.message ?? null };
        },
      });
    },
    route(operation),
  );
}

/** @throws {Problem} 404, 409, 422, 502 */
async function releaseStock(
  { redis, archive, config }: ApiDeps,
  { channel, configuration }: Caller,
  id: string,
  body: StockReleaseBody,
  askedAtMs: number,
): Promise<StockRelease> {
  const stores = { redis, archive };
  const { record, state } = await ownShipment(stores, channel, id);
  if (!configuration.statusDetails.get(state.pair.detail)?.heldInDepot) {
    throw new Problem(409, "NOT_HELD_IN_DEPOT", "The shipment is not held in depot.");
  }
  const courier = configuration.couriers.get(record.courier);
  const liveCarrier = courier ? releaseCarrier(courier, config) : null;
  const isTest = channel.testOf !== null;
  const carrier = isTest ? testReleaseCarrier(redis, record, askedAtMs) : liveCarrier;
  if (!courier || !carrier) throw notSupported();
  const { action, notes = null, address = null } = body;
  const today = romeDate(askedAtMs);
  const redeliveryDate = redeliveryDateOf(body, courier.stockRelease.date, today);
  const digest = releaseDigest(body, state.mapped?.by.key ?? "");
  const release = { action, redeliveryDate, digest, askedAtMs };
  const claim = await claimRelease(redis, record.id, release, RELEASE_LIMIT_MS);
  // It may have been archived before it was claimed; from now on it is not.
  await ownShipment(stores, channel, id);
  const { releaseId } = claim;
  if (claim.kind === "busy") throw underWay();
  if (claim.kind === "answered") return { status: "sent", ...viewOf(claim.answer), releaseId };
  const { trackingNumber } = record;
  const order = { releaseId, courier: courier.code, trackingNumber, action, notes };
  const answer = await carrier({ ...order, redeliveryDate, address });
  const answered = { ...release, ...recordOf(answer) };
  await answerRelease(redis, record.id, releaseId, answered);
  return { status: "sent", ...viewOf(accepted(answer)), releaseId };
}

function viewOf({ outcome, message }: AcceptedRelease) {
  return { courierOutcome: outcome, message };
}

function recordOf(answer: ReleaseAnswer): AnsweredRelease {
  const message = "message" in answer ? answer.message : null;
  return { outcome: answer.kind === "accepted" ? answer.outcome : answer.kind, message };
}

function underWay(): Problem {
  const detail = "The carrier is being asked for the same release.";
  return new Problem(409, "STOCK_RELEASE_UNDER_WAY", detail, { headers: { "retry-after": "1" } });
}

/** @throws {Problem} 422 refused, 502 unavailable */
function accepted(answer: ReleaseAnswer): AcceptedRelease {
  switch (answer.kind) {
    case "accepted":
      return answer;
    case "refused":
      throw new Problem(422, "CARRIER_REFUSED", answer.message, { members: { violations: [] } });
    case "unreachable":
      throw new Problem(502, "CARRIER_UNREACHABLE", "The carrier cannot be reached.");
    case "unreadable":
      throw new Problem(502, "CARRIER_UNREADABLE", "The carrier's answer cannot be read.");
  }
}

function notSupported(): Problem {
  const detail = "The carrier takes no stock releases.";
  return new Problem(422, "CARRIER_REFUSED", detail, { members: { violations: [] } });
}

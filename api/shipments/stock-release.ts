/** `POST /v2/shipments/{id}/stock-release` (document 1, "Shipments"): asks the carrier to release a held parcel. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import { SMALL_BODY_BYTES } from "#api/body-limits.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import { readChecked } from "#api/read-json.ts";
import { ownShipment } from "#api/shipments/own-shipment.ts";
import { type ReleaseAnswer, releaseCarrier } from "#api/shipments/release-carrier.ts";
import { romeDate } from "#core/domain/rome-time.ts";
import {
  redeliveryDateOf,
  StockReleaseBody,
  stockReleaseFaults,
} from "#core/domain/stock-release.ts";
import { Problem } from "#core/problem.ts";
import { keepRelease, newReleaseId } from "#core/redis/stock-releases.ts";

const checker = TypeCompiler.Compile(StockReleaseBody);

export function stockReleaseRoute(deps: ApiDeps) {
  const { redis, live, config } = deps;
  return new Elysia().use(authenticated(deps)).post(
    "/v2/shipments/:id/stock-release",
    async ({ params, request, caller: { channel, configuration } }) => {
      const body = await readChecked(request, checker, SMALL_BODY_BYTES);
      const faults = stockReleaseFaults(body);
      if (faults.length > 0) throw validationFailed(faults);
      const { record, state } = await ownShipment(redis, channel, params.id);
      if (!configuration.statusDetails.get(state.pair.detail)?.heldInDepot) {
        throw new Problem(409, "NOT_HELD_IN_DEPOT", "The shipment is not held in depot.");
      }
      const courier = configuration.couriers.get(record.courier);
      const carrier = courier ? releaseCarrier(courier, config) : null;
      if (!courier || !carrier) throw notSupported();
      const askedAtMs = live.now();
      const { action, notes = null, address = null } = body;
      const { needsDate } = courier.stockRelease;
      const redeliveryDate = redeliveryDateOf(body, needsDate, romeDate(askedAtMs));
      const releaseId = await newReleaseId(redis, record.id);
      const release = { releaseId, action, redeliveryDate, askedAtMs };
      await keepRelease(redis, record.id, { ...release, outcome: null });
      const { trackingNumber } = record;
      const order = { releaseId, courier: courier.code, trackingNumber, action, notes };
      const answer = await carrier({ ...order, redeliveryDate, address });
      await keepRelease(redis, record.id, { ...release, outcome: told(answer) });
      const { outcome, message } = acceptedBy(answer);
      return { status: "sent", courierOutcome: outcome, message, releaseId };
    },
    { scope: "shipments:write", parse: "none" },
  );
}

function told(answer: ReleaseAnswer): string {
  return answer.kind === "accepted" ? answer.outcome : answer.kind;
}

/** @throws {Problem} 422 refused, 502 away */
function acceptedBy(answer: ReleaseAnswer): Extract<ReleaseAnswer, { kind: "accepted" }> {
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

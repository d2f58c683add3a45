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
import { claimRelease, keepRelease } from "#core/redis/stock-releases.ts";

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
      const said = { action, notes, redeliveryDate, address };
      const asked = { ...said, shipmentId: record.id, heldBy: state.mapped?.by.key ?? "" };
      const { releaseId, before } = await claimRelease(redis, asked);
      if (before && isAccepted(before.outcome)) return released(releaseId, before);
      const release = { releaseId, action, redeliveryDate, askedAtMs };
      const unanswered = { ...release, outcome: null, message: null };
      await keepRelease(redis, asked, unanswered, "unknown");
      const { trackingNumber } = record;
      const answer = await carrier({ ...said, releaseId, courier: courier.code, trackingNumber });
      const known = { ...release, ...told(answer) };
      await keepRelease(redis, asked, known, meaningOf(answer));
      return released(releaseId, acceptedBy(answer));
    },
    { scope: "shipments:write", parse: "none" },
  );
}

interface Answered {
  readonly outcome: string | null;
  readonly message: string | null;
}

function released(releaseId: number, { outcome, message }: Answered) {
  return { status: "sent", courierOutcome: outcome, message, releaseId };
}

function told(answer: ReleaseAnswer): Answered {
  if (answer.kind === "accepted") return { outcome: answer.outcome, message: answer.message };
  return { outcome: answer.kind, message: answer.kind === "refused" ? answer.message : null };
}

/** "error" is an answer too, and the carrier may be asked again. */
function isAccepted(outcome: string | null): boolean {
  return outcome === "ok" || outcome === "pending";
}

/** What the answer says about the same request when it comes again. */
function meaningOf(answer: ReleaseAnswer): "unknown" | "accepted" | "refused" {
  if (answer.kind === "unreachable" || answer.kind === "unreadable") return "unknown";
  return answer.kind === "accepted" && isAccepted(answer.outcome) ? "accepted" : "refused";
}

/** @throws {Problem} 422 refused, 502 unavailable */
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

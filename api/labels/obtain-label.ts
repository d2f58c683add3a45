/** One label for (channel, carrier, reference), however many ask for it at once: the carrier is called once. */
import type { LabelRecord, LabelRequest, MadeLabel } from "#core/merchants/rules/label.ts";
import { parcelsOf, totalWeight } from "#core/merchants/rules/label.ts";
import {
  claimLabel,
  type LabelClaim,
  type LabelOwner,
  readLabelContents,
  readLabels,
  type Settlement,
  settleLabel,
} from "#core/merchants/store/labels.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { CarrierAnswer, LabelCarrier, LabelOrder } from "./label-carrier.ts";
import { type Failed, failed } from "./label-problem.ts";

/** Longer than two calls of the gateway and the making of 99 pages on a slow machine. */
const GONE_AFTER_MS = 60_000;
/** Waiting for somebody else's call; less than clients wait. */
export const WAIT_LIMIT_MS = 15_000;
const LOOK_EVERY_MS = 50;

export type Obtained =
  | {
      readonly kind: "label";
      readonly id: number;
      readonly record: LabelRecord;
      readonly labels: readonly string[];
      readonly isExisting: boolean;
    }
  | { readonly kind: "failed"; readonly failure: Failed }
  /** Somebody else's call has not ended yet. */
  | { readonly kind: "busy" };

export interface LabelCall {
  readonly owner: LabelOwner;
  readonly carrier: LabelCarrier;
  readonly order: Omit<LabelOrder, "id">;
  readonly nowMs: number;
}

export async function obtainLabel(redis: Redis, call: LabelCall): Promise<Obtained> {
  const { courier, reference } = call.order.request;
  const deadline = performance.now() + WAIT_LIMIT_MS;
  while (performance.now() < deadline) {
    const claim = await claimLabel(redis, call.owner, courier, reference, GONE_AFTER_MS);
    if (claim.kind === "made") {
      const existing = await readExisting(redis, call.owner, claim.id);
      if (existing) return existing;
    } else if (claim.kind !== "busy") {
      return useClaim(redis, call, claim);
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
  return { kind: "busy" };
}

async function readExisting(redis: Redis, owner: LabelOwner, id: number): Promise<Obtained | null> {
  const [[stored], labels] = await Promise.all([
    readLabels(redis, owner, [id]),
    readLabelContents(redis, owner, id),
  ]);
  if (!stored || stored.voidedAtMs !== null) return null;
  return { kind: "label", id, record: stored.record, labels, isExisting: true };
}

/** The claim ends with what came of it, also when that is an error of our own. */
async function useClaim(redis: Redis, call: LabelCall, claim: LabelClaim): Promise<Obtained> {
  const settle = (settlement: Settlement) => settleLabel(redis, call.owner, claim, settlement);
  let outcome: Outcome;
  try {
    outcome = await callCarrier(call, claim);
  } catch (error) {
    await settle({ kind: "unsure" });
    throw error;
  }
  const { answer, wasThere } = outcome;
  if (answer.kind !== "ok") {
    await settle({ kind: answer.kind === "away" && answer.called ? "unsure" : "free" });
    return { kind: "failed", failure: failed(answer) };
  }
  const record = recordOf(call, answer.value);
  const { labels } = answer.value;
  await settle({ kind: "made", record, labels });
  return { kind: "label", id: claim.id, record, labels, isExisting: wasThere };
}

interface Outcome {
  readonly answer: CarrierAnswer<MadeLabel>;
  /** An earlier call had made it. */
  readonly wasThere: boolean;
}

/** After a call that nobody heard the end of, the carrier is asked for its outcome before it is called again. */
async function callCarrier({ carrier, order }: LabelCall, claim: LabelClaim): Promise<Outcome> {
  const identified = { ...order, id: claim.id };
  if (claim.kind === "unsure") {
    const found = await carrier.recover(identified);
    if (found.kind === "away") return { answer: { ...found, called: true }, wasThere: false };
    if (found.kind === "ok" && found.value !== null) {
      return { answer: { kind: "ok", value: found.value }, wasThere: true };
    }
  }
  return { answer: await carrier.make(identified), wasThere: false };
}

function recordOf({ owner, order, nowMs }: LabelCall, made: MadeLabel): LabelRecord {
  const { request, format } = order;
  const { name, city, postcode, country } = request.consignee;
  return {
    channelId: owner.channelId,
    courier: request.courier,
    reference: request.reference,
    labelFormat: format,
    trackingNumbers: made.trackingNumbers,
    extShipmentId: made.extShipmentId,
    parcels: parcelsOf(request).length,
    weight: totalWeight(request),
    consignee: { name, city, postcode, country },
    createdAtMs: nowMs,
  };
}

/** The registry supplies the dimensions that a parcel does not give itself. */
export function withBoxes(
  request: LabelRequest,
  boxes: ReadonlyMap<string, { length: number; width: number; height: number }>,
): LabelRequest {
  if (!request.parcels) return request;
  const parcels = request.parcels.map((parcel) => {
    const box = parcel.boxCode === undefined ? undefined : boxes.get(parcel.boxCode);
    if (!box) return parcel;
    const { length, width, height } = box;
    return { length, width, height, ...parcel };
  });
  return { ...request, parcels };
}

/** Creates the items of one request, each on its own (document 1, `POST /v2/shipments`). */

import type { Channel, Configuration } from "#core/configuration/store/configuration.ts";
import { hasCompact } from "#core/events/store/compact-references.ts";
import { resolveReferences } from "#core/events/store/references.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { trackingReference } from "#core/platform/redis/keys.ts";
import {
  type CreationContext,
  capOf,
  type ItemError,
  type Preparation,
  prepareShipment,
} from "#core/shipments/rules/new-shipment.ts";
import type { ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { isTestCourier } from "#core/shipments/rules/test-parcel.ts";
import { newTrackingToken } from "#core/shipments/rules/tracking-link.ts";
import { createShipments, type NewShipment } from "./create-shipments.ts";
import { registerShipments } from "./register-shipments.ts";
import { testVariants } from "./test-variants.ts";

export interface CreateItemsDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly configuration: Configuration;
}

export type ItemOutcome =
  | { readonly kind: "created"; readonly id: number; readonly trackingToken: string | null }
  | { readonly kind: "rejected"; readonly errors: readonly ItemError[] };

function duplicate(existingId: number): ItemError {
  const message = "The channel has a shipment with this courier and tracking number.";
  return { code: "DUPLICATE_SHIPMENT", field: "trackingNumber", message, existingId };
}

const INTERNAL: ItemError = {
  code: "INTERNAL_ERROR",
  field: "",
  message: "The item could not be created because of an error on our side.",
};

/** Outcomes in the order of the items, which have passed their schema; events find the shipments from then on. */
export async function createItems(
  deps: CreateItemsDeps,
  channel: Channel,
  items: readonly ShipmentInput[],
  nowMs: number,
): Promise<ItemOutcome[]> {
  const { outcomes, register } = await beginItems(deps, channel, items, nowMs);
  await register();
  return outcomes;
}

export interface BegunItems {
  readonly outcomes: ItemOutcome[];
  /** Lets events find the shipments. Never rejects. */
  readonly register: () => Promise<void>;
}

/** The same, with the registration still to be done. */
export async function beginItems(
  { redis, log, configuration }: CreateItemsDeps,
  channel: Channel,
  items: readonly ShipmentInput[],
  nowMs: number,
): Promise<BegunItems> {
  const context = creationContext(configuration, channel);
  const prepared = items.map((item) =>
    withToken(prepareSafely(item, context, nowMs, log), channel.trackingPage),
  );
  const taken = await takenInArchive(
    redis,
    channel,
    prepared.flatMap((one) => (one.kind === "ready" ? [one.record] : [])),
  );
  const isTaken = ({ courier, trackingNumber }: NewShipment) =>
    taken.get(numberName(courier, trackingNumber));
  const ready = prepared.filter((one) => one.kind === "ready" && isTaken(one.record) === undefined);
  const created = await createShipments(
    redis,
    channel.companyId,
    ready.filter((one) => one.kind === "ready"),
  );
  const fresh = created.filter(({ isNew }) => isNew).map(({ id }) => id);
  let at = 0;
  const outcomes = prepared.map((one): ItemOutcome => {
    if (one.kind === "rejected") return one;
    const archivedId = isTaken(one.record);
    if (archivedId !== undefined) return { kind: "rejected", errors: [duplicate(archivedId)] };
    const { id, isNew } = created[at++] ?? { id: 0, isNew: false };
    if (!isNew) return { kind: "rejected", errors: [duplicate(id)] };
    return { kind: "created", id, trackingToken: one.record.trackingToken ?? null };
  });
  return { outcomes, register: () => register({ redis, log, configuration }, fresh) };
}

/**
 * Tracking numbers that archived shipments of the channel have. A shipment that is archived after this look has its number taken
 * in Redis for `NUMBER_TAKEN_MS` yet, far longer than a creation takes.
 * @returns ids by `numberName`
 */
async function takenInArchive(
  redis: Redis,
  channel: Channel,
  records: readonly NewShipment[],
): Promise<Map<string, number>> {
  const taken = new Map<string, number>();
  if (records.length === 0 || !(await hasCompact(redis))) return taken;
  const asked = records.map(({ courier, trackingNumber }) => ({
    name: numberName(courier, trackingNumber),
    reference: trackingReference(courier, trackingNumber),
  }));
  const candidates = await resolveReferences(
    redis,
    asked.map(({ reference }) => reference),
  );
  for (const { name, reference } of asked) {
    const owner = candidates
      .get(reference.key)
      ?.find(({ channelId, archived }) => channelId === channel.id && archived?.ownsNumber);
    if (owner) taken.set(name, owner.shipmentId);
  }
  return taken;
}

function numberName(courier: string, trackingNumber: string): string {
  return `${courier} ${trackingNumber}`;
}

/** Shipments of a channel with a tracking page get its token at creation. */
function withToken(prepared: Preparation, hasPage: boolean): Preparation {
  if (prepared.kind === "rejected" || !hasPage) return prepared;
  return { ...prepared, record: { ...prepared.record, trackingToken: newTrackingToken() } };
}

export function creationContext(configuration: Configuration, channel: Channel): CreationContext {
  const company = configuration.companies.get(channel.companyId);
  const seat = company?.seatPostcode ? { postcode: company.seatPostcode } : null;
  const { couriers } = configuration;
  const isTest = channel.testOf !== null;
  return {
    companyId: channel.companyId,
    channelId: channel.id,
    couriers: isTest ? onlyTests(couriers) : couriers,
    variants: isTest ? testVariants(channel, couriers) : channel.couriers,
    platforms: configuration.platforms,
    boxes: company?.boxes ?? new Map(),
    originCap: capOf(channel.sender?.postcode === undefined ? seat : channel.sender),
  };
}

function onlyTests<T>(couriers: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map([...couriers].filter(([code]) => isTestCourier(code)));
}

/** A bug that one item brings to light does not take the others with it. */
function prepareSafely(
  item: ShipmentInput,
  context: CreationContext,
  nowMs: number,
  log: Log,
): Preparation {
  try {
    return prepareShipment(item, context, nowMs);
  } catch (error) {
    log.error({ err: error }, "an item could not be prepared");
    return { kind: "rejected", errors: [INTERNAL] };
  }
}

/** The shipments exist already: what fails here is repeated from the change log. */
async function register(
  { redis, log, configuration }: CreateItemsDeps,
  ids: readonly number[],
): Promise<void> {
  try {
    await registerShipments(redis, configuration, ids);
  } catch (error) {
    log.warn({ reason: (error as Error).message }, "registration deferred to the change log");
  }
}

/** What the store has about shipments: themselves, their places in indices and references, their webhooks. Reads only. */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import { referencesOf, resolveReferences } from "#core/events/store/references.ts";
import { binary, type Redis } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  indexMember,
  numberKeys,
  shipmentPartition,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import { orderReferencesOf, shipDay } from "#core/shipments/rules/shipment.ts";
import {
  BYTES_PER_ROW,
  DAY_SHIFT,
  decodeRow,
  MANY_OF_ONE_VALUE,
  ROWS_PER_BLOCK,
} from "#core/shipments/store/columns.ts";
import { exactValues } from "#core/shipments/store/create-shipments.ts";
import type { HotShipment, StoredShipment } from "#core/shipments/store/shipments.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import type { DecidedVerdict } from "#core/verify/rules/compare.ts";
import { type Difference, differencesOf, type Expectation } from "#core/verify/rules/compare.ts";
import {
  DELIVERY_LIFE_MS,
  deliveryIdOf,
  type KeptDecision,
  readDecisions,
  readDeliveries,
} from "#core/webhooks/store/deliveries/deliveries.ts";

const SEARCH =
  "document 1, search: every shipment by id, ship date, statusUpdatedAt and exact values";
const MATCHING =
  "document 2: an event finds its shipment by tracking number, or externalId and senderAccount";

/** A shipment as it is stored. */
export interface Kept {
  readonly from: HotShipment;
  readonly shipment: StoredShipment;
}

/** Its members of the indices, its row, its exact values, and its tracking number on its channel. */
export async function compareIndices(
  redis: Redis,
  { from, shipment }: Kept,
): Promise<Difference[]> {
  const { id, meta, state, updated, rank } = from;
  const keys = companyKeys(shipmentPartition(id));
  const { channelId, courier, trackingNumber } = meta;
  const member = indexMember(id);
  const blockKey = keys.block(channelId, Math.floor(rank / ROWS_PER_BLOCK));
  const at = (rank % ROWS_PER_BLOCK) * BYTES_PER_ROW;
  const day = shipDay(meta.shipDate);
  const [inIds, shipped, updatedAt, row, values, owner] = await Promise.all([
    redis.zScore(keys.index(channelId, "id"), member),
    redis.zScore(keys.index(channelId, "ship"), member),
    redis.zScore(keys.index(channelId, "upd"), member),
    binary(redis).getRange(blockKey, at, at + BYTES_PER_ROW - 1) as unknown as Promise<Buffer>,
    exactDifferences(redis, { from, shipment }),
    numberOwner(redis, channelId, trackingNumber, courier, id),
  ]);
  const found = row.length === BYTES_PER_ROW ? decodeRow(row, 0) : null;
  const status = STATUSES.indexOf(state.pair.status);
  return [
    ...differencesOf(id, [
      ["index.id", inIds !== null, true, SEARCH],
      ["index.ship", shipped, day, SEARCH],
      ["index.upd", updatedAt, updated, SEARCH],
      ["index.row", found, { id, updated, shipped: day + DAY_SHIFT, status }, SEARCH],
      [
        "index.number",
        owner,
        id,
        "document 1: DUPLICATE_SHIPMENT by channel, courier and tracking number",
      ],
    ]),
    ...values,
  ];
}

async function exactDifferences(redis: Redis, { from, shipment }: Kept): Promise<Difference[]> {
  const { id, meta, rank } = from;
  const keys = companyKeys(shipmentPartition(id));
  const expectations = await Promise.all(
    exactValues(shipment.record).map(async ([field, value]): Promise<Expectation[]> => {
      const set = keys.exact(meta.channelId, field, value);
      const [isMember, size] = await Promise.all([
        redis.sIsMember(set, String(id)),
        redis.sCard(set),
      ]);
      const found: Expectation = [`index.${field}`, Boolean(isMember), true, SEARCH];
      if (size < MANY_OF_ONE_VALUE) return [found];
      const bit = await redis.getBit(keys.exactBits(meta.channelId, field, value), rank);
      return [found, [`index.${field}.bit`, bit, 1, SEARCH]];
    }),
  );
  return differencesOf(id, expectations.flat());
}

async function numberOwner(
  redis: Redis,
  channelId: number,
  trackingNumber: string,
  courier: string,
  shipmentId: number,
): Promise<number | null> {
  const names = numberKeys(companyKeys(shipmentPartition(shipmentId)), channelId, trackingNumber);
  const owners = await Promise.all(names.map((name) => redis.hGet(name, courier)));
  const ids = owners.flatMap((owner) => (owner ? [Number(owner)] : []));
  return ids.includes(shipmentId) ? shipmentId : (ids[0] ?? null);
}

/** The references under which courier events find shipments, wherever these are. */
export async function compareReferences(
  redis: Redis,
  { channels }: Pick<Configuration, "channels">,
  shipments: readonly Pick<HotShipment, "id" | "meta" | "state">[],
): Promise<Difference[]> {
  // Before its references are registered nothing finds a new shipment.
  const registered = shipments.filter(({ state }) => state.pair.status !== "WAITING_TO_COMPUTE");
  const wanted = registered.flatMap(({ id, meta, state }) => {
    const accounts = channels.get(meta.channelId)?.couriers.get(meta.courier)?.senderAccounts ?? [];
    const { trackingNumber, parcelNumbers = [] } = meta;
    const numbers = [...new Set([trackingNumber, ...parcelNumbers, ...state.aliases])];
    const byNumber = referencesOf(meta.courier, numbers, [], []).map((reference, at) => {
      return { id, meta, reference, what: `reference.number.${numbers[at]}` };
    });
    const orders = orderReferencesOf(meta);
    const byOrder = referencesOf(meta.courier, [], accounts, orders).map((reference) => {
      return { id, meta, reference, what: "reference.externalId" };
    });
    return [...byNumber, ...byOrder];
  });
  const found = await resolveReferences(
    redis,
    wanted.map(({ reference }) => reference),
  );
  return wanted.flatMap(({ id, meta, reference, what }) => {
    const candidates = found.get(reference.key) ?? [];
    const own = candidates.filter(({ companyId }) => companyId === meta.companyId);
    // The latest ten of a company stay, and the latest hundred of all.
    if (own.length >= OF_A_COMPANY || candidates.length >= OF_ALL) return [];
    const ids = candidates.map(({ shipmentId }) => shipmentId);
    return ids.includes(id)
      ? []
      : [{ shipmentId: id, what, found: ids, expected: [...ids, id], rule: MATCHING }];
  });
}

const OF_A_COMPANY = 10;
const OF_ALL = 100;

/** Verdicts of the last 30 days with their deliveries, and the places of these in the endpoints' lists. */
export async function readVerdicts(
  redis: Redis,
  shipmentId: number,
  nowMs: number,
): Promise<{
  readonly verdicts: readonly DecidedVerdict[];
  readonly lists: readonly Difference[];
}> {
  const partition = shipmentPartition(shipmentId);
  const decisions = (await readDecisions(redis, shipmentId)).filter(
    // One that is about to expire may lack its delivery a moment later.
    ({ atMs }) => atMs + DELIVERY_LIFE_MS - MARGIN_MS > nowMs,
  );
  const wanted = decisions.flatMap(verdictsOf);
  const ids = wanted.map(({ endpointId, eventId }) => deliveryIdOf(partition, endpointId, eventId));
  const read = await readDeliveries(redis, ids, nowMs);
  const deliveries = new Map(read.map((delivery) => [delivery.deliveryId, delivery]));
  const verdicts = wanted.map(({ factKey, endpointId, verdict }, at): DecidedVerdict => {
    const delivery = deliveries.get(ids[at] ?? "") ?? null;
    const own = delivery && { ...delivery, factKey: delivery.fact.key };
    return { factKey, endpointId, verdict, delivery: own };
  });
  const lists = await Promise.all(
    read.map(async ({ endpointId, deliveryId, state, createdAtMs, nextAttemptAtMs }) => {
      const { log, failed, retries } = webhookKeys(partition);
      const [logged, failure, due] = await Promise.all([
        redis.zScore(log(endpointId), deliveryId),
        redis.zScore(failed(endpointId), deliveryId),
        redis.zScore(retries(endpointId), deliveryId),
      ]);
      const what = `webhook.${endpointId}.${deliveryId}`;
      return differencesOf(shipmentId, [
        [`${what}.logged`, logged, createdAtMs, "design: the delivery log, by creation"],
        [
          `${what}.failed`,
          failure !== null,
          state === "failed",
          "document 3: what has failed stays replayable",
        ],
        [
          `${what}.due`,
          due,
          state === "waiting" ? nextAttemptAtMs : null,
          "document 3: retry schedule",
        ],
      ]);
    }),
  );
  return { verdicts, lists: lists.flat() };
}

const MARGIN_MS = 3_600_000;

function verdictsOf({ eventId, factKey, verdicts }: KeptDecision) {
  return verdicts.map(([endpointId, verdict]) => ({ eventId, factKey, endpointId, verdict }));
}

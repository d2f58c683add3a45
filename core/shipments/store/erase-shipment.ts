/** Erases the recipient of a shipment from its own hash, and from the values it is found by. */

import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys, shipmentPartition } from "#core/platform/redis/keys.ts";
import { erasedFact, erasedRecord } from "#core/shipments/rules/erase.ts";
import { refold } from "#core/shipments/rules/refold.ts";
import { orderReferencesOf, type ShipmentRecord } from "#core/shipments/rules/shipment.ts";
import { commitShipments, readHotHistories, readShipments } from "./shipments.ts";

/** Rounds of reading and committing again when a courier event got ahead. */
const ROUNDS = 20;
const CUSTOM = ["custom1", "custom2", "custom3"] as const;

export interface ErasedShipment {
  readonly record: ShipmentRecord;
  /** Every tracking number it is known by. */
  readonly numbers: readonly string[];
  /** Every order reference that it has had. */
  readonly orderReferences: readonly string[];
  /** Before this call. */
  readonly wasErased: boolean;
}

/**
 * One commit, with the version checked, so that no fold that began before it brings anything back; repeating it changes
 * nothing more. What couriers send later is folded without its personal data (`ShipmentMeta.isErased`).
 * @returns what is left; null if there is no such shipment
 */
export async function eraseShipment(redis: Redis, id: number): Promise<ErasedShipment | null> {
  for (let round = 0; round < ROUNDS; round += 1) {
    const [[stored], [hot]] = await Promise.all([
      readShipments(redis, [id]),
      readHotHistories(redis, [id]),
    ]);
    if (!stored || !hot) return null;
    const { record, state } = stored;
    await forgetValues(redis, record, hot.from.rank);
    const { from, history } = hot;
    const meta = { ...from.meta, isErased: true } as const;
    const facts = history.map(erasedFact);
    const nothing = { proof: null, pickupPoint: null, actionUrl: null };
    const base = from.base && { ...from.base, ...nothing };
    const { id: _, ...erased } = erasedRecord(record);
    const commit = {
      from: { ...from, meta },
      state: refold(from.state, facts, base).state,
      facts,
      replaced: history,
      record: erased,
      changes: [],
      stamp: false,
      ...(base && { base }),
    };
    const [outcome] = await commitShipments(redis, [commit], 0);
    if (outcome !== "committed") continue;
    const { trackingNumber, parcelNumbers = [] } = meta;
    const numbers = [trackingNumber, ...parcelNumbers, ...state.aliases];
    const orderReferences = orderReferencesOf(meta);
    const wasErased = from.meta.isErased === true;
    return { record: { id, ...erased }, numbers, orderReferences, wasErased };
  }
  throw new Error("the shipment kept changing while it was erased");
}

/** The names of these keys hold the values. */
async function forgetValues(
  redis: Redis,
  { id, channelId, customAttributes = {} }: ShipmentRecord,
  rank: number,
): Promise<void> {
  const { exact, exactBits } = companyKeys(shipmentPartition(id));
  for (const field of CUSTOM) {
    const value = customAttributes[field];
    if (!value) continue;
    const ids = exact(channelId, field, value);
    await redis.sRem(ids, String(id));
    const bits = exactBits(channelId, field, value);
    // A bitmap stays when its set has lost its last member, and its name is the value.
    if ((await redis.exists(ids)) === 0) await redis.del(bits);
    else if ((await redis.exists(bits)) === 1) await redis.setBit(bits, rank, 0);
  }
}

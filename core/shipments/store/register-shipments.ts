/**
 * Registers created shipments: makes them findable by courier events, then moves them from WAITING_TO_COMPUTE to
 * PENDING. Done in the request that creates and repeated from the change log; repeating it changes nothing.
 */

import type { Configuration } from "#core/configuration/store/configuration.ts";
import {
  candidateOf,
  type Registration,
  referencesOf,
  registerReferences,
} from "#core/events/store/references.ts";
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run, script } from "#core/platform/redis/client.ts";
import { companyKeys, logCountsKey, shipmentPartition } from "#core/platform/redis/keys.ts";
import { announce } from "#core/platform/redis/wake.ts";
import { orderReferencesOf } from "#core/shipments/rules/shipment.ts";
import askReleaseSource from "./ask-release.lua" with { type: "text" };
import {
  commitShipments,
  type HotShipment,
  readHotShipments,
  SHIPMENTS_PER_CALL,
} from "./shipments.ts";

const askReleaseScript = script(askReleaseSource);

/** Rounds of reading and committing again when a courier event got ahead. */
const ROUNDS = 10;

/**
 * @returns those that may have had an event before all of their references were registered
 * @throws when a shipment was still being changed by others in the last round; the next repetition finishes it
 */
export async function registerShipments(
  redis: Redis,
  configuration: Configuration,
  ids: readonly number[],
): Promise<number[]> {
  const hot = await readHotShipments(redis, ids);
  // PENDING comes after registration only. Any other status may come from an event that one reference let in.
  const unregistered = [...hot.values()].filter(({ state }) => state.pair.status !== "PENDING");
  const early = [...hot.values()].filter(
    (one) => unregistered.includes(one) || one.state.keys.length > 0,
  );
  if (unregistered.length === 0) return early.map(({ id }) => id);
  await registerReferences(
    redis,
    unregistered.flatMap((shipment) => registrationsOf(shipment, configuration)),
  );
  await commitPending(redis, unregistered);
  return early.map(({ id }) => id);
}

/**
 * Makes shipments findable again after their references were removed. Events that were parked meanwhile are released by whoever
 * repeats registrations from the change log.
 */
export async function registerAgain(
  redis: Redis,
  configuration: Configuration,
  ids: readonly number[],
): Promise<void> {
  const hot = [...(await readHotShipments(redis, ids)).values()];
  const registrations = hot.flatMap((shipment) => registrationsOf(shipment, configuration));
  await registerReferences(redis, registrations);
  const groups = Map.groupBy(hot, ({ id }) => shipmentPartition(id));
  await perPartition(groups, async (partition, group) => {
    const { changes } = companyKeys(partition);
    for (const part of chunks(group, SHIPMENTS_PER_CALL)) {
      const args = part.flatMap(({ id, meta }) => [String(id), JSON.stringify(meta)]);
      await run<number>(redis, askReleaseScript, [changes, logCountsKey(changes)], args);
      announce(redis, "change");
    }
  });
}

function registrationsOf(
  { id, meta, state }: HotShipment,
  { channels }: Configuration,
): Registration[] {
  const { channelId, courier, trackingNumber, parcelNumbers = [] } = meta;
  const accounts = channels.get(channelId)?.couriers.get(courier)?.senderAccounts ?? [];
  const numbers = [...new Set([trackingNumber, ...parcelNumbers, ...state.aliases])];
  const candidate = candidateOf(id, meta);
  return referencesOf(courier, numbers, accounts, orderReferencesOf(meta)).map((reference) => ({
    ...candidate,
    reference,
  }));
}

async function commitPending(redis: Redis, shipments: readonly HotShipment[]): Promise<void> {
  let waiting = shipments.filter(isWaiting);
  for (let round = 0; round < ROUNDS && waiting.length > 0; round += 1) {
    const commits = waiting.map((from) => ({
      from,
      state: { ...from.state, pair: { status: "PENDING", detail: 0 } as const },
      facts: [],
      changes: [],
      stamp: false,
    }));
    // Nothing is stamped, so the clock does not count.
    const outcomes = await commitShipments(redis, commits, 0);
    const conflicts = waiting.filter((_, at) => outcomes[at] === "conflict").map(({ id }) => id);
    waiting =
      conflicts.length === 0
        ? []
        : [...(await readHotShipments(redis, conflicts)).values()].filter(isWaiting);
  }
  if (waiting.length > 0) throw new Error("shipments kept changing while they were registered");
}

function isWaiting({ state }: HotShipment): boolean {
  return state.pair.status === "WAITING_TO_COMPUTE";
}

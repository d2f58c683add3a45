/**
 * What expected delivery is computed from, as the analytics counted it: one hash for each courier, a field for each destination CAP. A
 * read of a shipment needs one field and no question to ClickHouse.
 */

import {
  isStage,
  type Stage,
  type Stay,
  type StayCell,
} from "#core/benchmarks/rules/expected-delivery.ts";
import type { Grain } from "#core/benchmarks/rules/lane.ts";
import { GRAINS } from "#core/benchmarks/rules/lane.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { stayCellsKeys } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** About 1 to 3 kB each. Italy has 4,600 CAPs. */
export const LANES_OF_COURIER = limit(
  5_000,
  "destination CAPs of a courier with statistics of expected delivery",
  "shipments to others have no expected delivery",
);
/** Fields written at once, so that no command holds Redis long. */
const BATCH = 100;
/** A courier that nobody uses any more leaves nothing behind. */
const KEPT_MS = 14 * 86_400_000;
const AS_OF = "asOf";

/** A cell with the origin and the weight that it is about; empty where its grain has none. */
export interface OwnedCell extends StayCell {
  readonly origin: string;
  readonly band: string;
}

export interface StayLane {
  readonly destCap: string;
  readonly cells: readonly OwnedCell[];
}

/** Grain by its place in `GRAINS`, origin, weight band, stage, stays in a row. */
type PackedCell = readonly [number, string, string, Stage, readonly number[]];

export interface KnownStays {
  readonly asOfMs: number;
  readonly cells: readonly OwnedCell[];
}

/** Replaces what is known of a courier in one step. @param lanes those after the limit are left out */
export async function writeStayCells(
  redis: Redis,
  courier: string,
  lanes: readonly StayLane[],
  asOfMs: number,
): Promise<void> {
  const { current, next } = stayCellsKeys(courier);
  await redis.unlink(next);
  await redis.hSet(next, AS_OF, String(asOfMs));
  const kept = lanes.slice(0, LANES_OF_COURIER);
  for (let from = 0; from < kept.length; from += BATCH) {
    const batch = kept.slice(from, from + BATCH);
    await redis.hSet(
      next,
      batch.flatMap(({ destCap, cells }) => [destCap, pack(cells)] as const),
    );
  }
  await redis.multi().rename(next, current).pExpire(current, KEPT_MS).exec();
}

/** @returns null before the courier's deliveries were counted */
export async function readStayCells(
  redis: Redis,
  courier: string,
  destCap: string,
): Promise<KnownStays | null> {
  const [asOf, packed] = await redis.hmGet(stayCellsKeys(courier).current, [AS_OF, destCap]);
  if (!asOf) return null;
  return { asOfMs: Number(asOf), cells: packed ? unpack(packed) : [] };
}

function pack(cells: readonly OwnedCell[]): string {
  return JSON.stringify(
    cells.map(
      ({ grain, origin, band, stage, stays }): PackedCell => [
        GRAINS.indexOf(grain),
        origin,
        band,
        stage,
        stays.flat(),
      ],
    ),
  );
}

function unpack(text: string): OwnedCell[] {
  const cells = JSON.parse(text) as PackedCell[];
  return cells.flatMap(([place, origin, band, stage, flat]): OwnedCell[] => {
    const grain: Grain | undefined = GRAINS[place];
    if (grain === undefined || !isStage(stage)) return [];
    return [{ grain, origin, band, stage, stays: staysOf(flat) }];
  });
}

function staysOf(flat: readonly number[]): Stay[] {
  const stays: Stay[] = [];
  for (let at = 0; at + 2 < flat.length; at += 3) {
    stays.push([flat[at] ?? 0, flat[at + 1] ?? 0, flat[at + 2] ?? 0]);
  }
  return stays;
}

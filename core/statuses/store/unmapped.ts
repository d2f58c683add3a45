/** Codes that no catalogue maps, as commits have counted them. */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  shipmentPartition,
  unmappedName,
} from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import forgetUnmappedSource from "./forget-unmapped.lua" with { type: "text" };

const forgetUnmappedScript = script(forgetUnmappedSource);

export interface UnmappedCode {
  readonly courier: string;
  readonly code: string;
  /** As the courier sent it last. */
  readonly description: string;
  readonly events: number;
  readonly shipments: number;
  /** Our clock, UTC milliseconds. */
  readonly firstSeenMs: number;
  readonly lastSeenMs: number;
}

/** Every unmapped code, summed over the partitions, the most shipments first. */
export async function readUnmappedCodes(redis: Redis): Promise<UnmappedCode[]> {
  const perPartition = await Promise.all(partitionsOf("k").map((n) => readPartition(redis, n)));
  const byName = Map.groupBy(perPartition.flat(), ({ courier, code }) =>
    unmappedName(courier, code),
  );
  const sums = [...byName.values()].map((parts) => parts.reduce(joined));
  return sums.sort(
    (one, other) =>
      other.shipments - one.shipments ||
      other.events - one.events ||
      (unmappedName(one.courier, one.code) < unmappedName(other.courier, other.code) ? -1 : 1),
  );
}

async function readPartition(redis: Redis, partition: number): Promise<UnmappedCode[]> {
  const keys = companyKeys(partition);
  const names = await redis.sMembers(keys.unmappedCodes);
  return Promise.all(
    names.map(async (name) => {
      const [courier = "", code = ""] = splitName(name);
      const [counts, shipments] = await Promise.all([
        redis.hGetAll(keys.unmapped(courier, code)),
        redis.zCard(keys.unmappedShipments(courier, code)),
      ]);
      return {
        courier,
        code,
        description: counts["description"] ?? "",
        events: Math.max(0, Number(counts["events"] ?? 0)),
        shipments,
        firstSeenMs: Number(counts["first"] ?? 0),
        lastSeenMs: Number(counts["last"] ?? 0),
      };
    }),
  );
}

/** Whether any code of a company's partition is unmapped. */
export async function hasUnmapped(redis: Redis, companyId: number): Promise<boolean> {
  return (await redis.exists(companyKeys(companyPartition(companyId)).unmappedCodes)) === 1;
}

/** Drops a shipment that is removed for good from the lists of these codes of its courier. */
export async function forgetUnmapped(
  redis: Redis,
  shipmentId: number,
  courier: string,
  codes: readonly string[],
): Promise<void> {
  if (codes.length === 0) return;
  const keys = companyKeys(shipmentPartition(shipmentId));
  const lists = codes.flatMap((code) => [
    keys.unmapped(courier, code),
    keys.unmappedShipments(courier, code),
  ]);
  const names = codes.map((code) => unmappedName(courier, code));
  const args = [String(shipmentId), ...names];
  await run<number>(redis, forgetUnmappedScript, [keys.unmappedCodes, ...lists], args);
}

function splitName(name: string): [courier: string, code: string] {
  const at = name.indexOf(":");
  return [name.slice(0, at), name.slice(at + 1)];
}

function joined(one: UnmappedCode, other: UnmappedCode): UnmappedCode {
  return {
    ...(other.lastSeenMs > one.lastSeenMs ? other : one),
    events: one.events + other.events,
    shipments: one.shipments + other.shipments,
    firstSeenMs: Math.min(one.firstSeenMs, other.firstSeenMs),
    lastSeenMs: Math.max(one.lastSeenMs, other.lastSeenMs),
  };
}

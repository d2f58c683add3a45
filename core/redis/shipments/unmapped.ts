/** Codes that no catalogue maps, as commits have counted them. */
import type { Redis } from "#core/redis/client/client.ts";
import { companyKeys, PARTITIONS, unmappedName } from "#core/redis/client/keys.ts";

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

/** Every unmapped code, summed over the partitions, the most events first. */
export async function readUnmappedCodes(redis: Redis): Promise<UnmappedCode[]> {
  const perPartition = await Promise.all(
    Array.from({ length: PARTITIONS }, (_, n) => readPartition(redis, n)),
  );
  const byName = Map.groupBy(perPartition.flat(), ({ courier, code }) =>
    unmappedName(courier, code),
  );
  const sums = [...byName.values()].map((parts) => parts.reduce(joined));
  return sums.sort((one, other) => other.events - one.events || (one.code < other.code ? -1 : 1));
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

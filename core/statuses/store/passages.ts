/** What happened to parcels before and after a code that no catalogue maps. */
import { compareFacts, type Fact } from "#core/events/rules/fact.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { companyKeys } from "#core/platform/redis/keys.ts";
import { partitionsOf } from "#core/platform/redis/partitions.ts";
import { readHotHistories } from "#core/shipments/store/shipments.ts";
import type { Passage } from "#core/statuses/rules/suggest-mapping.ts";

/** @param limit of parcels: the oldest ones, which have the most behind them; archived ones are left out */
export async function readPassages(
  redis: Redis,
  courier: string,
  code: string,
  limit: number,
): Promise<Passage[]> {
  const perPartition = await Promise.all(
    partitionsOf("k").map((n) =>
      redis.zRange(companyKeys(n).unmappedShipments(courier, code), 0, limit - 1),
    ),
  );
  const ids = perPartition.flat().slice(0, limit).map(Number);
  const histories = await readHotHistories(redis, ids);
  return histories.flatMap(({ history }) => passageOf(history, code) ?? []);
}

function passageOf(history: readonly Fact[], code: string): Passage | null {
  const facts = history.toSorted((one, other) => compareFacts(orderOf(one), orderOf(other)));
  const at = facts.findIndex(({ event, mapping }) => !mapping && event.status.code === code);
  if (at === -1) return null;
  const pairs = (part: readonly Fact[]) => part.flatMap(({ mapping }) => mapping ?? []);
  return { before: pairs(facts.slice(0, at)).at(-1) ?? null, after: pairs(facts.slice(at + 1)) };
}

function orderOf({ mapping, ...fact }: Fact) {
  return { ...fact, terminal: mapping?.terminal ?? false };
}

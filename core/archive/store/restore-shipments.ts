/** Brings shipments back from the archive. */
import { chunks } from "#core/platform/process/chunks.ts";
import { perPartition, type Redis, run } from "#core/platform/redis/client.ts";
import { type DeclaredKeys, declaredKeys } from "#core/platform/redis/declared-keys.ts";
import { companyKeys, companyPartition, indexMember } from "#core/platform/redis/keys.ts";
import { type ListItem, packList } from "#core/platform/redis/packed-list.ts";
import { idDigits } from "#core/platform/redis/partitions.ts";
import { scriptOfParts } from "#core/platform/redis/script-parts.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { shipDay } from "#core/shipments/rules/shipment.ts";
import {
  DAY_SHIFT,
  encodeRow,
  MANY_OF_ONE_VALUE,
  ROWS_PER_BLOCK,
} from "#core/shipments/store/columns.ts";
import exactPart from "#core/shipments/store/parts/exact-values.lua" with { type: "text" };
import rowLog from "#core/shipments/store/parts/row-log.lua" with { type: "text" };
import { decodeFactsText, encodeFacts } from "#core/shipments/store/shipment-codec.ts";
import { STATUSES } from "#core/statuses/rules/status.ts";
import type { LeavingFacts, ShipmentFacts, WholeShipment } from "./archived-shipment.ts";
import { placesOfChannel, placesOfNumbers, placesOfValues, updatedOf } from "./remove-shipments.ts";
import restoreSource from "./restore.lua" with { type: "text" };

const restoreScript = scriptOfParts(restoreSource, {
  "row-log": rowLog,
  "exact-values": exactPart,
});

/** About 2 ms of Redis. */
const RESTORED_PER_CALL = limit(50, "archived shipments brought back by one call", "the next call");

/** A shipment as it was read from a row of the archive. */
export interface ArchivedShipment {
  readonly companyId: number;
  readonly batch: number;
  readonly whole: WholeShipment;
  readonly facts: ShipmentFacts;
}

/** What its return needs. */
type Returning = Omit<ArchivedShipment, "facts"> & { readonly facts: LeavingFacts };

/**
 * One script call for each company (and 50 shipments).
 * @returns ids of those that were restored; the rows of the others counted no more
 */
export async function restoreShipments(
  redis: Redis,
  shipments: readonly Returning[],
): Promise<number[]> {
  const restored: number[] = [];
  const groups = Map.groupBy(shipments, ({ companyId }) => companyId);
  await perPartition(groups, async (companyId, group) => {
    for (const part of chunks(group, RESTORED_PER_CALL)) {
      const reply = await restorePart(redis, companyId, part);
      part.forEach(({ whole: { id } }, at) => {
        if (reply[at] === 1) restored.push(id);
      });
    }
  });
  return restored;
}

type Names = ReturnType<typeof companyKeys>;

function restorePart(
  redis: Redis,
  companyId: number,
  shipments: readonly Returning[],
): Promise<number[]> {
  const names = companyKeys(companyPartition(companyId));
  const { archived, absentRows, absentBatches } = names;
  const common = [archived(companyId), absentRows(companyId), absentBatches(companyId)];
  const keys = declaredKeys(common);
  const channelIds = [...new Set(shipments.map(({ facts }) => facts.shipment.record.channelId))];
  const items: ListItem[] = [channelIds.length, shipments.length];
  for (const id of channelIds) items.push(String(id), placesOfChannel(keys, names, id));
  for (const one of shipments) addRestored(items, keys, names, one, channelIds);
  const limits = [ROWS_PER_BLOCK, MANY_OF_ONE_VALUE].map(String);
  const args = [...limits, packList(items), String(idDigits())];
  return run<number[]>(redis, restoreScript, keys.declared, args);
}

function addRestored(
  items: ListItem[],
  keys: DeclaredKeys,
  names: Names,
  { whole, batch, facts }: Returning,
  channelIds: readonly number[],
): void {
  const { id, messages, releases, topics, numbers } = whole;
  const { record, state } = facts.shipment;
  const { channelId, courier, shipDate } = record;
  const [status, day] = [STATUSES.indexOf(state.pair.status), shipDay(shipDate)];
  const updated = updatedOf(facts);
  const fields = withNextVersion(whole.fields);
  const sets = placesOfValues(keys, names, record);
  const owned = placesOfNumbers(keys, names, record, numbers);
  items.push(
    ...[String(id), indexMember(id), String(batch), channelIds.indexOf(channelId) + 1],
    keys.declareRun(
      ...[names.shipment(id), names.notifications(id), names.releases(id), names.topics(id)],
    ),
    keys.declare(names.block(channelId, Math.floor(facts.rank / ROWS_PER_BLOCK))),
    ...[facts.rank, encodeRow({ id, updated, shipped: day + DAY_SHIFT, status })],
    ...[status, updated, day, fields.length / 2, messages.length, releases.length / 2],
    ...[topics.length / 2, sets.length, owned.length],
    ...[...fields, ...messages, ...releases, ...topics, ...sets],
    ...owned.flatMap((place) => [place, courier]),
  );
}

/** Packed, with a version that its row in the archive has not: nobody who read it before commits to it. */
function withNextVersion(fields: readonly Buffer[]): (Buffer | string)[] {
  return fields.map((value, at) => {
    if (at % 2 === 0) return value;
    if (String(fields[at - 1]) !== "v") return encodeFacts(decodeFactsText(value));
    const [version, ...others] = String(value).split(" ");
    return Buffer.from([Number(version) + 1, ...others].join(" "));
  });
}

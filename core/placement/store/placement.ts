/** Where the partitions of a cluster are, where they should be, and what has to move for that. */
import { planPlacement, weigh } from "#core/placement/rules/plan.ts";
import { type Redis, replicaTermsOf } from "#core/platform/redis/client.ts";
import { attemptLogs, changeLogs, eventLogs } from "#core/platform/redis/keys.ts";
import {
  type ClusterNode,
  hasSlot,
  type Link,
  type Links,
  SLOTS,
} from "#core/platform/redis/nodes/cluster-nodes.ts";
import { onlineReplicasIn } from "#core/platform/redis/replica-waits.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { SlotMove } from "./move-slots.ts";
import { type PartitionLoad, readPartitionLoads, sizeOf, slotsOfTags } from "./partition-load.ts";

export interface PlacedPartition extends PartitionLoad {
  readonly slot: number;
  /** Id of its master. */
  readonly from: string;
  readonly to: string;
  /** Share of what all partitions take. */
  readonly weight: number;
}

export interface PlacementPlan {
  readonly masters: readonly ClusterNode[];
  /** Those that are to have nothing. */
  readonly emptied: readonly ClusterNode[];
  readonly partitions: readonly PlacedPartition[];
  /** Slots of emptied masters that hold no partition. */
  readonly plainMoves: readonly SlotMove[];
}

/** A log that is larger would hold up both nodes for seconds while it goes over in one piece. */
export const LARGEST_LOG_BYTES = limit(
  268_435_456,
  "a log of a partition that is to move",
  "refused",
);
/** Of the memory that a target may use, after the move. */
export const MEMORY_SHARE = 0.9;
/** Slots that change places together: those without a partition have few keys or none. */
export const PLAIN_SLOTS_PER_BATCH = limit(
  100,
  "slots without a partition that move together",
  "the next batch",
);

/**
 * @param count masters that are to hold partitions; the others are emptied, those that carry least first
 * @throws when a node does not answer, or a partition has no master
 */
export async function planSlots(
  redis: Redis,
  { links }: Links,
  count: number,
): Promise<PlacementPlan> {
  const [loads, slots] = await Promise.all([readPartitionLoads(redis), slotsOfTags(redis)]);
  const masters = links.map(({ node }) => node).filter(({ isMaster }) => isMaster);
  // Where all slots tell their CPU time, that is what their calls cost.
  const hasTimes = loads.every(({ cpuMicroseconds }) => cpuMicroseconds !== null);
  const weights = weigh(
    loads.map(({ tag, bytes, calls, cpuMicroseconds }) => ({
      tag,
      bytes,
      calls: hasTimes ? (cpuMicroseconds ?? 0) : calls,
    })),
  );
  const placed = loads.map((load) => {
    const slot = slots.get(load.tag) ?? -1;
    const master = masters.find((node) => hasSlot(node, slot));
    if (!master) throw new Error(`slot ${slot} of ${load.tag} has no master`);
    return { ...load, slot, from: master.id, weight: weights.get(load.tag) ?? 0 };
  });
  const carried = ({ id }: ClusterNode) =>
    placed.filter(({ from }) => from === id).reduce((sum, { weight }) => sum + weight, 0);
  const sorted = masters.toSorted((a, b) => carried(b) - carried(a));
  const kept = sorted.slice(0, count);
  const emptied = sorted.slice(count);
  const keptIds = kept.map(({ id }) => id);
  const moves = planPlacement(
    placed.map(({ tag, from, weight }) => ({ tag, master: from, weight })),
    keptIds,
  );
  const targets = new Map(moves.map(({ tag, to }) => [tag, to]));
  const ours = new Set(slots.values());
  return {
    masters,
    emptied,
    partitions: placed.map((one) => ({ ...one, to: targets.get(one.tag) ?? one.from })),
    plainMoves: plainMoves(emptied, keptIds, ours),
  };
}

/** In runs, one master after the other. */
function plainMoves(
  emptied: readonly ClusterNode[],
  kept: readonly string[],
  ours: ReadonlySet<number>,
): SlotMove[] {
  const all = Array.from({ length: SLOTS }, (_, slot) => slot);
  return emptied.flatMap((node) => {
    const own = all.filter((slot) => hasSlot(node, slot) && !ours.has(slot));
    const perMaster = Math.ceil(own.length / kept.length);
    return own.map((slot, at) => ({
      slot,
      from: node.id,
      to: kept[Math.floor(at / perMaster)] ?? "",
    }));
  });
}

/** Partitions one by one, then the other slots of a source and a target together. */
export function batchesOfMoves({ partitions, plainMoves: plain }: PlacementPlan): SlotMove[][] {
  const ours = partitions
    .filter(({ from, to }) => from !== to)
    .toSorted((a, b) => a.to.localeCompare(b.to))
    .map(({ slot, from, to }) => [{ slot, from, to }]);
  const batches: SlotMove[][] = [];
  for (const move of plain) {
    const last = batches.at(-1);
    const isSame = last?.[0]?.from === move.from && last[0].to === move.to;
    if (last && isSame && last.length < PLAIN_SLOTS_PER_BATCH) last.push(move);
    else batches.push([move]);
  }
  return [...ours, ...batches];
}

/** @returns why no slot may be moved, in sentences; none = it may begin */
export async function refusals(
  redis: Redis,
  cluster: Links,
  plan: PlacementPlan,
): Promise<string[]> {
  const { partitions } = plan;
  const moving = partitions.filter(({ from, to }) => from !== to);
  const targets = new Set([...moving, ...plan.plainMoves].map(({ to }) => to));
  const masters = cluster.links.filter(({ node }) => node.isMaster);
  const versions = new Set(await Promise.all(masters.map(versionOf)));
  const perTarget = await Promise.all(
    masters
      .filter(({ node }) => targets.has(node.id))
      .map((link) => faultsOfTarget(link, moving, replicaTermsOf(redis).wanted)),
  );
  const logs = await Promise.all(moving.map((one) => faultOfLogs(masters, one)));
  return [
    ...(versions.size > 1
      ? [`the masters run different versions of Redis: ${[...versions].join(", ")}`]
      : []),
    ...perTarget.flat(),
    ...logs.flat(),
  ];
}

/** @returns why slots of this cluster must not be moved at all */
export function clusterFaults({ links, silent }: Links): string[] {
  const failing = links.filter(({ node }) => node.isFailing).map(({ node }) => node.place);
  const unreachable = [...silent.map(({ place }) => place), ...failing];
  const covered = links
    .filter(({ node }) => node.isMaster)
    .flatMap(({ node }) => node.slots)
    .reduce((sum, [from, to]) => sum + to - from + 1, 0);
  return [
    ...unreachable.map(
      (place) => `the node ${place} does not answer: bring it back or remove it first`,
    ),
    ...(covered < SLOTS ? [`${SLOTS - covered} slots have no master`] : []),
  ];
}

async function versionOf({ send }: Link): Promise<string> {
  const info = String(await send("INFO", "server"));
  const [, version = "unknown"] = /^(?:valkey|redis)_version:(\d+\.\d+)/m.exec(info) ?? [];
  return version;
}

async function faultsOfTarget(
  { node, send }: Link,
  moving: readonly PlacedPartition[],
  wanted: number,
): Promise<string[]> {
  const [memory, replication] = [
    String(await send("INFO", "memory")),
    String(await send("INFO", "replication")),
  ];
  const field = (name: string) => Number(new RegExp(`^${name}:(\\d+)`, "m").exec(memory)?.[1]);
  const online = onlineReplicasIn(replication);
  const sum = (list: readonly PlacedPartition[]) =>
    list.reduce((total, { bytes }) => total + bytes, 0);
  const coming = sum(moving.filter(({ to }) => to === node.id));
  const most = field("maxmemory");
  const isFull = most > 0 && field("used_memory") + coming > MEMORY_SHARE * most;
  return [
    ...(online < wanted
      ? [`${node.place} has ${online} of the ${wanted} replicas that REDIS_WAIT_REPLICAS asks for`]
      : []),
    ...(isFull ? [`${node.place} has no room for ${coming} more bytes (maxmemory ${most})`] : []),
  ];
}

async function faultOfLogs(
  masters: readonly Link[],
  { tag, from }: PlacedPartition,
): Promise<string[]> {
  const source = masters.find(({ node }) => node.id === from);
  if (!source) return [];
  const logs = [...eventLogs(), ...changeLogs(), ...attemptLogs()].filter((key) =>
    key.startsWith(tag),
  );
  const sizes = await Promise.all(logs.map((key) => sizeOf(source.send, key)));
  const largest = Math.max(0, ...sizes);
  return largest > LARGEST_LOG_BYTES
    ? [`a log of ${tag} has ${largest} bytes: wait until its backlog is processed`]
    : [];
}

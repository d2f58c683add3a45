/** `waybill slots` lists the partitions, or plans and moves which masters of a cluster have them while the product runs. */

import { readStoreConfig } from "#cli/store-config.ts";
import { loadPartitioning } from "#core/configuration/store/partitioning.ts";
import {
  finishMove,
  MOVE_COMMAND_LIMIT_MS,
  moveBatch,
  openMoves,
  releaseFailover,
} from "#core/placement/store/move-slots.ts";
import { readKnownLoads } from "#core/placement/store/partition-load.ts";
import {
  batchesOfMoves,
  clusterFaults,
  type PlacementPlan,
  planSlots,
  refusals,
} from "#core/placement/store/placement.ts";
import {
  command,
  JSON_OPTION,
  numberOption,
  WrongUsage,
} from "#core/platform/process/command-line.ts";
import { commandLog } from "#core/platform/process/log.ts";
import { isCluster, type Redis } from "#core/platform/redis/client.ts";
import { partitionTags, SLOTS_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { type Lock, takeLock } from "#core/platform/redis/lock.ts";
import { type Links, linkNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import { isStoreUnavailable } from "#core/platform/redis/store-unavailable.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { openStore, Refused } from "#core/runtime/runtime.ts";
import { columns, megabytes, percent } from "./columns.ts";

/** An interrupted run holds up the next one for so long. */
const LEASE_MS = 10_000;
const LOCK_WAIT_MS = 12_000;
const LOCK = { leaseMs: LEASE_MS, waitLimitMs: 0, hasQueue: false } as const;
const LOOK_EVERY_MS = 100;

type Say = (line: string) => void;

/** Bytes, calls and CPU are given as numbers, null where a shard does not answer; a partition without a master has none. */
async function list(redis: Redis) {
  const partitions = await readKnownLoads(redis);
  const rows = partitions.map(({ tag, bytes, calls, cpuMicroseconds, master }) => [
    tag,
    bytes === null ? "-" : megabytes(bytes),
    calls === null ? "-" : calls.toLocaleString("en"),
    cpuMicroseconds === null ? "-" : `${(cpuMicroseconds / 1e6).toFixed(1)} s`,
    master ?? (isCluster(redis) ? "none" : "the one server"),
  ]);
  const head = ["partition", "memory", "calls since yesterday", "CPU", "master"];
  const away = new Set(
    partitions.filter(({ bytes }) => bytes === null).map(({ master }) => master ?? "a master"),
  );
  const missing = [
    ...[...away].map((place) => `${place} does not answer: what its partitions take is unknown.`),
    ...(partitions.some(({ calls }) => calls === null)
      ? ["The shard that counts the calls does not answer."]
      : []),
  ];
  const text = [columns([head, ...rows]), ...missing].join("\n");
  return { value: partitions, text, isWhole: missing.length === 0 };
}

function placeIn({ masters }: PlacementPlan, id: string): string {
  return masters.find((node) => node.id === id)?.place ?? id;
}

function planText(plan: PlacementPlan): string {
  const { masters, emptied, partitions, plainMoves } = plan;
  const share = (id: string, end: "from" | "to") =>
    partitions.filter((one) => one[end] === id).reduce((sum, { weight }) => sum + weight, 0);
  const count = (id: string, end: "from" | "to") =>
    String(partitions.filter((one) => one[end] === id).length);
  const rows = masters.map(({ id, place }) => [
    place,
    ...[count(id, "from"), percent(share(id, "from"))],
    ...[count(id, "to"), percent(share(id, "to"))],
    emptied.some((node) => node.id === id) ? "is emptied" : "",
  ]);
  const moves = partitions.filter(({ from, to }) => from !== to);
  return [
    columns([["master", "partitions", "share", "then", "share", ""], ...rows]),
    ...moves.map(
      ({ tag, slot, bytes, from, to }) =>
        `${tag} slot ${slot}, ${megabytes(bytes)}: ${placeIn(plan, from)} -> ${placeIn(plan, to)}`,
    ),
    ...(plainMoves.length === 0
      ? []
      : [`and ${counted(plainMoves.length, "slot")} without a partition, from emptied masters`]),
  ].join("\n");
}

/** The plan as JSON has it. */
function planValue(plan: PlacementPlan) {
  return {
    partitions: plan.partitions.map(({ tag, slot, bytes, weight, from, to }) => ({
      tag,
      slot,
      bytes,
      weight,
      from: placeIn(plan, from),
      to: placeIn(plan, to),
    })),
    emptied: plan.emptied.map(({ place }) => place),
    otherSlots: plan.plainMoves.length,
  };
}

/** @throws {Refused} with all that keeps slots from being moved */
function refuse(reasons: readonly string[]): void {
  if (reasons.length > 0) throw new Refused(`No slot was moved:\n  ${reasons.join("\n  ")}`);
}

/** @throws {Refused} */
async function lockMoves(redis: Redis): Promise<Lock> {
  const untilMs = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    const lock = await patiently(redis, () => takeLock(redis, SLOTS_LOCK_KEY, LOCK));
    if (lock !== null) return lock;
    if (performance.now() >= untilMs) throw new Refused("Another process is moving slots.");
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** The slot of what is asked for may be on its way itself. */
async function patiently<T>(redis: Redis, work: () => Promise<T>): Promise<T> {
  const untilMs = performance.now() + LOCK_WAIT_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isStoreUnavailable(error, redis) || performance.now() >= untilMs) throw error;
      await Bun.sleep(LOOK_EVERY_MS);
    }
  }
}

/** @param lock null = only tell of them */
async function finishOpen(
  redis: Redis,
  cluster: Links,
  { lock, say }: Pick<Task, "lock" | "say">,
): Promise<void> {
  const open = await openMoves(cluster);
  const slots = open.map(({ slot }) => slot).join(", ");
  if (lock === null) {
    if (open.length > 0) say(`Between two masters: ${slots}. --apply finishes them.`);
    return;
  }
  if (open.length > 0) {
    refuse(clusterFaults(cluster));
    say(`Finishing what an interrupted run has left between two masters: ${slots}`);
  }
  for (const move of open) {
    await patiently(redis, lock.assertHeld);
    await finishMove(cluster, move);
  }
  await releaseFailover(cluster);
}

/** @returns how many slots were moved */
async function apply(
  redis: Redis,
  cluster: Links,
  { plan, lock, say }: { readonly plan: PlacementPlan; readonly lock: Lock; readonly say: Say },
): Promise<number> {
  let moved = 0;
  for (const batch of batchesOfMoves(plan)) {
    await patiently(redis, lock.assertHeld);
    const beganMs = performance.now();
    await moveBatch(cluster, batch);
    moved += batch.length;
    const [first] = batch;
    const tag = plan.partitions.find(({ slot }) => slot === first?.slot)?.tag ?? "";
    const what = batch.length === 1 ? `slot ${first?.slot} ${tag}` : `${batch.length} slots`;
    say(`moved ${what} in ${Math.round(performance.now() - beganMs)} ms`);
  }
  return moved;
}

async function withLinks<T>(redis: Redis, work: (cluster: Links) => Promise<T>): Promise<T> {
  const cluster = await linkNodes(redis, MOVE_COMMAND_LIMIT_MS);
  try {
    return await work(cluster);
  } finally {
    cluster.close();
  }
}

async function place(redis: Redis, count: number, isApplied: boolean, say: Say) {
  if (!isCluster(redis)) {
    throw new Refused("One server has all partitions: REDIS_CLUSTER_URLS names no cluster.");
  }
  if (count > partitionTags().length) {
    throw new Refused(`${partitionTags().length} partitions cannot be on more masters than that.`);
  }
  const lock = isApplied ? await lockMoves(redis) : null;
  try {
    await withLinks(redis, (cluster) => finishOpen(redis, cluster, { lock, say }));
    // Asked again: what was finished has changed hands.
    return await withLinks(redis, (cluster) => planAndApply(redis, cluster, { count, lock, say }));
  } finally {
    await lock?.release();
  }
}

interface Task {
  readonly count: number;
  readonly lock: Lock | null;
  readonly say: Say;
}

async function planAndApply(redis: Redis, cluster: Links, { count, lock, say }: Task) {
  refuse(clusterFaults(cluster));
  const masters = cluster.links.filter(({ node }) => node.isMaster).length;
  if (count > masters) {
    const advice = "add others first (redis-cli --cluster add-node)";
    throw new Refused(`The cluster has ${counted(masters, "master")}: ${advice}.`);
  }
  const plan = await patiently(redis, () => planSlots(redis, cluster, count));
  const value = { ...planValue(plan), moved: 0 };
  say(planText(plan));
  if (batchesOfMoves(plan).length === 0) return { value, text: "Nothing to move." };
  refuse(await refusals(redis, cluster, plan));
  if (!lock) return { value, text: "Nothing was moved: --apply does it." };
  const startMs = performance.now();
  const moved = await apply(redis, cluster, { plan, lock, say });
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  return { value: { ...value, moved }, text: `${counted(moved, "slot")} moved in ${seconds} s.` };
}

export const slots = command({
  name: "waybill slots",
  forms: ["[--masters N [--apply]] [--json]"],
  about: `Lists the partitions with their memory, calls and master. Exit status 1: a shard does not answer and is missing in the list, or
nothing can be moved.`,
  options: {
    masters: {
      type: "string",
      value: "N",
      about:
        "plans a placement on N masters by the load of the partitions, and prints it; the other masters are emptied",
    },
    apply: {
      type: "boolean",
      about: "moves the slots while the product runs, and finishes an interrupted run",
    },
    json: JSON_OPTION,
  },
  async run({ values: { masters, apply: isApplied = false }, env, say, report }) {
    const count = masters === undefined ? null : numberOption("masters", masters);
    if (isApplied && count === null) throw new WrongUsage("--apply needs --masters.");
    const store = await openStore(await readStoreConfig(env, say), commandLog());
    try {
      // Not what an earlier version had: which partitions there are must be known.
      await loadPartitioning(store.redis);
      if (count === null) {
        const { value, text, isWhole } = await list(store.redis);
        report(value, text);
        return isWhole ? 0 : 1;
      }
      const { value, text } = await place(store.redis, count, isApplied, say);
      report(value, text);
      return 0;
    } finally {
      await store.close();
    }
  },
});

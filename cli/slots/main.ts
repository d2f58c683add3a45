/**
 * `bun run slots` lists the partitions, what each takes and where it is. With `--masters N` it plans which masters of a cluster should
 * have which of them, and `--apply` moves the slots while the product runs. Exit status 0 = done or nothing to do, 1 = refused.
 */
import { parseArgs } from "node:util";
import {
  finishMove,
  MOVE_COMMAND_LIMIT_MS,
  moveBatch,
  openMoves,
  releaseFailover,
} from "#core/placement/store/move-slots.ts";
import { readPartitionLoads } from "#core/placement/store/partition-load.ts";
import {
  batchesOfMoves,
  clusterFaults,
  type PlacementPlan,
  planSlots,
  refusals,
} from "#core/placement/store/placement.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { isCluster, type Redis } from "#core/platform/redis/client.ts";
import { PARTITION_TAGS, SLOTS_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { type Lock, takeLock } from "#core/platform/redis/lock.ts";
import { type Links, linkNodes } from "#core/platform/redis/nodes/cluster-nodes.ts";
import { counted } from "#core/platform/schema/counted.ts";
import { guarded, openStore, Refused } from "#core/runtime/runtime.ts";
import { columns, megabytes, percent } from "./columns.ts";

const USAGE = `usage: bun run slots [--masters N [--apply]]

(none)     the partitions, what each takes, and its master
--masters  plans a placement on N masters by what the partitions take; the other masters are emptied
--apply    moves the slots, and finishes those that an interrupted run has left between two masters`;
/** An interrupted run holds up the next one for so long. */
const LEASE_MS = 10_000;
const LOCK_WAIT_MS = 12_000;

interface Task {
  /** Null = list the partitions. */
  readonly masters: number | null;
  readonly isApplied: boolean;
}

/** @throws {Refused} */
function taskOf(args: string[]): Task {
  try {
    const options = {
      masters: { type: "string" },
      apply: { type: "boolean", default: false },
    } as const;
    const { values } = parseArgs({ args, options });
    const masters = values.masters === undefined ? null : Number(values.masters);
    const isNumber = masters === null || (Number.isInteger(masters) && masters >= 1);
    if (isNumber && !(values.apply && masters === null)) {
      return { masters, isApplied: values.apply };
    }
  } catch {
    // What is unknown is refused like what is missing.
  }
  throw new Refused(USAGE);
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

async function list(redis: Redis): Promise<void> {
  const loads = await readPartitionLoads(redis);
  const rows = loads.map(({ tag, bytes, calls, cpuMicroseconds, master }) => [
    tag,
    megabytes(bytes),
    calls.toLocaleString("en"),
    cpuMicroseconds === null ? "-" : `${(cpuMicroseconds / 1e6).toFixed(1)} s`,
    master ?? (isCluster(redis) ? "none" : "the one server"),
  ]);
  print(columns([["partition", "memory", "calls since yesterday", "CPU", "master"], ...rows]));
}

function printPlan({ masters, emptied, partitions, plainMoves }: PlacementPlan): void {
  const placeOf = (id: string) => masters.find((node) => node.id === id)?.place ?? id;
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
  print(columns([["master", "partitions", "share", "then", "share", ""], ...rows]));
  for (const { tag, slot, from, to, bytes } of partitions) {
    if (from === to) continue;
    print(`${tag} slot ${slot}, ${megabytes(bytes)}: ${placeOf(from)} -> ${placeOf(to)}`);
  }
  if (plainMoves.length > 0) {
    print(`and ${counted(plainMoves.length, "slot")} without a partition, from emptied masters`);
  }
}

/** @throws {Refused} with all that keeps slots from being moved */
function refuse(reasons: readonly string[]): void {
  if (reasons.length > 0) throw new Refused(`No slot was moved:\n  ${reasons.join("\n  ")}`);
}

/** @throws {Refused} */
async function lockMoves(redis: Redis): Promise<Lock> {
  const lock = await takeLock(redis, SLOTS_LOCK_KEY, {
    leaseMs: LEASE_MS,
    waitLimitMs: LOCK_WAIT_MS,
  });
  if (lock === null) throw new Refused("Another process is moving slots.");
  return lock;
}

/** @param lock null = only tell of them */
async function finishOpen(cluster: Links, lock: Lock | null): Promise<void> {
  const open = await openMoves(cluster);
  const slots = open.map(({ slot }) => slot).join(", ");
  if (lock === null) {
    if (open.length > 0) print(`Between two masters: ${slots}. --apply finishes them.`);
    return;
  }
  if (open.length > 0) {
    refuse(clusterFaults(cluster));
    print(`Finishing what an interrupted run has left between two masters: ${slots}`);
  }
  for (const move of open) {
    await lock.assertHeld();
    await finishMove(cluster, move);
  }
  await releaseFailover(cluster);
}

async function apply(cluster: Links, plan: PlacementPlan, lock: Lock): Promise<void> {
  const startMs = performance.now();
  let moved = 0;
  for (const batch of batchesOfMoves(plan)) {
    await lock.assertHeld();
    const beganMs = performance.now();
    await moveBatch(cluster, batch);
    moved += batch.length;
    const [first] = batch;
    const tag = plan.partitions.find(({ slot }) => slot === first?.slot)?.tag ?? "";
    const what = batch.length === 1 ? `slot ${first?.slot} ${tag}` : `${batch.length} slots`;
    print(`moved ${what} in ${Math.round(performance.now() - beganMs)} ms`);
  }
  print(
    `${counted(moved, "slot")} moved in ${((performance.now() - startMs) / 1_000).toFixed(1)} s.`,
  );
}

async function withLinks<T>(redis: Redis, work: (cluster: Links) => Promise<T>): Promise<T> {
  const cluster = await linkNodes(redis, MOVE_COMMAND_LIMIT_MS);
  try {
    return await work(cluster);
  } finally {
    cluster.close();
  }
}

async function place(redis: Redis, count: number, isApplied: boolean): Promise<void> {
  if (!isCluster(redis)) {
    throw new Refused("One server has all partitions: REDIS_CLUSTER_URLS names no cluster.");
  }
  if (count > PARTITION_TAGS.length) {
    throw new Refused(`${PARTITION_TAGS.length} partitions cannot be on more masters than that.`);
  }
  const lock = isApplied ? await lockMoves(redis) : null;
  try {
    await withLinks(redis, (cluster) => finishOpen(cluster, lock));
    // Asked again: what was finished has changed hands.
    await withLinks(redis, (cluster) => planAndApply(redis, cluster, count, lock));
  } finally {
    await lock?.release();
  }
}

async function planAndApply(
  redis: Redis,
  cluster: Links,
  count: number,
  lock: Lock | null,
): Promise<void> {
  refuse(clusterFaults(cluster));
  const masters = cluster.links.filter(({ node }) => node.isMaster).length;
  if (count > masters) {
    const advice = "add others first (redis-cli --cluster add-node)";
    throw new Refused(`The cluster has ${counted(masters, "master")}: ${advice}.`);
  }
  const plan = await planSlots(redis, cluster, count);
  printPlan(plan);
  if (batchesOfMoves(plan).length === 0) {
    print("Nothing to move.");
    return;
  }
  refuse(await refusals(redis, cluster, plan));
  if (lock) await apply(cluster, plan, lock);
  else print("Nothing was moved: --apply does it.");
}

async function run(config: Config, { masters, isApplied }: Task): Promise<void> {
  const store = await openStore(config, createLog("warn"));
  try {
    if (masters === null) await list(store.redis);
    else await place(store.redis, masters, isApplied);
  } finally {
    await store.close();
  }
}

await guarded(async () => {
  const task = taskOf(process.argv.slice(2));
  await run(readConfig(process.env), task);
});

/**
 * Moves slots from one master to another while the cluster serves. A slot is first open at both ends: the source answers for keys that
 * it has, the target for all others, and a call whose keys are at both is refused (`TRYAGAIN`) and repeated. Then its keys go over in
 * batches, and the slot is the target's. Whatever ends this process leaves slots open, which the next run finds and finishes.
 *
 * Replicas do not know of open slots: one that took over in the middle would answer for keys that are elsewhere. So the replicas of
 * both ends are held back from taking over while a slot is open, and released once they have what was moved.
 */
import {
  type ClusterNode,
  hasSlot,
  type Link,
  type Links,
  parseNodes,
} from "#core/platform/redis/nodes/cluster-nodes.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { sizeOf } from "./partition-load.ts";

export interface SlotMove {
  readonly slot: number;
  /** Ids of masters. */
  readonly from: string;
  readonly to: string;
}

/** How long `MIGRATE` may take, and so the largest key. */
export const MIGRATE_LIMIT_MS = limit(
  30_000,
  "a key on its way to another master",
  "the slot stays open, and the next run finishes it",
);
/** Of a command to a node. */
export const MOVE_COMMAND_LIMIT_MS = 2 * MIGRATE_LIMIT_MS;
/** Keys asked for at once; both nodes serve nobody else while keys of so many bytes go over. */
export const KEYS_PER_BATCH = limit(
  100,
  "keys that a move of slots asks for at once",
  "the next batch",
);
export const BATCH_BYTES = limit(
  1_048_576,
  "bytes that a move of slots sends at once",
  "the next batch; a larger key goes alone",
);
/** Others are served in between. */
const GAP_MS = 2;
const LOOK_EVERY_MS = 50;
/** For replicas to catch up, and for all nodes to hear of a new master. */
const SETTLE_LIMIT_MS = 60_000;

/** Something that keeps a move from going on; slots may be open. */
export class MoveInterrupted extends Error {}

/** Slots of one source and one target. @throws {MoveInterrupted} and what a node answers; both leave slots open */
export async function moveBatch(cluster: Links, moves: readonly SlotMove[]): Promise<void> {
  const [first] = moves;
  if (!first) return;
  const [source, target] = [linkOf(cluster, first.from), linkOf(cluster, first.to)];
  const held = replicasOf(cluster, [first.from, first.to]);
  await holdFailover(held, "yes");
  await setAll(target, moves, "IMPORTING", first.from);
  await setAll(source, moves, "MIGRATING", first.to);
  for (const { slot } of moves) await drain(cluster, source, target, slot);
  await caughtUp(target, held);
  await caughtUp(source, held);
  await handOver(cluster, moves);
  await holdFailover(held, "no");
}

async function setAll(link: Link, moves: readonly SlotMove[], ...what: string[]): Promise<void> {
  await Promise.all(
    moves.map(({ slot }) => link.send("CLUSTER", "SETSLOT", String(slot), ...what)),
  );
}

/** The target first: from then on it answers for the slot. Returns when every node knows. */
async function handOver(cluster: Links, moves: readonly SlotMove[]): Promise<void> {
  const [first] = moves;
  if (!first) return;
  const [source, target] = [linkOf(cluster, first.from), linkOf(cluster, first.to)];
  const others = cluster.links.filter(
    ({ node }) => node.isMaster && node !== source.node && node !== target.node,
  );
  await setAll(target, moves, "NODE", first.to);
  for (const link of [source, ...others]) {
    // A master that has lost its last slot has become a replica already, and knows.
    await setAll(link, moves, "NODE", first.to).catch(unlessReplica);
  }
  await agree(cluster, moves);
}

function unlessReplica(error: Error): void {
  if (!error.message.includes("only with masters")) throw error;
}

/** The source has to be empty before its slot may be given away: it deletes what it still has. */
async function drain(
  { credentials }: Links,
  source: Link,
  target: Link,
  slot: number,
): Promise<void> {
  const { ip, port } = target.node;
  const place = [ip, String(port), "", "0", String(MIGRATE_LIMIT_MS), "REPLACE", ...credentials];
  for (;;) {
    const many = String(KEYS_PER_BATCH);
    const keys = (await source.send("CLUSTER", "GETKEYSINSLOT", String(slot), many)) as string[];
    if (keys.length === 0) return;
    const sizes = await Promise.all(keys.map((key) => sizeOf(source.send, key)));
    const sized = keys.map((key, at) => ({ key: String(key), size: sizes[at] ?? 0 }));
    for (const batch of batchesOf(sized)) {
      // A key that has expired meanwhile is nothing to move.
      await source.send("MIGRATE", ...place, "KEYS", ...batch);
      await Bun.sleep(GAP_MS);
    }
  }
}

/** A key that is larger than a batch goes alone. */
export function batchesOf(
  keys: readonly { readonly key: string; readonly size: number }[],
): string[][] {
  const batches: string[][] = [];
  let capacity = 0;
  for (const { key, size } of keys) {
    const last = batches.at(-1);
    if (last && size <= capacity) {
      last.push(key);
      capacity -= size;
    } else {
      batches.push([key]);
      capacity = BATCH_BYTES - size;
    }
  }
  return batches;
}

function linkOf({ links }: Links, id: string): Link {
  const link = links.find(({ node }) => node.id === id);
  if (!link) throw new MoveInterrupted(`the node ${id} does not answer`);
  return link;
}

function replicasOf({ links }: Links, masters: readonly string[]): Link[] {
  return links.filter(({ node }) => !node.isMaster && masters.includes(node.masterId));
}

async function holdFailover(replicas: readonly Link[], held: "yes" | "no"): Promise<void> {
  await Promise.all(
    replicas.map(({ send }) => send("CONFIG", "SET", "cluster-replica-no-failover", held)),
  );
}

/** The replicas of a master have all that it has now. */
async function caughtUp(master: Link, replicas: readonly Link[]): Promise<void> {
  const own = replicas.filter(({ node }) => node.masterId === master.node.id);
  const offsetOf = async ({ send }: Link, field: string) =>
    Number(
      new RegExp(`^${field}:(\\d+)`, "m").exec(String(await send("INFO", "replication")))?.[1],
    );
  const wanted = await offsetOf(master, "master_repl_offset");
  await until(async () => {
    const offsets = await Promise.all(own.map((link) => offsetOf(link, "slave_repl_offset")));
    return offsets.every((offset) => offset >= wanted);
  }, `the replicas of ${master.node.place} have not caught up`);
}

/** Until then a node may redirect clients back, and a later move may be given the same epoch as this one and be undone by it. */
async function agree({ links }: Links, moves: readonly SlotMove[]): Promise<void> {
  const [first] = moves;
  await until(async () => {
    const all = await Promise.all(links.map((link) => viewOf(link).catch(unlessLoading)));
    const views = all.filter((nodes) => nodes !== null);
    const epochs = new Set(views.map((nodes) => nodes.find(({ id }) => id === first?.to)?.epoch));
    const isKnown = (nodes: readonly ClusterNode[]) =>
      moves.every(({ slot, to }) => nodes.some((node) => node.id === to && hasSlot(node, slot)));
    return epochs.size === 1 && views.every(isKnown);
  }, "the nodes do not agree on the new masters");
}

/** A master that has lost its last slot loads the data of the one it follows, and answers nobody meanwhile. */
function unlessLoading(error: Error): null {
  if (!error.message.startsWith("LOADING")) throw error;
  return null;
}

async function viewOf({ node, send }: Link): Promise<ClusterNode[]> {
  return parseNodes(String(await send("CLUSTER", "NODES")), node.ip);
}

async function until(isDone: () => Promise<boolean>, otherwise: string): Promise<void> {
  const untilMs = performance.now() + SETTLE_LIMIT_MS;
  while (!(await isDone())) {
    if (performance.now() >= untilMs) throw new MoveInterrupted(otherwise);
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

/** Slots that an earlier move left open, as the masters themselves say. Their source is the master that answers for them. */
export async function openMoves({ links }: Links): Promise<SlotMove[]> {
  const masters = links.filter(({ node }) => node.isMaster);
  const own = await Promise.all(
    masters.map(async (link) => (await viewOf(link)).find(({ id }) => id === link.node.id)),
  );
  const nodes = own.filter((node) => node !== undefined);
  const ownerOf = (slot: number) =>
    nodes.filter((node) => hasSlot(node, slot)).toSorted((a, b) => b.epoch - a.epoch)[0]?.id;
  const moves = new Map<number, SlotMove>();
  for (const { id, open } of nodes) {
    for (const { slot, way, other } of open) {
      const [from, to] = way === "migrating" ? [id, other] : [other, id];
      if (way === "importing" && moves.has(slot)) continue;
      moves.set(slot, { slot, from: ownerOf(slot) ?? from, to });
    }
  }
  return [...moves.values()];
}

/** Finishes a slot that was left open. */
export async function finishMove(cluster: Links, move: SlotMove): Promise<void> {
  if (move.from !== move.to) {
    await moveBatch(cluster, [move]);
    return;
  }
  // The target has the slot already; the other masters may not know.
  await handOver(cluster, [move]);
}

/** Replicas that an interrupted move has left held back; an operator may have made a master of one since. */
export async function releaseFailover(cluster: Links): Promise<void> {
  await holdFailover(cluster.links, "no");
}

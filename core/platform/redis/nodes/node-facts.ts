/** What every node of Redis says of itself, for the settings doctor. */
import { isCluster, mastersOf, type Redis } from "#core/platform/redis/client.ts";
import { onlineReplicasIn } from "#core/platform/redis/replica-waits.ts";
import { type Link, linkNodes, parseNodes, SLOTS } from "./cluster-nodes.ts";

export interface NodeFacts {
  /** `host:port`; empty for the one server. */
  readonly place: string;
  /** Null = it does not tell. */
  readonly version: string | null;
  readonly settings: Readonly<Record<string, string>>;
  /** Its clock less ours. */
  readonly aheadMs: number;
  /** Other nodes do not reach it, or it does not consider the cluster to be serving. */
  readonly isFailing: boolean;
  /** It is the master of slots, or the only server. */
  readonly hasSlots: boolean;
  /** Connected and sent everything. */
  readonly onlineReplicas: number;
}

export interface RedisFacts {
  readonly nodes: readonly NodeFacts[];
  /** `host:port` of nodes that do not answer. */
  readonly silent: readonly string[];
  /** Slots without a master in reach. */
  readonly uncovered: readonly number[];
  /** Slots between two masters. */
  readonly open: readonly number[];
}

const ASK_LIMIT_MS = 5_000;

/**
 * @param settings names for `CONFIG GET`
 * @throws when no server answers
 */
export async function readRedisFacts(
  redis: Redis,
  settings: readonly string[],
): Promise<RedisFacts> {
  if (!isCluster(redis)) {
    const [server = redis] = mastersOf(redis);
    const send = (...command: string[]) => server.sendCommand(command);
    const facts = await readFacts(send, settings);
    return {
      nodes: [{ ...facts, place: "", isFailing: false, hasSlots: true }],
      silent: [],
      uncovered: [],
      open: [],
    };
  }
  const { links, silent, close } = await linkNodes(redis, ASK_LIMIT_MS);
  try {
    const read = await Promise.all(links.map((link) => readNode(link, settings)));
    const quiet = links.filter((_, at) => read[at] === null).map(({ node }) => node.place);
    return {
      nodes: read.filter((node) => node !== null),
      silent: [...silent.map(({ place }) => place), ...quiet],
      uncovered: uncoveredSlots(links),
      open: await openSlots(links),
    };
  } finally {
    close();
  }
}

/** Null = it does not answer. */
async function readNode(
  { node, send }: Link,
  settings: readonly string[],
): Promise<NodeFacts | null> {
  try {
    const facts = await readFacts(send, settings);
    const { place, isFailing, isMaster, slots } = node;
    return { ...facts, place, isFailing, hasSlots: isMaster && slots.length > 0 };
  } catch {
    return null;
  }
}

type Send = Link["send"];

/** @throws when it does not answer; what it refuses is missing */
async function readFacts(send: Send, settings: readonly string[]) {
  const beforeMs = Date.now();
  const time = (await send("TIME").catch(orRefused([]))) as unknown[];
  const middleMs = (beforeMs + Date.now()) / 2;
  const [seconds = 0, micros = 0] = time.map(Number);
  const info = String(await send("INFO", "everything").catch(orRefused("")));
  const values = await Promise.all(
    settings.map((name) => send("CONFIG", "GET", name).catch(orRefused([]))),
  );
  const versionOf = (server: string) =>
    new RegExp(`^${server}_version:(\\S+)`, "m").exec(info)?.[1];
  const valkey = versionOf("valkey");
  return {
    version: valkey === undefined ? (versionOf("redis") ?? null) : `Valkey ${valkey}`,
    settings: Object.fromEntries(values.flatMap(pairsOf)),
    aheadMs: Math.round(seconds * 1_000 + micros / 1_000 - middleMs),
    onlineReplicas: onlineReplicasIn(info),
  };
}

/** A server that answers with an error may refuse this command alone; anything else is no answer. */
function orRefused<T>(instead: T) {
  return (error: unknown): T => {
    if (error instanceof Error && /^(ERR|NOPERM|NOAUTH)\b/.test(error.message)) return instead;
    throw error;
  };
}

/** A list of two, or a map. */
function pairsOf(reply: unknown): [string, string][] {
  if (Array.isArray(reply)) return reply.length === 0 ? [] : [[String(reply[0]), String(reply[1])]];
  return Object.entries(reply as object).map(([name, value]) => [name, String(value)]);
}

function uncoveredSlots(links: readonly Link[]): number[] {
  const covered = new Set<number>();
  for (const { node } of links) {
    if (!node.isMaster || node.isFailing) continue;
    for (const [from, to] of node.slots) for (let at = from; at <= to; at += 1) covered.add(at);
  }
  return Array.from({ length: SLOTS }, (_, slot) => slot).filter((slot) => !covered.has(slot));
}

/** Only the two nodes at the ends of a move know of it. */
async function openSlots(links: readonly Link[]): Promise<number[]> {
  const masters = links.filter(({ node }) => node.isMaster);
  const views = await Promise.all(
    masters.map(async ({ node, send }) =>
      parseNodes(String(await send("CLUSTER", "NODES").catch(() => "")), node.ip),
    ),
  );
  const slots = views.flat().flatMap(({ open }) => open.map(({ slot }) => slot));
  return [...new Set(slots)].toSorted((a, b) => a - b);
}

/** The Redis client of every role, one server or a cluster, and the way scripts are run through it. */
import { createHash } from "node:crypto";
import { createClient, createCluster, RESP_TYPES } from "redis";
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { limitConnectWaits } from "./connect-wait.ts";
import { watchRedirects } from "./nodes/ask-redirects.ts";
import { countCall } from "./partition-calls.ts";
import { type Master, NO_REPLICAS, type ReplicaTerms, replicaWait } from "./replica-waits.ts";
import { isCovered, SILENT_MS, watchCluster, watchServer } from "./silence.ts";
import { answerTracing } from "./tracing.ts";

answerTracing();

export type Redis = ReturnType<typeof newClient>;

/** `redis://`, `rediss://` or the path of a Unix socket. */
function newClient(address: string) {
  return address.startsWith("/")
    ? createClient({ ...COMMON, socket: { path: address, tls: false } })
    : createClient({ ...COMMON, url: address });
}

/** Of every connection of a cluster. Long, because a pause of this process counts as silence too. */
const CLUSTER_SILENT_MS = limit(
  3 * SILENT_MS,
  "a cluster's node without any answer when it is asked for the masters",
  "another one is asked",
);

/**
 * The masters are looked up over separate, unwatched connections; the time limit of the socket ends one whose node accepts it but
 * never answers.
 */
function newCluster(urls: readonly string[]) {
  const { tls, ...credentials } = accessIn(urls);
  return createCluster({
    // Twice: a master that the first round has given up does not hold up the second.
    rootNodes: [...urls, ...urls].map((url) => ({
      url,
      socket: { socketTimeout: ASK_AT_START_MS },
    })),
    topologyRefreshOnReconnectionAttemptStrategy: SEARCH_AFTER_MS,
    defaults: { ...COMMON, ...credentials, socket: { tls, socketTimeout: CLUSTER_SILENT_MS } },
  });
}

/** A cluster names its other nodes by host and port alone: they are reached as the first configured one is. */
function accessIn([first = ""]: readonly string[]) {
  const { protocol, username, password } = new URL(first);
  return {
    tls: protocol === "rediss:",
    ...(username && { username: decodeURIComponent(username) }),
    ...(password && { password: decodeURIComponent(password) }),
  };
}

/** A master that cannot be reached for this long may have a successor: other nodes are asked, and again as often. */
const SEARCH_AFTER_MS = limit(
  1_000,
  "time that a cluster's master cannot be reached until other nodes are asked for its successor",
  "they are asked again",
);

/** Some of the configured nodes may be silent: others are asked before the time to connect is over. */
const ASK_AT_START_MS = limit(
  5_000,
  "answer of a cluster's node that was configured, at the start",
  "another one is asked",
);

/**
 * Without the offline queue a command fails at once while Redis is unavailable: callers answer 503 instead of hanging. The
 * client's timeout would only look after commands that wait to be written, at the price of an `AbortSignal` each.
 */
const COMMON = { disableOfflineQueue: true, commandOptions: { timeout: 0 } } as const;

/** @throws when the first connection cannot be made; later interruptions heal by themselves. */
export async function connectRedis(
  address: string,
  log: Log,
  replicas: ReplicaTerms = NO_REPLICAS,
): Promise<Redis> {
  const client = newClient(address);
  logInterruptions(client, log);
  await connectInTime(client);
  watchServer(client, log);
  waitOn(client, replicas, log, () => () => [client]);
  return client;
}

/**
 * A cluster takes the same commands, since the keys of every step share one hash tag. It is ready while each slot has a master:
 * one that is unavailable fails the commands of its own slots only.
 * @param urls some of its nodes; the others are found by them
 */
export async function connectCluster(
  urls: readonly string[],
  log: Log,
  replicas: ReplicaTerms = NO_REPLICAS,
): Promise<Redis> {
  const cluster = newCluster(urls);
  Object.defineProperty(cluster, "isReady", {
    get: () => cluster.isOpen && isCovered(cluster.slots),
  });
  limitConnectWaits(cluster._slots);
  const client = cluster as unknown as Redis;
  clusters.set(client, cluster);
  logNodeInterruptions(client, log);
  const connecting = connectInTime(client);
  watchCluster(cluster, log);
  await connecting;
  // As a command of the cluster's client it would go to every master: one that is unavailable would hold up all the others.
  const beginWatch = watchRedirects(cluster._slots);
  waitOn(client, replicas, log, () => {
    const redirectedTo = beginWatch();
    return async (key) => {
      const master = await cluster.getNodeClientForKey(key, false);
      return [...new Set([master, ...redirectedTo()])];
    };
  });
  return client;
}

const clusters = new WeakMap<Redis, ReturnType<typeof newCluster>>();

export function isCluster(redis: Redis): boolean {
  return clusters.has(redis);
}

/**
 * Prepares one more connection, to the same server or, on a cluster, to any master in reach. It ends when it breaks or falls silent,
 * and never reconnects; it emits `ping-interval` every few seconds.
 * @returns null if no master is in reach
 */
export function duplicate(redis: Redis): Redis | null {
  const server = serverInReach(redis);
  if (!server) return null;
  return server.duplicate({
    socket: { ...server.options.socket, reconnectStrategy: false, socketTimeout: SILENT_MS },
    pingInterval: SILENT_MS / 2,
  }) as Redis;
}

function serverInReach(redis: Redis) {
  if (!clusters.has(redis)) return redis;
  const reachable = mastersOf(redis).filter(({ isReady }) => isReady);
  return reachable[Math.floor(Math.random() * reachable.length)];
}

/** Whether a duplicate's server is still one that its original uses: a node that has left the cluster goes on answering. */
export function isInUse(redis: Redis, own: Redis): boolean {
  const place = placeOf(own);
  return !clusters.has(redis) || mastersOf(redis).some((master) => placeOf(master) === place);
}

/** Connections to the masters of a cluster, as far as there are any; the one server where it is none. */
export function mastersOf(redis: Redis) {
  const cluster = clusters.get(redis);
  return cluster ? cluster.masters.flatMap(({ client }) => client ?? []) : [redis];
}

/** Masters of a cluster without a connection, as `host:port`; of one server none: it is unavailable as a whole. */
export function unavailableMasters(redis: Redis): string[] {
  const masters = clusters.get(redis)?.masters ?? [];
  return masters
    .filter(({ client }) => !client?.isReady)
    .map(({ host, port }) => `${host}:${port}`);
}

export function placeOf({ options }: { readonly options: Redis["options"] }): string {
  const { host, port } = { host: "", port: 0, ...options.socket };
  return `${host}:${port}`;
}

/**
 * Keys by what one reading command may ask for: on a cluster those of one partition, on one server all of them, since a
 * command of its own for every partition is most of what a small read costs.
 */
export function readTogether<T = string>(
  redis: Redis,
  byPartition: ReadonlyMap<number, readonly T[]>,
): (readonly T[])[] {
  const groups = [...byPartition.values()];
  return clusters.has(redis) ? groups : [groups.flat()].filter(({ length }) => length > 0);
}

/** Called before a write; waits then until what was written to a key has reached the replicas of the master that has it. */
type BeginWait = () => (key: string) => Promise<void>;

const waits = new WeakMap<Redis, BeginWait>();

const terms = new WeakMap<Redis, ReplicaTerms>();

export function replicaTermsOf(redis: Redis): ReplicaTerms {
  return terms.get(redis) ?? NO_REPLICAS;
}

/**
 * Every script is followed by a wait on the same connection, and a write that too few replicas have confirmed fails and is repeated
 * by its caller.
 * @param beginWrite called before a write; tells then by which connections it may have gone
 */
function waitOn(
  client: Redis,
  replicas: ReplicaTerms,
  log: Log,
  beginWrite: () => (key: string) => readonly Connection[] | Promise<readonly Connection[]>,
): void {
  if (replicas.wanted === 0) return;
  terms.set(client, replicas);
  const byMaster = new WeakMap<Connection, () => Promise<void>>();
  const waitFor = (master: Connection) => {
    const wait = byMaster.get(master) ?? replicaWait(master, placeOf(master), replicas, log);
    byMaster.set(master, wait);
    return wait();
  };
  waits.set(client, () => {
    const carriersOf = beginWrite();
    return async (key) => {
      const [master, ...others] = await carriersOf(key);
      if (master) await waitFor(master);
      if (others.length > 0) await Promise.all(others.map(waitFor));
    };
  });
}

type Connection = Master & Pick<Redis, "options">;

/** By itself the client would retry for ever; the operator has to learn that the address is wrong. */
async function connectInTime(client: Redis): Promise<void> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new StoreUnreachable(`Redis does not answer within ${CONNECT_LIMIT_MS / 1000} s.`));
  }, CONNECT_LIMIT_MS);
  try {
    await Promise.race([connectUntilReady(client), late.promise]);
  } catch (error) {
    client.destroy();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** A cluster's client also connects when no master can be reached, or when the node it asks knows of none; it goes on looking. */
async function connectUntilReady(client: Redis): Promise<void> {
  await client.connect();
  while (client.isOpen && !(client.isReady && serverInReach(client))) {
    await Bun.sleep(READY_POLL_MS);
  }
}

const READY_POLL_MS = 50;

/** The first connection could not be made: reported without a stack, like a configuration fault. */
export class StoreUnreachable extends Error {}

const CONNECT_LIMIT_MS = 15_000;

function logInterruptions(client: Pick<Redis, "on">, log: Log): void {
  let lost = false;
  client.on("error", (error: Error) => {
    if (!lost) log.error({ reason: error.message }, "redis connection lost");
    lost = true;
  });
  client.on("ready", () => {
    if (lost) log.info("redis connection is back");
    lost = false;
  });
}

function logNodeInterruptions(cluster: Pick<Redis, "on">, log: Log): void {
  const lost = new Set<string>();
  const nameOf = ({ host, port }: { host: string; port: number }) => `${host}:${port}`;
  cluster.on("node-error", (error: Error, place) => {
    const node = nameOf(place);
    if (lost.has(node)) return;
    lost.add(node);
    log.error({ node, reason: error.message }, "a Redis node cannot be reached");
  });
  // A search that fails is repeated each second: each reason is logged once until a node can be reached.
  const reasons = new Set<string>();
  cluster.on("error", ({ message }: Error) => {
    if (reasons.has(message)) return;
    reasons.add(message);
    log.error({ reason: message }, "looking for the cluster's masters failed");
  });
  cluster.on("node-ready", (place) => {
    reasons.clear();
    const node = nameOf(place);
    if (lost.delete(node)) log.info({ node }, "a Redis node can be reached again");
  });
}

export interface Script {
  readonly source: string;
  readonly sha: string;
}

export function script(source: string): Script {
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/**
 * Runs a script by its digest and loads it where Redis does not know it, so `SCRIPT FLUSH` heals by itself.
 * The keys must share one hash tag. The script's header describes its reply.
 * @param client the same connection with replies of another kind
 */
export async function run<Reply>(
  redis: Redis,
  { source, sha }: Script,
  keys: string[],
  args: Array<string | Buffer>,
  client = redis,
): Promise<Reply> {
  const options = { keys, arguments: args };
  countCall(keys[0]);
  const wait = waits.get(redis)?.();
  const durable = async (reply: Promise<unknown>) => {
    const value = await reply;
    // Only now: a redirected script has been written on another connection than the one it was sent on first.
    await wait?.(keys[0] ?? "");
    return value as Reply;
  };
  try {
    return await durable(client.evalSha(sha, options));
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return durable(client.eval(source, options));
  }
}

const binaries = new WeakMap<Redis, Redis>();

/**
 * The same client, whose replies are bytes instead of text. Not for pipelines: `multi` of a cluster's client ignores the mapping.
 * Commands that are sent without waiting for each other go together as well.
 */
export function binary(redis: Redis): Redis {
  const known = binaries.get(redis);
  if (known) return known;
  const mapped = redis.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }) as unknown as Redis;
  binaries.set(redis, mapped);
  return mapped;
}

/**
 * Runs `work` for every part of every group at once, in the order given: the calls of a partition follow each other on its connection,
 * and none waits for the answer to the one before.
 */
export function perPart<T, R>(
  items: ReadonlyMap<number, readonly T[]>,
  cut: (group: readonly T[]) => readonly T[][],
  work: (partition: number, part: T[]) => Promise<R>,
): Promise<R[]> {
  return Promise.all(
    [...items].flatMap(([partition, group]) => cut(group).map((part) => work(partition, part))),
  );
}

/** Runs `work` for every group at once: one script call a partition, written to the socket together. */
export function perPartition<T, R>(
  items: ReadonlyMap<number, T>,
  work: (partition: number, group: T) => Promise<R>,
): Promise<R[]> {
  return Promise.all([...items].map(([partition, group]) => work(partition, group)));
}

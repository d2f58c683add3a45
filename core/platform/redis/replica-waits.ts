/**
 * A failover keeps only what a replica has: where the configuration asks for it, a write counts as done once its master's replicas
 * have confirmed it. A master that has fewer of them than that is written to all the same, unless the configuration is strict.
 */
import type { Log } from "#core/platform/process/log.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { NotReplicated } from "./store-unavailable.ts";

export interface ReplicaTerms {
  /** Replicas that must have a write before it is acknowledged. */
  readonly wanted: number;
  /** Whether a master with fewer connected replicas refuses writes. */
  readonly isStrict: boolean;
}

export const NO_REPLICAS: ReplicaTerms = { wanted: 0, isStrict: false };

/** A connection to a master. */
export interface Master {
  readonly sendCommand: (command: string[]) => Promise<unknown>;
}

/** How long a master may take to hear from its replicas before the write counts as not acknowledged. */
const REPLICA_WAIT_MS = limit(2_000, "wait for replicas to confirm a write", "503");
/** How often a master that is known to have too few replicas is asked how many they are. */
const LOOK_AGAIN_MS = limit(
  1_000,
  "how often a master with too few replicas is asked",
  "the next write asks",
);

/**
 * Connected, and sent everything that was there before they connected.
 * @throws {NotReplicated} and what the master answers instead
 */
export async function replicasOnline(master: Master): Promise<number> {
  const info = String(await master.sendCommand(["INFO", "replication"]));
  // One that a replica has taken over from has none either, and what it was given is lost.
  if (!/^role:master\b/m.test(info)) throw new NotReplicated("it has become a replica");
  return onlineReplicasIn(info);
}

/** @param info what a node answers to `INFO replication` */
export function onlineReplicasIn(info: string): number {
  return info.match(/^slave\d+:.*\bstate=online\b/gm)?.length ?? 0;
}

/** What is known of a master's replicas, and the waits for them. */
interface ReplicaState extends ReplicaTerms {
  readonly master: Master;
  readonly name: string;
  readonly log: Log;
  /** How many there are; null = as many as are wanted, as far as is known. */
  few: number | null;
  lookedAtMs: number;
  current: Promise<void> | null;
  next: Promise<void> | null;
}

/**
 * @param name of the master, for the log
 * @returns waits until what has been written on this connection has reached the replicas
 * @throws (the wait) {NotReplicated}
 */
export function replicaWait(
  master: Master,
  name: string,
  { wanted, isStrict }: ReplicaTerms,
  log: Log,
): () => Promise<void> {
  const known = { few: null, lookedAtMs: 0, current: null, next: null };
  const state: ReplicaState = { wanted, isStrict, master, name, log, ...known };
  return () => joinWait(state);
}

function joinWait(state: ReplicaState): Promise<void> {
  if (state.current === null) return beginWait(state);
  // One that is under way may have begun before the caller's write. Those that come meanwhile share the next one: the server reads
  // no further command of a connection that waits, and where a replica has gone, each would time out on its own.
  state.next ??= state.current
    .catch(() => {})
    .then(() => {
      state.next = null;
      return beginWait(state);
    });
  return state.next;
}

function beginWait(state: ReplicaState): Promise<void> {
  state.current = confirm(state).finally(() => {
    state.current = null;
  });
  return state.current;
}

async function confirm(state: ReplicaState): Promise<void> {
  const { master, wanted, isStrict } = state;
  if (state.few !== null && performance.now() >= state.lookedAtMs + LOOK_AGAIN_MS) {
    await lookAgain(state);
  }
  if (state.few !== null && isStrict) throw lacking(state.few, wanted);
  const required = state.few ?? wanted;
  if (required === 0) return;
  const wait = ["WAIT", String(required), String(REPLICA_WAIT_MS)];
  const confirmed = Number(await master.sendCommand(wait));
  if (confirmed >= required) return;
  const online = await lookAgain(state);
  if (isStrict && online < wanted) throw lacking(online, wanted);
  if (confirmed >= Math.min(wanted, online)) return;
  throw new NotReplicated(`only ${confirmed} of ${required} replicas have confirmed a write`);
}

/** @returns the replicas that are online */
async function lookAgain(state: ReplicaState): Promise<number> {
  const { name, wanted, isStrict, log } = state;
  const online = await replicasOnline(state.master);
  const { few } = state;
  state.lookedAtMs = performance.now();
  const now = online < wanted ? online : null;
  if (now !== null && now !== few) {
    log.error({ node: name, replicas: online, wanted, isStrict }, TOO_FEW);
  }
  if (now === null && few !== null) log.info({ node: name, replicas: online }, ENOUGH);
  state.few = now;
  return online;
}

function lacking(few: number, wanted: number): NotReplicated {
  return new NotReplicated(
    `a master has ${few} of the ${wanted} replicas that REDIS_WAIT_REPLICAS asks for (REDIS_WAIT_STRICT)`,
  );
}

const TOO_FEW = "a Redis master has fewer replicas than REDIS_WAIT_REPLICAS asks for";
const ENOUGH = "a Redis master has as many replicas again as REDIS_WAIT_REPLICAS asks for";

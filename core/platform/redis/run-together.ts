/** Calls of one script that come in the same turn of the event loop, sent as one command. */

import { chunksBySize } from "#core/platform/process/chunks.ts";
import { isCluster, type Redis, run, type Script, script } from "./client.ts";
import { countCall } from "./partition-calls.ts";
import batchSource from "./run-together.lua" with { type: "text" };

/** What a command of several calls may take of Redis, microseconds: others wait for so long. */
const COMMAND_US = 2_000;

interface GatheredCall {
  readonly keys: string[];
  readonly args: Array<string | Buffer>;
  readonly costUs: number;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls of this turn, by client and digest. */
const gathered = new WeakMap<Redis, Map<string, GatheredCall[]>>();

/**
 * Like `run`, for calls that come by partition: on one server those of one turn go as one command, each step as atomic as
 * before. A command costs more than a small step, and its writes an fsync of their own. On a cluster each goes alone. When a
 * step fails, those after it in its command are not done and fail with it: callers bear repetition.
 * @param script always replies something
 * @param costUs what the call takes of Redis, microseconds, about
 */
export function runTogether<Reply>(
  redis: Redis,
  step: Script,
  keys: string[],
  args: Array<string | Buffer>,
  costUs: number,
  client = redis,
): Promise<Reply> {
  if (isCluster(redis)) return run(redis, step, keys, args, client);
  const bySha = gathered.get(client) ?? new Map<string, GatheredCall[]>();
  gathered.set(client, bySha);
  const { promise, resolve, reject } = Promise.withResolvers<unknown>();
  const call = { keys, args, costUs, resolve, reject };
  const waiting = bySha.get(step.sha);
  if (waiting) waiting.push(call);
  else {
    bySha.set(step.sha, [call]);
    queueMicrotask(() => {
      const calls = bySha.get(step.sha) ?? [];
      bySha.delete(step.sha);
      const commands = chunksBySize(calls, COMMAND_US, (one) => one.costUs);
      for (const command of commands) void runCommand(redis, step, command, client);
    });
  }
  return promise as Promise<Reply>;
}

async function runCommand(
  redis: Redis,
  step: Script,
  calls: readonly GatheredCall[],
  client: Redis,
): Promise<void> {
  const [only] = calls;
  try {
    if (calls.length === 1 && only) {
      only.resolve(await run(redis, step, only.keys, only.args, client));
      return;
    }
    const keys = calls.flatMap((one) => one.keys);
    const args = calls.flatMap((one) => [
      String(one.keys.length),
      String(one.args.length),
      ...one.args,
    ]);
    // The command counts as the first of them.
    for (const one of calls.slice(1)) countCall(one.keys[0]);
    const replies = await run<unknown[]>(redis, batchOf(step), keys, args, client);
    calls.forEach(({ resolve }, at) => {
      resolve(replies[at]);
    });
  } catch (error) {
    for (const { reject } of calls) reject(error);
  }
}

const batchScripts = new Map<string, Script>();

/** A script that runs several calls of another one, under the same flags. */
function batchOf({ source, sha }: Script): Script {
  const known = batchScripts.get(sha);
  if (known) return known;
  const [header = ""] = source.split("\n", 1);
  const step = source.slice(header.length);
  const batch = script(`${header}\n${batchSource.replace("-- the step", () => step)}`);
  batchScripts.set(sha, batch);
  return batch;
}

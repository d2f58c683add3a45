/** The Redis client of every room, and the way scripts are run through it. */
import { createHash } from "node:crypto";
import { createClient } from "redis";
import type { Log } from "#core/log.ts";

export type Redis = ReturnType<typeof newClient>;

/** `redis://`, `rediss://` or the path of a Unix socket. */
function newClient(address: string) {
  // Without the offline queue a command fails at once while Redis is away: callers answer 503 instead of hanging.
  const common = { disableOfflineQueue: true } as const;
  return address.startsWith("/")
    ? createClient({ ...common, socket: { path: address, tls: false } })
    : createClient({ ...common, url: address });
}

/** @throws when the first connection cannot be made; later interruptions heal by themselves. */
export async function connectRedis(address: string, log: Log): Promise<Redis> {
  const client = newClient(address);
  let lost = false;
  client.on("error", (error: Error) => {
    if (!lost) log.error({ reason: error.message }, "redis connection lost");
    lost = true;
  });
  client.on("ready", () => {
    if (lost) log.info("redis connection is back");
    lost = false;
  });
  await client.connect();
  return client;
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
 * The keys must share one hash tag. The reply's shape is told by the script's own header.
 */
export async function run<Reply>(
  redis: Redis,
  { source, sha }: Script,
  keys: string[],
  args: string[],
): Promise<Reply> {
  const options = { keys, arguments: args };
  try {
    return (await redis.evalSha(sha, options)) as Reply;
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
    return (await redis.eval(source, options)) as Reply;
  }
}

/** Runs `work` for every group at once: one script call a partition, written to the socket together. */
export function perPartition<T, R>(
  items: ReadonlyMap<number, T>,
  work: (partition: number, group: T) => Promise<R>,
): Promise<R[]> {
  return Promise.all([...items].map(([partition, group]) => work(partition, group)));
}

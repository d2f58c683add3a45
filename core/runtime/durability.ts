/** Durable before 200: a start warns when a server that it was given promises less than the embedded one. */
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { DURABLE_SETTINGS } from "#core/platform/redis/embedded/durable-settings.ts";
import { readRedisFacts } from "#core/platform/redis/nodes/node-facts.ts";

/** Every node of a cluster is asked, replicas too: one of them is the next master. */
export async function warnAboutDurability(redis: Redis, log: Pick<Log, "warn">): Promise<void> {
  const names = Object.keys(DURABLE_SETTINGS);
  const nodes = await readRedisFacts(redis, names).then(
    (facts) => facts.nodes,
    () => [],
  );
  const readable = nodes.filter(({ settings }) => names.every((name) => name in settings));
  if (nodes.length === 0 || readable.length < nodes.length) {
    log.warn(
      "cannot read the persistence settings of this Redis; check appendonly, appendfsync, aof-load-truncated, noeviction",
    );
  }
  for (const { place, settings: found } of readable) {
    if (Bun.deepEquals(found, DURABLE_SETTINGS)) continue;
    const node = place === "" ? {} : { node: place };
    log.warn(
      { ...node, found, wanted: DURABLE_SETTINGS },
      "this Redis may lose events that were answered ACCEPTED",
    );
  }
}

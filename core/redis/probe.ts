/** Asks whether Redis takes writes, without one. */
import { type Redis, runTogether, script } from "./client.ts";
import probeSource from "./scripts/probe.lua" with { type: "text" };

const probeScript = script(probeSource);

const PROBE_US = 2;

/**
 * @param keys one of each partition that is asked about
 * @throws what a write would meet there
 */
export async function probeWrites(redis: Redis, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => runTogether(redis, probeScript, [key], [], PROBE_US)));
}

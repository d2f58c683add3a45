/** Checks whether Redis accepts writes, without writing. */
import { type Redis, script } from "./client.ts";
import probeSource from "./probe.lua" with { type: "text" };
import { runTogether } from "./run-together.ts";

const probeScript = script(probeSource);

const PROBE_US = 2;

/**
 * @param keys one key of each partition to check
 * @throws the error that a write would get
 */
export async function probeWrites(redis: Redis, keys: readonly string[]): Promise<void> {
  await Promise.all(keys.map((key) => runTogether(redis, probeScript, [key], [], PROBE_US)));
}

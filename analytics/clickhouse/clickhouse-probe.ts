/** Checks whether ClickHouse currently accepts writes, independently of the inserts. */
import type { Config } from "#core/platform/environment/config.ts";
import { type KeptClickhouse, openBare } from "./clickhouse.ts";
import { useEngine } from "./embedded-engine.ts";
import { PING_LIMIT_MS } from "./time-limits.ts";

export interface ClickhouseProbe {
  /** Why it does not accept writes; null = it does. */
  readonly reasonNotReady: () => Promise<string | null>;
  readonly close: () => Promise<void>;
}

/**
 * @param store how the role writes: an embedded engine that has been started accepts writes, also while it sleeps; a server is checked
 * over a separate connection
 */
export async function openProbe(config: Config, store: KeptClickhouse): Promise<ClickhouseProbe> {
  const engine = config.clickhouseUrl === null ? useEngine(config.dataDir) : null;
  const server = engine ? null : await openBare(config, {}, PING_LIMIT_MS, 1);
  return {
    async reasonNotReady() {
      try {
        await store.client();
      } catch {
        return engine?.fault() ?? "ClickHouse is unavailable";
      }
      const answer = await server?.ping();
      if (answer?.success === false) return "ClickHouse does not answer";
      return engine?.fault() ?? null;
    },
    async close() {
      await server?.close();
      await engine?.release();
    },
  };
}

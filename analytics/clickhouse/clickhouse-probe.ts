/** Checks whether ClickHouse currently accepts writes, independently of the inserts. */
import type { Config } from "#core/platform/environment/config.ts";
import { type KeptClickhouse, openBare } from "./clickhouse.ts";
import { PING_LIMIT_MS } from "./time-limits.ts";

export interface ClickhouseProbe {
  /** Why it does not accept writes; null = it does. */
  readonly reasonNotReady: () => Promise<string | null>;
  readonly close: () => Promise<void>;
}

/**
 * @param store how the role writes: an embedded engine that is open accepts writes; a server is checked over a separate
 * connection
 */
export async function openProbe(config: Config, store: KeptClickhouse): Promise<ClickhouseProbe> {
  const server =
    config.clickhouseUrl === null ? null : await openBare(config, {}, PING_LIMIT_MS, 1);
  return {
    async reasonNotReady() {
      try {
        await store.client();
      } catch {
        return server
          ? "ClickHouse is unavailable"
          : "the embedded ClickHouse is open in another process";
      }
      const answer = await server?.ping();
      return answer?.success === false ? "ClickHouse does not answer" : null;
    },
    close: async () => server?.close(),
  };
}

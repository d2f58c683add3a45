/** Whether ClickHouse can be written to at this moment, asked beside the inserts. */
import type { Config } from "#core/config.ts";
import { type KeptClickhouse, openBare } from "./clickhouse.ts";

/** Less than whoever asks for readiness waits. */
const PING_LIMIT_MS = 1_500;

export interface ClickhouseProbe {
  /** Null = it can be written to. */
  readonly reasonNotReady: () => Promise<string | null>;
  readonly close: () => Promise<void>;
}

/** @param store how the role writes: an embedded engine that is open is there; a server is asked over a connection of its own */
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

/** A ClickHouse of its own for one test file. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClickHouseClient } from "@clickhouse/client";
import { applySchema } from "#analytics/clickhouse/apply-schema.ts";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { type ClickhouseKind, startTestClickhouse } from "./servers.ts";

export interface TestClickhouse {
  readonly config: Config;
  /** With the schema applied. */
  readonly writer: ClickHouseClient;
  readonly end: () => Promise<void>;
}

export async function openTestClickhouse(
  kind: ClickhouseKind = "embedded",
): Promise<TestClickhouse> {
  const server = await startTestClickhouse(kind);
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-clickhouse-"));
  const config = readConfig({
    DATA_DIR: dataDir,
    CLICKHOUSE_URL: server.address ?? "",
    CLICKHOUSE_READ_URL: server.readAddress ?? "",
  });
  const writer = await openClickhouse(config, "write");
  await applySchema(writer, config);
  return {
    config,
    writer,
    async end() {
      await writer.close();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

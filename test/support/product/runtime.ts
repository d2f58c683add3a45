/** A runtime on a Redis of its own, for tests that start roles in this process. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { applySetupFile, openRuntime, type Runtime } from "#core/runtime/runtime.ts";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { startTestRedis, type TestServer } from "#test/support/servers/servers.ts";

export interface TestRuntime extends Runtime {
  /** Closes the runtime, ends its Redis and deletes its folder. */
  readonly end: () => Promise<void>;
}

/** Nothing listens there: what reads ClickHouse answers as while it is unavailable. */
export const NO_CLICKHOUSE = "http://nobody:nothing@127.0.0.1:1/none";

/** Ports are free ones; the test clock is on; webhooks may reach the loopback network. */
export async function openTestRuntime(
  setup: SetupFile,
  env: Readonly<Record<string, string>> = {},
  given?: TestServer & { readonly address: string },
): Promise<TestRuntime> {
  const server = given ?? (await startTestRedis());
  const dataDir = await mkdtemp(join(tmpdir(), "waybill-data-"));
  const config = readConfig({
    REDIS_URL: server.address.startsWith("/") ? undefined : server.address,
    DATA_DIR: dataDir,
    INGEST_PORT: "0",
    API_PORT: "0",
    PANEL_PORT: "0",
    TEST_CLOCK: "1",
    LOG_LEVEL: "error",
    PANEL_TOKEN: "panel-token-of-the-tests",
    JWT_SECRET: "jwt-secret-of-the-tests-0123456789",
    ENCRYPTION_KEY: "encryption-key-of-the-tests",
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8,::1/128",
    ...env,
  });
  const runtime = await openRuntime(
    { ...config, redisUrl: server.address },
    createLog(config.logLevel),
  );
  await applySetupFile(runtime, setup);
  return {
    ...runtime,
    async end() {
      await runtime.close();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

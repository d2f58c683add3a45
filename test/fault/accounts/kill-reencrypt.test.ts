/** `npx waybill reencrypt` that is killed. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readEntity } from "#core/configuration/store/entities.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis } from "#core/platform/redis/client.ts";
import { createVault, firstMacKey, type Vault } from "#core/platform/secrets/secrets.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const OLD = "the-key-of-yesterday";
const NEW = "the-key-of-tomorrow";
const COURIERS = 1_000;

let folder: string;
let server: RedisServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-kill-reencrypt-"));
  server = await startRedisServer();
});
afterAll(async () => {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
});

const vaultOf = (key: string) => createVault({ key, previous: null, macKey: firstMacKey(key) });

test("SIGKILL in the middle of a re-encryption loses nothing, and running it again ends it", async () => {
  const setup = testSetup();
  const [courier] = setup.couriers ?? [];
  if (!courier) throw new Error("no courier");
  const codes = Array.from({ length: COURIERS }, (_, at) => `COURIER_${at}`);
  const couriers = codes.map((code) => ({
    ...courier,
    code,
    tokens: [`tok_${code}`],
    signingSecrets: [`sig_${code}_a`, `sig_${code}_b`],
  }));
  setup.couriers?.push(...couriers);
  const given = { address: server.url, stop: async () => {} };
  await (await openTestRuntime(setup, { ENCRYPTION_KEY: OLD }, given)).end();
  const redis = await connectRedis(server.url, createLog("silent"));
  const countOf = async (vault: Vault, among: readonly string[]) => {
    const stored = await Promise.all(among.map((code) => readEntity(redis, "courier", code)));
    const sealed = stored.flatMap((one) => one?.signingSecrets ?? []);
    return sealed.filter(vault.isCurrent).length;
  };
  const env = {
    DATA_DIR: join(folder, "data"),
    LOG_LEVEL: "error",
    ENCRYPTION_KEY: NEW,
    ENCRYPTION_KEY_PREVIOUS: OLD,
  };
  const command = ["bun", "cli/main.ts", "reencrypt"];
  // Slow enough to be killed in time.
  const slow = await startRedisProxy({ port: Number(new URL(server.url).port) });
  slow.delay(5);
  const killed = startCommand(command, { ...env, REDIS_URL: slow.url });
  const [old, fresh] = [vaultOf(OLD), vaultOf(NEW)];
  const isUnderWay = async () => (await countOf(fresh, codes.slice(0, 1))) > 0;
  await eventually(isUnderWay, "the first secrets are re-encrypted");
  killed.kill("SIGKILL");
  await killed.exited;
  await slow.stop();
  const left = await countOf(old, codes);
  expect((await countOf(fresh, codes)) + left).toBe(2 * COURIERS);
  expect(left).toBeGreaterThan(0);

  const done = await outcomeOf(startCommand(command, { ...env, REDIS_URL: server.url }));
  expect(done).toMatchObject({ status: 0, errors: "" });
  expect(await countOf(fresh, codes)).toBe(2 * COURIERS);
  redis.destroy();
}, 300_000);

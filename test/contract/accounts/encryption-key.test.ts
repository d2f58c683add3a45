/** `ENCRYPTION_KEY`: a wrong or forgotten key stops the start, and a key is replaced while the product runs. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createHash, createHmac } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createCluster } from "redis";
import { API } from "#api/main.ts";
import { secretsInForce } from "#core/configuration/store/courier-access.ts";
import { allEntities, readEntity, saveEntity } from "#core/configuration/store/entities.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { createLog } from "#core/platform/process/log.ts";
import { isFileRewriteMarked } from "#core/platform/redis/embedded/file-rewrite.ts";
import { FILE_REWRITE_KEY, KEY_USERS_KEY, KEYRING_KEY } from "#core/platform/redis/keys.ts";
import { createVault, firstMacKey, type Vault } from "#core/platform/secrets/secrets.ts";
import { openSecrets } from "#core/runtime/open-secrets.ts";
import { reencrypt } from "#core/runtime/reencrypt.ts";
import { applySetupFile, openRuntime, openStore, type Runtime } from "#core/runtime/runtime.ts";
import { rotateEndpointSecret } from "#core/webhooks/store/endpoints.ts";
import { INGEST } from "#ingest/main.ts";
import { PANEL } from "#panel/main.ts";
import { issueAccess, revokeAccess, viewAccess } from "#panel/server/couriers/courier-access.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { PANEL_TOKEN } from "#test/support/product/product.ts";
import { startTestCluster } from "#test/support/servers/redis-cluster.ts";
import { startTestRedis } from "#test/support/servers/servers.ts";
import { STORES } from "#test/support/servers/stores.ts";

const OLD = "the-key-of-yesterday";
const NEW = "the-key-of-tomorrow";
const THIRD = "a-key-of-somebody-else";
const WRONG = "ENCRYPTION_KEY is not the key";
const REPLACED = "ENCRYPTION_KEY is a key that was replaced";
const log = createLog("silent");

function setupWithWebhook() {
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  if (!channel) throw new Error("no channel");
  const url = "https://merchant.example/hook";
  const webhook = { code: "main", url, alertEmail: "ops@acme.test", secret: WEBHOOK_SECRET };
  const channels = [{ ...channel, webhooks: [webhook] }];
  const [company, ...others] = setup.companies ?? [];
  return { ...setup, companies: [{ ...company, code: "acme", channels }, ...others] };
}

const vaultOf = (key: string) => createVault({ key, previous: null, macKey: firstMacKey(key) });

describe.each(STORES)("secrets on %s", (kind) => {
  let address: Partial<Config>;
  let stopStore: () => Promise<unknown>;
  let folder: string;
  let machines = 0;
  const opened: Runtime[] = [];

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-keys-"));
    if (kind === "one Redis server") {
      const server = await startTestRedis();
      address = { redisUrl: server.address };
      stopStore = server.stop;
    } else {
      const cluster = await startTestCluster();
      address = { redisClusterUrls: cluster.urls.split(",") };
      stopStore = cluster.stop;
    }
  });

  beforeEach(async () => {
    for (const runtime of opened.splice(0)) await runtime.close();
    await flushAll();
  });

  afterAll(async () => {
    for (const runtime of opened.splice(0)) await runtime.close();
    await stopStore?.();
    await rm(folder, { recursive: true, force: true });
  });

  async function flushAll(): Promise<void> {
    if (address.redisUrl) {
      const socket = { path: address.redisUrl, tls: false } as const;
      const client = await createClient({ socket }).connect();
      await client.flushAll();
      client.destroy();
      return;
    }
    const rootNodes = (address.redisClusterUrls ?? []).map((url) => ({ url }));
    const cluster = await createCluster({ rootNodes }).connect();
    for (const master of cluster.masters) await (await cluster.nodeClient(master)).flushAll();
    cluster.destroy();
  }

  const newMachine = () => {
    machines += 1;
    return join(folder, `machine-${machines}`);
  };

  function configOf(env: Record<string, string>, dataDir = newMachine()): Config {
    return { ...readConfig({ DATA_DIR: dataDir, ...env }), ...address };
  }

  const keys = (key: string, previous = "") => ({
    ENCRYPTION_KEY: key,
    ENCRYPTION_KEY_PREVIOUS: previous,
    JWT_SECRET: "jwt-secret-of-the-tests",
    PANEL_TOKEN: "panel-token-of-the-tests",
  });

  async function open(env: Record<string, string>, dataDir?: string): Promise<Runtime> {
    const runtime = await openRuntime(configOf(env, dataDir), log);
    opened.push(runtime);
    return runtime;
  }

  const close = async (runtime: Runtime) => {
    opened.splice(opened.indexOf(runtime), 1);
    await runtime.close();
  };

  /** @returns the only line that a user would see */
  const refusalOf = (env: Record<string, string>, dataDir?: string) =>
    open(env, dataDir).then(
      () => "started",
      (error) => `${error.message}`,
    );

  const endpointOf = async ({ redis }: Runtime) => (await allEntities(redis, "endpoint"))[0];

  /** Every text of the store, whatever kind of value it stands in. */
  async function allTexts({ redis }: Runtime): Promise<string[]> {
    const texts: string[] = [];
    for (const kindOf of ["courier", "endpoint", "channel", "company", "apiKey"] as const) {
      for (const entity of await allEntities(redis, kindOf)) {
        texts.push(...JSON.stringify(entity).split(/[^A-Za-z0-9_-]+/));
      }
    }
    return texts;
  }

  /** What `npx waybill reencrypt` does. */
  async function rotate(env: Record<string, string>, waitLimitMs = 5_000): Promise<number> {
    const config = configOf(env);
    const { redis, close: closeStore } = await openStore(config, log);
    try {
      const own = await openSecrets(config, redis, log, { isRotating: true });
      return await reencrypt(redis, own, waitLimitMs).finally(own.close);
    } finally {
      await closeStore();
    }
  }

  test("another key than the store's is refused by a sentence that says what to do", async () => {
    const first = await open(keys(OLD));
    await applySetupFile(first, setupWithWebhook());
    expect(await refusalOf(keys(NEW))).toStartWith(WRONG);
    expect(await refusalOf(keys(NEW, THIRD))).toStartWith(WRONG);
    expect(await refusalOf(keys(OLD))).toBe("started");
    expect(await refusalOf(keys(NEW, OLD))).toBe("started");
    expect(await refusalOf(keys(OLD, NEW))).toBe("started");
  });

  test("an empty store belongs to the first key, before anything is sealed", async () => {
    await close(await open(keys(OLD)));
    expect(await refusalOf(keys(NEW))).toStartWith(WRONG);
  });

  test("a store of an earlier version gets its canary from the key that opens its secrets, and its hashes stay", async () => {
    const before = await open(keys(OLD));
    await applySetupFile(before, setupWithWebhook());
    await before.redis.del(KEYRING_KEY);
    expect(await refusalOf(keys(NEW))).toStartWith(WRONG);
    expect(await before.redis.exists(KEYRING_KEY)).toBe(0);
    const after = await open(keys(NEW, OLD));
    const macKey = createHash("sha256").update(`waybill mac ${OLD}`).digest();
    const hash = createHmac("sha256", macKey).update("company 1").digest("hex").slice(0, 16);
    expect(after.secrets.vault.mac("company 1")).toBe(hash);
    expect(await refusalOf(keys(NEW))).toStartWith(WRONG);
    expect(await refusalOf(keys(OLD))).toBe("started");
  });

  test("a second machine without the variable never invents a key", async () => {
    const { ENCRYPTION_KEY: _, ENCRYPTION_KEY_PREVIOUS: __, ...others } = keys(OLD);
    const first = await open(keys(OLD));
    const second = newMachine();
    expect(await refusalOf(others, second)).toStartWith("ENCRYPTION_KEY is not set");
    expect(existsSync(join(second, "secrets", "encryption-key"))).toBe(false);
    // Also where an earlier version has left secrets and no canary.
    await applySetupFile(first, setupWithWebhook());
    await first.redis.del(KEYRING_KEY);
    expect(await refusalOf(others, second)).toStartWith("ENCRYPTION_KEY is not set");
    expect(existsSync(join(second, "secrets", "encryption-key"))).toBe(false);
  });

  test("of machines that start at once on an empty store one makes the key, and the others leave none behind", async () => {
    const dirs = Array.from({ length: 6 }, newMachine);
    const outcomes = await Promise.all(dirs.map((dir) => refusalOf({}, dir)));
    const winners = dirs.filter((_, at) => outcomes[at] === "started");
    expect(winners).toHaveLength(1);
    const holders = dirs.filter((dir) => existsSync(join(dir, "secrets", "encryption-key")));
    expect(holders).toEqual(winners);
    for (const outcome of outcomes.filter((one) => one !== "started")) {
      expect(outcome).toMatch(/^ENCRYPTION_KEY is not/);
    }
  });

  test("processes of one machine that start at once agree on one key", async () => {
    const dir = newMachine();
    const outcomes = await Promise.all(Array.from({ length: 6 }, () => refusalOf({}, dir)));
    expect(outcomes).toEqual(Array(6).fill("started"));
    expect(new Set(opened.map(({ secrets }) => secrets.jwtSecret)).size).toBe(1);
    const { mode } = await stat(join(dir, "secrets", "encryption-key"));
    expect(mode & 0o777).toBe(0o600);
  });

  test("a process that found no key file before another one of its machine made it starts with that key", async () => {
    const dir = newMachine();
    const config = configOf({}, dir);
    const { redis, close: closeStore } = await openStore(config, log);
    let isFirst = true;
    const late = new Proxy(redis, {
      get(target, name) {
        const value = Reflect.get(target, name);
        if (name !== "hmGet") return typeof value === "function" ? value.bind(target) : value;
        return async (...args: Parameters<typeof redis.hmGet>) => {
          if (isFirst) {
            isFirst = false;
            await open({}, dir);
          }
          return target.hmGet(...args);
        };
      },
    });
    try {
      const own = await openSecrets(config, late, log);
      expect(own.secrets.jwtSecret).toBe(opened.at(-1)?.secrets.jwtSecret ?? "");
      await own.close();
    } finally {
      await closeStore();
    }
  });

  test("a role without JWT_SECRET or PANEL_TOKEN says so if it needs them, and starts if it does not", async () => {
    const first = await open({ ENCRYPTION_KEY: OLD });
    expect(first.secrets.jwtSecret).toBeString();
    const dir = newMachine();
    const { secrets } = await open({ ENCRYPTION_KEY: OLD }, dir);
    expect(() => secrets.jwtSecret).toThrow("JWT_SECRET is not set");
    expect(() => secrets.panelToken).toThrow("PANEL_TOKEN is not set");
    expect(existsSync(join(dir, "secrets", "jwt-secret"))).toBe(false);
    const { jwtSecret } = first.secrets;
    const third = await open({ ENCRYPTION_KEY: OLD, JWT_SECRET: jwtSecret });
    expect(third.secrets.jwtSecret).toBe(jwtSecret);
  });

  test("a rotation re-encrypts every secret while others are made, and keeps hashes, ids and revocations", async () => {
    const before = await open(keys(OLD));
    await applySetupFile(before, setupWithWebhook());
    const endpoint = await endpointOf(before);
    const sealedThen = endpoint?.secret ?? "";
    await issueAccess(before, "GLS_ITA", "signing-secrets");
    const [listed] = viewAccess(before.secrets.vault, await courierOf(before), "signing-secrets");
    await revokeAccess(before, "GLS_ITA", "signing-secrets", listed?.id ?? "");
    const seen = viewAccess(before.secrets.vault, await courierOf(before), "signing-secrets");
    const rotation = await rotateEndpointSecret(before.redis, endpoint?.id ?? "", {
      sealed: before.secrets.vault.seal("whsec_second"),
      replaces: sealedThen,
      revokePrevious: false,
      nowMs: 1,
    });
    expect(rotation).toBe("rotated");
    const mac = before.secrets.vault.mac("company 1");
    await close(before);

    const running = await open(keys(NEW, OLD));
    const writing = Promise.all(
      Array.from({ length: 5 }, () => issueAccess(running, "GLS_ITA", "signing-secrets")),
    );
    await running.redis.del(FILE_REWRITE_KEY);
    expect(await rotate(keys(NEW, OLD))).toBeGreaterThanOrEqual(4);
    expect(await isFileRewriteMarked(running.redis)).toBe(true);
    const issued = await writing;

    const after = await open(keys(NEW));
    const { vault } = after.secrets;
    const old = vaultOf(OLD);
    expect((await allTexts(after)).filter((text) => opens(old, text))).toEqual([]);
    expect(vault.mac("company 1")).toBe(mac);
    const views = viewAccess(vault, await courierOf(after), "signing-secrets");
    expect(views).toHaveLength(seen.length + issued.length);
    expect(views.map(({ id }) => id)).toEqual(expect.arrayContaining(seen.map(({ id }) => id)));
    expect(views.map(({ id }) => id)).not.toContain(listed?.id);
    const stored = await endpointOf(after);
    expect(vault.open(stored?.secret ?? "")).toBe("whsec_second");
    expect(vault.open(stored?.previousSecret ?? "")).toBe(WEBHOOK_SECRET);
    expect(stored?.previousSecret).not.toBe(sealedThen);
    for (const forgotten of [keys(OLD), keys(OLD, NEW)]) {
      expect(await refusalOf(forgotten)).toStartWith(REPLACED);
    }
    expect(await rotate(keys(NEW, OLD))).toBe(0);
  });

  test("a rotation waits for processes that would seal with another key, and names them", async () => {
    const old = await open(keys(OLD));
    await applySetupFile(old, setupWithWebhook());
    const refused = await rotate(keys(NEW, OLD), 1_500).catch((error) => `${error.message}`);
    expect(refused).toStartWith("Nothing was re-encrypted: another ENCRYPTION_KEY is in use by ");
    expect(refused).toContain(`:${process.pid}`);
    const endpoint = await endpointOf(old);
    expect(old.secrets.vault.open(endpoint?.secret ?? "")).toBe(WEBHOOK_SECRET);
    // Once it is announced, nobody starts with another key behind its back.
    expect(await refusalOf(keys(OLD))).toStartWith("Secrets are being re-encrypted");
    const rotating = rotate(keys(NEW, OLD), 30_000);
    await close(old);
    expect(await rotating).toBeGreaterThan(0);
    expect(await refusalOf(keys(NEW))).toBe("started");
  });

  test("while keys change over, processes with either order of the two keys read each other's secrets", async () => {
    const first = await open(keys(OLD, NEW));
    await applySetupFile(first, setupWithWebhook());
    const second = await open(keys(NEW, OLD));
    await issueAccess(second, "GLS_ITA", "signing-secrets");
    await issueAccess(first, "GLS_ITA", "signing-secrets");
    for (const { secrets, redis } of [first, second]) {
      const sealed = secretsInForce(await courierOf({ redis }));
      expect(sealed.map(secrets.vault.open)).toContain("sig_gls_1");
      expect(sealed).toHaveLength(3);
    }
  });

  test("a process that was suspended during a rotation seals nothing with the replaced key", async () => {
    const asleep = await open(keys(OLD));
    await applySetupFile(asleep, setupWithWebhook());
    await asleep.redis.del(KEY_USERS_KEY);
    expect(await rotate(keys(NEW, OLD))).toBeGreaterThan(0);
    const refusal = () => {
      try {
        asleep.secrets.vault.seal("x");
        return "";
      } catch (error) {
        return `${error}`;
      }
    };
    await eventually(() => refusal().includes("has been replaced"), "it has noticed");
  });

  test("an aborted rotation is undone with the keys swapped", async () => {
    const old = await open(keys(OLD));
    await applySetupFile(old, setupWithWebhook());
    await rotate(keys(NEW, OLD), 0).catch(() => {});
    await close(old);
    expect(await rotate(keys(OLD, NEW), 5_000)).toBe(0);
    expect(await refusalOf(keys(OLD))).toBe("started");
  });

  test("a secret that neither key opens stops the rotation by name, and the store keeps its key", async () => {
    const old = await open(keys(OLD));
    await applySetupFile(old, setupWithWebhook());
    const endpoint = await endpointOf(old);
    if (!endpoint) throw new Error("no endpoint");
    const odd = { ...endpoint, secret: vaultOf(THIRD).seal("x") };
    await saveEntity(old.redis, "endpoint", endpoint.id, odd);
    await close(old);
    const refused = await rotate(keys(NEW, OLD), 5_000).catch((error) => `${error.message}`);
    expect(refused).toStartWith(`endpoint ${endpoint.id}: `);
    expect(await refusalOf(keys(NEW))).toStartWith("ENCRYPTION_KEY is not the key");
  });

  async function courierOf({ redis }: Pick<Runtime, "redis">) {
    const courier = await readEntity(redis, "courier", "GLS_ITA");
    if (!courier) throw new Error("no courier");
    return courier;
  }
});

function opens(vault: Vault, text: string): boolean {
  return text.length >= 38 && vault.isCurrent(text);
}

describe("files of generated secrets", () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-secret-files-"));
  });

  test("one that others may read, or that holds nothing, stops the start", async () => {
    const server = await startTestRedis();
    const config = { ...readConfig({ DATA_DIR: folder }), redisUrl: server.address };
    await (await openRuntime(config, log)).close();
    const path = join(folder, "secrets", "encryption-key");
    await chmod(path, 0o644);
    await expect(openRuntime(config, log)).rejects.toThrow(
      /encryption-key is open to other users .*chmod 600/,
    );
    await chmod(path, 0o600);
    await (await openRuntime(config, log)).close();
    await writeFile(path, "");
    await expect(openRuntime(config, log)).rejects.toThrow("holds no secret");
    await server.stop();
    await rm(folder, { recursive: true });
  });
});

describe("the programs, on an embedded store", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-key-programs-"));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const env = (key: string, previous = "") => ({
    DATA_DIR: folder,
    ENCRYPTION_KEY: key,
    ENCRYPTION_KEY_PREVIOUS: previous,
    LOG_LEVEL: "error",
  });
  const run = (keys: Record<string, string>, ...args: string[]) =>
    outcomeOf(startCommand(["bun", "cli/main.ts", ...args], keys));

  test("a wrong key is one line and status 1, and npx waybill reencrypt says when the previous key can be removed", async () => {
    const first = await openRuntime(readConfig(env(OLD)), log);
    await applySetupFile(first, setupWithWebhook());
    await first.close();
    const { errors, status } = await run(env(THIRD), "start", "--quiet");
    expect([status, errors.trim().split("\n").length]).toEqual([1, 1]);
    expect(errors).toStartWith(WRONG);
    const lacking = await run(env(NEW), "reencrypt");
    expect(lacking.status).toBe(1);
    expect(lacking.errors).toStartWith("ENCRYPTION_KEY_PREVIOUS must be set too");
    const done = await run(env(NEW, OLD), "reencrypt");
    expect([done.status, done.errors]).toEqual([0, ""]);
    expect(done.output).toMatch(
      /^\d+ secrets? re-encrypted; ENCRYPTION_KEY_PREVIOUS can be removed/,
    );
    // What is sealed with another key is still what the file says.
    const after = await openRuntime(readConfig(env(NEW)), log);
    expect(await applySetupFile(after, setupWithWebhook())).toBe(0);
    await after.close();
  }, 300_000);
});

test.each([
  ["api", "JWT_SECRET", API],
  ["ingest", "JWT_SECRET", INGEST],
  ["panel", "PANEL_TOKEN", PANEL],
] as const)(
  "%s on a second machine without the secrets of the first one does not start, and says that it lacks %s",
  async (_, name, { start }) => {
    const server = await startTestRedis();
    const folder = await mkdtemp(join(tmpdir(), "waybill-key-machines-"));
    const on = (machine: string, more: Record<string, string>) => {
      const env = { DATA_DIR: join(folder, machine), ENCRYPTION_KEY: NEW, ...more };
      const ports = { INGEST_PORT: "0", API_PORT: "0", PANEL_PORT: "0" };
      return openRuntime({ ...readConfig({ ...env, ...ports }), redisUrl: server.address }, log);
    };
    const secrets = { JWT_SECRET: "jwt-secret-of-the-first", PANEL_TOKEN };
    const first = await on("first", secrets);
    const second = await on("second", {});
    await expect(start(second, [])).rejects.toThrow(`${name} is not set`);
    for (const { close } of [first, second]) await close();
    await server.stop();
    await rm(folder, { recursive: true });
  },
);

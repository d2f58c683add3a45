/** A confirmation of labels whose API process dies, or whose answer is lost, loses neither its transmission nor its slip. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import { type Answer, type Merchant, signIn } from "#test/support/clients/merchant.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { productEnv } from "#test/support/product/product.ts";
import { NO_CLICKHOUSE } from "#test/support/product/runtime.ts";
import { pdfText } from "#test/support/rendered-label.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { type LabelGateway, startLabelGateway } from "#test/support/servers/label-gateway.ts";
import { type RedisProxy, startRedisProxy } from "#test/support/servers/redis-proxy.ts";
import { startTestRedis, type TestServer } from "#test/support/servers/servers.ts";

const COURIER = "POSTE_ITA";
const START_LIMIT_MS = 60_000;

let server: TestServer & { readonly address: string };
let proxy: RedisProxy;
let redis: Redis;
let gateway: LabelGateway;
let folder: string;
let env: Record<string, string | undefined>;
let api: ChildProcess;
let panel: ChildProcess;
let merchant: Merchant;

beforeAll(async () => {
  server = await startTestRedis();
  proxy = await startRedisProxy(server.address);
  redis = await connectRedis(server.address, createLog("error"));
  gateway = startLabelGateway();
  folder = await mkdtemp(join(tmpdir(), "waybill-confirm-"));
  const setupFile = join(folder, "setup.json");
  await writeFile(setupFile, JSON.stringify(labelSetup()));
  const [apiPort, panelPort] = [await freePort(), await freePort()];
  env = {
    ...productEnv(),
    API_PORT: String(apiPort),
    PANEL_PORT: String(panelPort),
    SETUP_FILE: setupFile,
    DATA_DIR: join(folder, "data"),
    REDIS_URL: proxy.url,
    LOG_LEVEL: "error",
    PUBLIC_URL: `http://127.0.0.1:${panelPort}`,
    NATIONAL_CARRIER_URL: gateway.url,
    CLICKHOUSE_URL: NO_CLICKHOUSE,
  };
  panel = startRole("panel");
  await Promise.all([startApi(), isAnswering("PANEL_PORT", "healthz")]);
}, 300_000);

afterAll(async () => {
  for (const role of [api, panel]) await kill(role);
  await redis.close();
  await proxy.stop();
  await server.stop();
  await gateway.stop();
  await rm(folder, { recursive: true, force: true });
});

function startRole(role: "api" | "panel"): ChildProcess {
  return spawn("bun", [`${role}/main.ts`], { env, stdio: ["ignore", "ignore", "inherit"] });
}

async function startApi(): Promise<void> {
  api = startRole("api");
  await isAnswering("API_PORT", "readyz");
  merchant = await signIn(`http://127.0.0.1:${env["API_PORT"]}`, "key_acme_main");
}

async function isAnswering(port: "API_PORT" | "PANEL_PORT", path: string): Promise<void> {
  const url = `http://127.0.0.1:${env[port]}/${path}`;
  await eventually(
    async () => (await fetch(url).catch(() => null))?.status === 200,
    `${port} answers`,
    START_LIMIT_MS,
  );
}

async function kill(role: ChildProcess): Promise<void> {
  if (role.exitCode !== null || role.signalCode !== null) return;
  const ended = new Promise((resolve) => role.once("exit", resolve));
  role.kill("SIGKILL");
  await ended;
}

async function makeLabels(count: number): Promise<{ id: number; reference: string }[]> {
  const made: { id: number; reference: string }[] = [];
  for (let at = 0; at < count; at += 1) {
    const { status, body } = await merchant.call(
      "POST",
      "/v2/labels",
      labelBody({ courier: COURIER }),
    );
    expect(status).toBe(201);
    made.push(body);
  }
  return made;
}

const confirm = (labelIds: readonly number[]): Promise<Answer> =>
  merchant.call("POST", "/v2/labels/confirm", { courier: COURIER, labelIds });
const idsOf = (made: ReadonlyArray<{ id: number }>) => made.map(({ id }) => id);

/** Starts a confirmation whose API process is killed while `reach` has brought it to a certain point. */
async function killedAt(labelIds: readonly number[], reach: () => Promise<unknown>): Promise<void> {
  const lost = confirm(labelIds).catch(() => null);
  await reach();
  await kill(api);
  expect(await lost).toBeNull();
  gateway.behave("answer");
  proxy.heal();
  // The lock of the process that is gone ends by itself after a minute.
  for await (const keys of redis.scanIterator({ MATCH: "*lock*" })) {
    if (keys.length > 0) await redis.del(keys);
  }
  await startApi();
}

async function expectSlip(answer: Answer, made: ReadonlyArray<{ reference: string }>) {
  const slip = await fetch(answer.headers.get("location") ?? "");
  expect(slip.status).toBe(200);
  const text = pdfText(new Uint8Array(await slip.arrayBuffer()));
  for (const { reference } of made) expect(text).toContain(reference);
  expect(text).toContain(answer.body.transmissions[0].transmissionNumber);
}

describe("the API dies", () => {
  test("while the carrier has not answered: the retry opens one transmission, at the carrier too", async () => {
    const made = await makeLabels(3);
    const before = gateway.transmissions();
    gateway.behave("do it and hold the answer");
    await killedAt(idsOf(made), () =>
      eventually(() => gateway.transmissions() === before + 1, "the carrier has confirmed"),
    );
    const answer = await confirm(idsOf(made));
    expect([answer.status, answer.body.confirmedIds]).toEqual([201, idsOf(made)]);
    expect(gateway.transmissions()).toBe(before + 1);
    await expectSlip(answer, made);
  }, 300_000);

  test("after the carrier's answer, before it is recorded: the same", async () => {
    // Redis is given up after ten seconds of silence, and the slip is made by then: this process has made one before.
    expect((await confirm(idsOf(await makeLabels(1)))).status).toBe(201);
    const made = await makeLabels(3);
    const before = gateway.transmissions();
    gateway.behave("do it and hold the answer");
    await killedAt(idsOf(made), async () => {
      await eventually(() => gateway.transmissions() === before + 1, "the carrier has confirmed");
      proxy.lose("requests");
      gateway.release();
      await eventually(() => proxy.lost().includes(":slip:"), "the API asks for it to be recorded");
    });
    const answer = await confirm(idsOf(made));
    expect([answer.status, answer.body.confirmedIds]).toEqual([201, idsOf(made)]);
    expect(gateway.transmissions()).toBe(before + 1);
    await expectSlip(answer, made);
  }, 300_000);

  test("after it is recorded, before the answer: the retry gets the same transmission and its slip", async () => {
    const made = await makeLabels(3);
    const before = gateway.transmissions();
    const isConfirmed = async (id = 0) => {
      const [label = ""] = await redis.keys(`*:lb:${id}`);
      return redis.hExists(label, "tx");
    };
    gateway.behave("do it and hold the answer");
    await killedAt(idsOf(made), async () => {
      await eventually(() => gateway.transmissions() === before + 1, "the carrier has confirmed");
      proxy.lose("replies");
      gateway.release();
      await eventually(() => isConfirmed(made[0]?.id), "the transmission is recorded");
    });
    const answer = await confirm(idsOf(made));
    expect([answer.status, answer.body.alreadyConfirmedIds]).toEqual([200, idsOf(made)]);
    expect(gateway.transmissions()).toBe(before + 1);
    await expectSlip(answer, made);
  }, 300_000);
});

test("an answer that got lost is given again: same Location, same slip", async () => {
  const made = await makeLabels(2);
  const first = await confirm(idsOf(made));
  const again = await confirm(idsOf(made));
  expect([first.status, again.status]).toEqual([201, 200]);
  expect(again.headers.get("location")).toBe(first.headers.get("location"));
  expect(again.body.transmissions).toEqual(first.body.transmissions);
  await expectSlip(again, made);
});

test("a carrier that was unavailable is called again under the same key, and under a new one after its refusal", async () => {
  const made = await makeLabels(1);
  gateway.behave("do it and fail");
  expect((await confirm(idsOf(made))).status).toBe(502);
  const before = gateway.transmissions();
  gateway.behave("refuse");
  expect((await confirm(idsOf(made))).status).toBe(422);
  gateway.behave("answer");
  expect((await confirm(idsOf(made))).status).toBe(201);
  expect(gateway.transmissions()).toBe(before + 1);
  const [failed, refused, done] = gateway.keys().slice(-3);
  expect([failed === refused, refused === done]).toEqual([true, false]);
});

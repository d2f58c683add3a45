/**
 * Two versions side by side on one store, as in a rolling upgrade: the version before keeps taking events while this one
 * starts, both work, and the old one is stopped. The version before is that of `PREVIOUS_VERSION`, or the last tag before this
 * commit; a clone without either cannot run this.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { noteSkipped, startMeasuring } from "#test/support/measured.ts";
import { BARE, newProduct, type Product, productEnv } from "#test/support/product/product.ts";
import { type RedisServer, startRedisServer } from "#test/support/servers/redis-server.ts";

const SHIPMENTS = 60;
const EVENTS_BETWEEN = 200;
const LIMIT_MS = 60_000;
const SECRETS = {
  ENCRYPTION_KEY: "encryption-key-of-the-tests",
  JWT_SECRET: "jwt-secret-of-the-tests-0123456789",
};

function git(...args: string[]): string {
  const { exitCode, stdout } = Bun.spawnSync(["git", ...args], { stderr: "ignore" });
  return exitCode === 0 ? String(stdout).trim() : "";
}

const named = productEnv()["PREVIOUS_VERSION"] || git("describe", "--tags", "--abbrev=0", "HEAD^");
const previous = named && git("rev-parse", "--verify", "--quiet", "--short", `${named}^{commit}`);
const NAME = "two versions side by side on one store";
if (!previous)
  await noteSkipped("Hurt everything", NAME, "no tag before this commit, and no --previous");

describe.skipIf(!previous)(`from ${previous}`, () => {
  let folder: string;
  let server: RedisServer;
  let before: Product;
  let now: Product;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-before-"));
    await mkdir(folder, { recursive: true });
    const unpack = `git archive ${previous} | tar -x -C ${folder}`;
    expect(Bun.spawnSync(["sh", "-c", unpack]).exitCode).toBe(0);
    await symlink(resolve("node_modules"), join(folder, "node_modules"));
    server = await startRedisServer();
    const env = { ...SECRETS, REDIS_URL: server.url };
    // Where the programs of 0.1.0 were.
    const places = ["cli/main.ts start", "cli/start/main.ts", "start/main.ts"].map((one) =>
      one.split(" "),
    );
    const [program = "", ...args] =
      places.find(([path = ""]) => existsSync(join(folder, path))) ?? [];
    const old = ["bun", join(folder, program), ...args, "--quiet"] as const;
    before = await newProduct(old, testSetup(), env);
    now = await newProduct(BARE, testSetup(), env);
    await before.start();
  }, 300_000);

  afterAll(async () => {
    await Promise.all([before.end(), now.end()]);
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  }, 300_000);

  test("a rolling upgrade loses nothing and doubles nothing, whichever version did the work", async () => {
    const ids = await createShipments(before, "ROLL", SHIPMENTS);
    const measuring = startMeasuring("Hurt everything", `${NAME}: ${named} and this one`);
    const urls = { ingest: before.ingest, otherIngest: now.ingest, state: now.state };
    const stream = startEventStream(urls, "ROLL", SHIPMENTS);
    const answered = (url: string) => stream.answered.get(url) ?? 0;
    await stream.grows("the old version accepts events", EVENTS_BETWEEN);
    await now.start();
    await eventually(() => answered(now.ingest) > 10, "the new version accepts too", LIMIT_MS);
    const since = answered(before.ingest);
    await eventually(() => answered(before.ingest) > since + 10, "so does the old one", LIMIT_MS);
    await before.kill(false);
    const killedAtMs = performance.now();
    await stream.grows("the new version goes on alone", EVENTS_BETWEEN);
    measuring.recovered(killedAtMs);
    await before.start();
    await stream.grows(
      "the old version comes back, as when an upgrade is taken back by half",
      EVENTS_BETWEEN,
    );
    await before.terminate();
    await stream.grows("the upgrade is done", EVENTS_BETWEEN);
    await stream.stop();
    for (const { output } of [before, now]) expect(output()).not.toContain("dead letter");
    const counted = await expectExactlyOnce(now, "ROLL", ids, stream.accepted);
    await measuring.done({ faults: 3, ...counted });
  }, 300_000);
});

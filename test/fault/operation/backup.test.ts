/** `npx waybill backup` and `npx waybill restore`: both embedded stores of one moment, taken under load, and the same again elsewhere. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { appendFile, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { push } from "#test/support/clients/courier.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { request } from "#test/support/clients/merchant.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { BARE, PANEL_TOKEN, type Product, startProduct } from "#test/support/product/product.ts";

const SHIPMENTS = 100;
const PER_MESSAGE = 500;

describe("a backup of the embedded stores", () => {
  let folder: string;
  let backup: string;
  let product: Product | null = null;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-backup-"));
    backup = join(folder, "backup");
  });

  afterAll(async () => {
    await product?.end();
    await rm(folder, { recursive: true, force: true });
  });

  const run = (verb: "backup" | "restore", target: string, dataDir: string, ...options: string[]) =>
    outcomeOf(
      startCommand(["bun", "cli/main.ts", verb, target, ...options], {
        DATA_DIR: join(folder, dataDir),
      }),
    );

  async function startOn(dataDir: string): Promise<Product> {
    product = await startProduct(testSetup(), { DATA_DIR: join(folder, dataDir) });
    return product;
  }

  async function ask({ panel }: Product, path: string, body?: unknown) {
    const headers = { authorization: `Bearer ${PANEL_TOKEN}` };
    return (await request(body ? "POST" : "GET", `${panel}${path}`, body, headers)).body;
  }

  test("taken while couriers send, it has every event that was accepted before, in both stores, once", async () => {
    const first = await startOn("first");
    const ids = await createShipments(first, "BAK", SHIPMENTS);
    const stream = startEventStream(first, "BAK", SHIPMENTS);
    await stream.grows("events are accepted", 1_000);
    const before = new Map(stream.accepted);
    const measuring = startMeasuring("Backup and restore", "taken under load, restored elsewhere");
    const { output, errors, status } = await run("backup", backup, "first");
    expect([status, errors]).toEqual([0, ""]);
    expect(output).toContain(backup);
    await stream.grows("events are accepted afterwards", 100);
    await stream.stop();
    await first.end();

    expect((await run("restore", backup, "second")).errors).toBe("");
    const second = await startOn("second");
    const known = [...before.values()];
    for (let from = 0; from < known.length; from += PER_MESSAGE) {
      const { body } = await push(second.ingest, known.slice(from, from + PER_MESSAGE));
      const outcomes = new Set(body.results.map(({ outcome }: { outcome: string }) => outcome));
      expect([...outcomes]).toEqual(["DUPLICATE"]);
    }
    let figures = "";
    await eventually(
      async () => {
        const { ledger } = await ask(second, "/panel/api/overview");
        const query = "SELECT count() AS n FROM events FINAL";
        const { data } = await ask(second, "/panel/api/sql", { query });
        figures = `${JSON.stringify(data)} ${JSON.stringify(ledger)}`;
        return Number(data?.[0]?.n) === ledger.applied && ledger.applied >= before.size;
      },
      () => `ClickHouse has exactly the facts that Redis has applied: ${figures}`,
    );

    // Couriers send again what the backup is too old to know.
    const all = [...stream.accepted.values()];
    for (let from = 0; from < all.length; from += PER_MESSAGE) {
      const { status: answered } = await push(second.ingest, all.slice(from, from + PER_MESSAGE));
      expect(answered).toBe(200);
    }
    const counted = await expectExactlyOnce(second, "BAK", ids, stream.accepted);
    await measuring.done({ ...counted, further: { "events before the backup": before.size } });
    await second.terminate();
  }, 300_000);

  test("is taken while nothing runs too, is readable by its owner alone, and leaves nothing behind", async () => {
    const cold = join(folder, "cold");
    const { output, errors, status } = await run("backup", cold, "second", "--json");
    expect([status, errors]).toEqual([0, ""]);
    const { files } = await Bun.file(join(cold, "waybill-backup.json")).json();
    expect(JSON.parse(output)).toMatchObject({ folder: cold, files: Object.keys(files).length });
    expect((await stat(cold)).mode & 0o077).toBe(0);
    expect(await readdir(join(folder, "second", "redis"))).not.toContain("dump.rdb");
    const shadow = join(folder, "second", "clickhouse", "shadow");
    expect((await readdir(shadow)).filter((name) => name.startsWith("waybill"))).toEqual([]);
    expect(await readdir(folder)).not.toContain("cold.part");
  });

  test("restored by a command that is killed, it starts no role until it is restored again", async () => {
    const dataDir = join(folder, "interrupted");
    const env = { DATA_DIR: dataDir };
    const killed = startCommand(["bun", "cli/main.ts", "restore", backup], env);
    await eventually(
      () => existsSync(join(dataDir, "restore-unfinished")),
      "the restore has begun",
    );
    killed.kill("SIGKILL");
    await killed.exited;
    for (const command of [[...BARE], ["bun", "ingest/main.ts"], ["bun", "processors/main.ts"]]) {
      const { errors, status } = await outcomeOf(startCommand(command, env));
      expect(status).toBe(1);
      expect(errors).toBe(
        `A restore into ${dataDir} was interrupted: run \`npx waybill restore ${backup}\` again with this DATA_DIR. ` +
          "It starts over. Without the backup, use another DATA_DIR.\n",
      );
    }
    const { output, errors, status } = await run("restore", backup, "interrupted", "--json");
    expect([status, errors]).toEqual([0, ""]);
    expect(JSON.parse(output)).toMatchObject({ dataDir, takenAt: expect.any(String) });
    expect(await readdir(dataDir)).not.toContain("restore-unfinished");
  }, 300_000);

  test("nothing is overwritten, and nothing that is damaged or incomplete is restored", async () => {
    expect((await run("backup", backup, "second")).errors).toContain("name a folder that does not");
    expect((await run("restore", backup, "second")).errors).toContain("has data already");
    expect((await run("restore", join(folder, "nothing"), "third")).errors).toContain(
      "not a complete backup",
    );
    await appendFile(join(backup, "redis", "dump.rdb"), "x");
    const { errors, status } = await run("restore", backup, "third");
    expect([errors, status]).toEqual([
      "The backup is damaged: redis/dump.rdb is not what was written.\n",
      1,
    ]);
    const manifest = join(backup, "waybill-backup.json");
    const text = await readFile(manifest, "utf8");
    for (const path of ["secrets/../../out", "/etc/x", "clickhouse/events/a' b/data.bin"]) {
      await writeFile(manifest, text.replace('"redis/dump.rdb"', `"${path}"`));
      expect((await run("restore", backup, "third")).errors).toContain(
        "another version of Waybill",
      );
    }
    const left = await readdir(join(folder, "third")).catch(() => []);
    expect(left).toEqual([]);
  });

  test("servers are left to their own means", async () => {
    const env = { DATA_DIR: join(folder, "fourth"), REDIS_URL: "redis://127.0.0.1:1" };
    for (const verb of ["backup", "restore"]) {
      const started = startCommand(["bun", "cli/main.ts", verb, backup], env);
      const { errors, status } = await outcomeOf(started);
      expect([status, errors.startsWith("Only the embedded stores are")]).toEqual([1, true]);
    }
  });
});

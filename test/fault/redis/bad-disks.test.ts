/**
 * Disks that fill up or turn read-only, under the embedded Redis and under the embedded ClickHouse. Needs Linux and the right
 * to mount. `disk-full.test.ts` fills the disk of Redis without it.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import {
  createShipments,
  type EventStream,
  startEventStream,
} from "#test/support/clients/event-stream.ts";
import { readPanel } from "#test/support/clients/operator.ts";
import { analysedEvents } from "#test/support/data/analysed-events.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { noteSkipped, startMeasuring } from "#test/support/measured.ts";
import { BARE, newProduct, type Product } from "#test/support/product/product.ts";
import { mayMount, mountDisk, type TestDisk } from "#test/support/servers/mounts.ts";

const SHIPMENTS = 20;
const EVENTS_BETWEEN = 100;
const DISK_MIB = 256;
const LIMIT_MS = 60_000;
const NAME = "read-only disk under Redis, full and read-only disk under ClickHouse";

const canMount = mayMount();
if (!canMount)
  await noteSkipped("Hurt everything", NAME, "this machine does not let us mount a disk");

describe.skipIf(!canMount)("with disks of their own", () => {
  let product: Product;
  let redisDisk: TestDisk;
  let clickhouseDisk: TestDisk;
  let stream: EventStream;
  const refused: number[] = [];

  beforeAll(async () => {
    product = await newProduct(BARE, testSetup());
    redisDisk = await mountDisk(join(product.dataDir, "redis"), DISK_MIB);
    clickhouseDisk = await mountDisk(join(product.dataDir, "clickhouse"), DISK_MIB);
    await product.start();
  }, 300_000);

  afterAll(async () => {
    await product.terminate();
    redisDisk.unmount();
    clickhouseDisk.unmount();
    await product.end();
  }, 300_000);

  /** Entries that the analytics have still to write. */
  async function waiting(): Promise<number> {
    const { lag } = await readPanel(product, "/overview");
    return lag.find(({ group }: { group: string }) => group === "analytics")?.entries ?? 0;
  }

  test("nothing is lost or doubled, and everything goes on once they can be written again", async () => {
    const ids = await createShipments(product, "DISKS", SHIPMENTS);
    const measuring = startMeasuring("Hurt everything", NAME);
    stream = startEventStream(product, "DISKS", SHIPMENTS, {
      paceMs: 100,
      onAnswer: ({ status }) => {
        if (status !== 200) refused.push(status);
      },
    });
    await stream.grows("events are accepted", EVENTS_BETWEEN);

    redisDisk.protect();
    await product.killRedis();
    const before = refused.length;
    await eventually(() => refused.length > before + 3, "couriers are refused", LIMIT_MS);
    redisDisk.unprotect();
    const writableAtMs = performance.now();
    await stream.grows("one is accepted");
    measuring.recovered(writableAtMs);
    await stream.grows("events are accepted again", EVENTS_BETWEEN);

    await clickhouseDisk.fill();
    await eventually(async () => (await waiting()) > EVENTS_BETWEEN, "they pile up", LIMIT_MS);
    await stream.grows("events are accepted beside a full disk of ClickHouse", EVENTS_BETWEEN);
    await clickhouseDisk.empty();
    await eventually(async () => (await waiting()) < EVENTS_BETWEEN, "they are written", LIMIT_MS);

    await product.kill(false);
    clickhouseDisk.protect();
    await product.start();
    await stream.grows("events are accepted beside a read-only disk of ClickHouse", EVENTS_BETWEEN);
    await eventually(async () => (await waiting()) > EVENTS_BETWEEN, "they pile up", LIMIT_MS);
    clickhouseDisk.unprotect();

    await stream.stop();
    expect([...new Set(refused)]).toEqual([503]);
    expect(product.output()).not.toContain("dead letter");
    const counted = await expectExactlyOnce(product, "DISKS", ids, stream.accepted);
    await product.terminate();
    const analysed = await analysedEvents({ DATA_DIR: product.dataDir });
    expect(analysed).toBe(stream.accepted.size);
    const further = { "answers of 503": refused.length, "events in ClickHouse": analysed };
    await measuring.done({ faults: 3, ...counted, further });
  }, 300_000);
});

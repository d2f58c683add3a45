/**
 * The disk under the embedded Redis is full: the server ends itself, is started again and ends again with the next write,
 * until there is room. Nothing that was acknowledged is lost, and nobody has to repair anything.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { type Product, productEnv, startProduct } from "#test/support/product/product.ts";

const SHIPMENTS = 20;
const EVENTS_BETWEEN = 100;

let folder: string;
/** While it is there, no file of a server that starts can grow past 1 KiB: writes fail as on a full disk. */
let full: string;
let starts: string;
let product: Product;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-disk-"));
  full = join(folder, "full");
  starts = join(folder, "starts");
  const server = join(folder, "redis-server");
  const real = Bun.which("redis-server");
  await writeFile(
    server,
    `#!/bin/sh\nif [ -f ${full} ]; then echo start >> ${starts}; trap '' XFSZ; ulimit -S -f 1; fi\nexec ${real} "$@"\n`,
  );
  await chmod(server, 0o700);
  const env = { PATH: `${folder}:${productEnv()["PATH"]}` };
  product = await startProduct(testSetup(), env);
}, 300_000);

afterAll(async () => {
  await product.end();
  await rm(folder, { recursive: true, force: true });
}, 300_000);

test("a full disk is answered 503, and everything continues without loss once there is space", async () => {
  const ids = await createShipments(product, "DISK", SHIPMENTS);
  const measuring = startMeasuring("Hurt everything", "full disk under the embedded Redis");
  const refused: number[] = [];
  const stream = startEventStream(product, "DISK", SHIPMENTS, {
    paceMs: 100,
    onAnswer: ({ status }) => {
      if (status !== 200) refused.push(status);
    },
  });
  await stream.grows("events are accepted", EVENTS_BETWEEN);
  await writeFile(full, "");
  await product.killRedis();
  const startsSeen = async () =>
    (
      await Bun.file(starts)
        .text()
        .catch(() => "")
    ).split("\n").length;
  await eventually(
    async () => (await startsSeen()) > 2,
    "it has ended and is started again",
    60_000,
  );
  await eventually(() => refused.length > 0, "couriers are refused");
  await rm(full);
  const freedAtMs = performance.now();
  await stream.grows("one is accepted");
  measuring.recovered(freedAtMs);
  await stream.grows("events are accepted again", EVENTS_BETWEEN);
  await stream.stop();
  expect([...new Set(refused)]).toEqual([503]);
  expect(product.output()).not.toContain("dead letter");
  const counted = await expectExactlyOnce(product, "DISK", ids, stream.accepted);
  await measuring.done({ faults: 1, ...counted, further: { "answers of 503": refused.length } });
}, 300_000);

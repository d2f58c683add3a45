/**
 * Shipments move to the archive and back, and those whose retention is over are removed, while any process of any role, Redis and
 * ClickHouse are killed at random points.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startReader } from "#test/support/clients/archive-reader.ts";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { askPanel } from "#test/support/clients/operator.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { type Roles, startRoles } from "#test/support/product/roles.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";

const CLICKHOUSE = "ClickHouse";
const SHIPMENTS = 150;
const NEW_SHIPMENTS = 20;
/** While shipments move, at least and at most, and while they are removed. */
const KILLS = { moving: 6, movingMost: 90, removing: 4 };
const GAP_MS = { least: 200, spread: 1_000 };
/** Whatever has not ended is over after 180 days. */
const SILENCE_SECONDS = 181 * 86_400;
/** Longer than the clock moves while shipments move. */
const MONTHS = 600;
/** As far as one call moves the clock; six of them are longer than the retention. */
const DECADE_SECONDS = 3_650 * 86_400;
const DECADES = 6;
const ENV = {
  ARCHIVE_AFTER_DAYS: "1",
  ARCHIVE_ROUND_SECONDS: "1",
  SHIPMENT_RETENTION_MONTHS: String(MONTHS),
};

let roles: Roles;
let clickhouse: ClickhouseServer;

beforeAll(async () => {
  clickhouse = await startClickhouseHttp();
  const { address } = clickhouse;
  const env = { ...ENV, CLICKHOUSE_URL: address, CLICKHOUSE_READ_URL: address };
  roles = await startRoles(testSetup(), "one Redis server", env);
}, 300_000);

afterAll(async () => {
  await roles.end();
  await clickhouse.stop();
}, 300_000);

async function killOne(): Promise<void> {
  await Bun.sleep(GAP_MS.least + Math.random() * GAP_MS.spread);
  const names = [...roles.names, CLICKHOUSE];
  const name = names[Math.floor(Math.random() * names.length)] ?? CLICKHOUSE;
  if (name !== CLICKHOUSE) return roles.killAndStart(name);
  await clickhouse.kill();
  await clickhouse.restart();
}

async function advance(advanceSeconds: number): Promise<void> {
  const isMoved = () =>
    askPanel(roles, "POST", "/clock", { advanceSeconds }).then(
      ({ status }) => status === 200,
      () => false,
    );
  await eventually(isMoved, "the clock has moved", 60_000);
}

/** @returns null while something is unavailable */
async function found(): Promise<number | null> {
  try {
    const merchant = await signIn(roles.api, "key_acme_main");
    const { status, body } = await merchant.call("GET", "/v2/shipments?limit=1");
    return status === 200 ? body.total : null;
  } catch {
    return null;
  }
}

async function archived(): Promise<number> {
  const answer = await askPanel(roles, "GET", "/overview").catch(() => null);
  return answer?.body?.stores?.archive?.shipments ?? 0;
}

test("kills of any role's processes while shipments are archived, come back and are removed lose and double nothing", async () => {
  const ids = await createShipments(roles, "ARC", SHIPMENTS);
  const stream = startEventStream(roles, "ARC", SHIPMENTS, { senders: 1, paceMs: 100 });
  await eventually(() => stream.accepted.size >= 2 * SHIPMENTS, "each has events", 60_000);
  const reader = startReader(roles, ids);
  const measuring = startMeasuring("Kill everything", "any of ten processes while archiving");
  const until = Date.now() + RUN_MS;
  let kills = 0;
  for (; kills < KILLS.moving || (Date.now() < until && kills < KILLS.movingMost); kills += 1) {
    await advance(SILENCE_SECONDS);
    const before = stream.accepted.size;
    const killedAtMs = performance.now();
    await killOne();
    await roles.ready();
    await eventually(() => stream.accepted.size > before + 40, "late events arrive", 60_000);
    measuring.recovered(killedAtMs);
    reader.check();
  }
  await stream.stop();
  await reader.stop();
  expect(reader.counts.catchUps).toBeGreaterThan(0);
  const counted = await expectExactlyOnce(roles, "ARC", ids, stream.accepted);

  await advance(SILENCE_SECONDS);
  await eventually(async () => (await archived()) === SHIPMENTS, "all are archived", 120_000);
  for (let decade = 0; decade < DECADES; decade += 1) await advance(DECADE_SECONDS);
  const fresh = await createShipments(roles, "NEW", NEW_SHIPMENTS);
  const later = startEventStream(roles, "NEW", NEW_SHIPMENTS, {
    senders: 1,
    paceMs: 250,
    sentBefore: 500_000,
  });
  let left: number | null = null;
  for (let removing = 0; removing < KILLS.removing || left !== NEW_SHIPMENTS; removing += 1) {
    await killOne();
    kills += 1;
    left = (await found()) ?? left;
  }
  await roles.ready();
  await later.stop();
  const accepted = new Map([...stream.accepted, ...later.accepted]);
  await expectExactlyOnce(roles, "NEW", fresh, accepted);
  expect(await found()).toBe(NEW_SHIPMENTS);
  await measuring.done({ kills, ...counted });
}, 3_600_000);

/** Invariants 1 and 10 with every role as processes of their own: any of them, and Redis, killed at random points. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import {
  createShipments,
  expectExactlyOnce,
  startEventStream,
} from "#test/support/event-stream.ts";
import { eventually } from "#test/support/eventually.ts";
import { productEnv } from "#test/support/product.ts";
import { type Roles, startRoles } from "#test/support/roles.ts";
import { testSetup } from "#test/support/setup.ts";

/** A longer run: `bun run fault --minutes N`. */
const KILLS = 200;
const MINUTES = Number(productEnv()["FAULT_MINUTES"] ?? 0);
const SHIPMENTS = 600;
const GAP_MS = { least: 20, spread: 500 };
/** Kills between two looks at whether the whole still moves. */
const ROUND = 10;

let roles: Roles;

beforeAll(async () => {
  roles = await startRoles(testSetup());
}, 90_000);

afterAll(() => roles.end(), 30_000);

test(`${KILLS} kills of ingest, processors, api, analytics and Redis lose and double nothing`, async () => {
  const ids = await createShipments(roles, "ROLE", SHIPMENTS);
  const stream = startEventStream(roles, "ROLE", SHIPMENTS);
  const until = Date.now() + MINUTES * 60_000;
  let kills = 0;
  while (kills < KILLS || Date.now() < until) {
    for (let n = 0; n < ROUND; n += 1, kills += 1) {
      await Bun.sleep(GAP_MS.least + Math.random() * GAP_MS.spread);
      await roles.killAndStart(roles.names[Math.floor(Math.random() * roles.names.length)] ?? "");
    }
    await roles.ready();
    const before = stream.accepted.size;
    await eventually(() => stream.accepted.size > before, "events are accepted again", 60_000);
  }
  await roles.ready();
  await stream.stop();
  expect(stream.accepted.size).toBeGreaterThan(KILLS);
  await expectExactlyOnce(roles, "ROLE", ids, stream.accepted);
}, 3_600_000);

/**
 * Invariants 1 and 10 with every role as two processes of their own: any of them, and Redis or a master of its cluster,
 * killed at random points.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createShipments, startEventStream } from "#test/support/clients/event-stream.ts";
import { analysedEvents } from "#test/support/data/analysed-events.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { PANEL_TOKEN } from "#test/support/product/product.ts";
import { type Roles, startRoles } from "#test/support/product/roles.ts";
import { STORES } from "#test/support/servers/stores.ts";

/** Each of the eleven is killed as often, in another order every time: on a cluster a failover takes seconds. */
const ROUNDS = { "one Redis server": 3, "a six-node Redis Cluster": 1 } as const;
const SHIPMENTS = 600;
const GAP_MS = { least: 20, spread: 500 };

describe.each(STORES)("on %s", (store) => {
  let roles: Roles;

  beforeAll(async () => {
    roles = await startRoles(testSetup(), store);
  }, 300_000);

  afterAll(() => roles.end(), 300_000);

  test("kills of any role's processes and of Redis lose and double nothing", async () => {
    const ids = await createShipments(roles, "ROLE", SHIPMENTS);
    const session = await logIn(roles.panel);
    const stream = startEventStream(roles, "ROLE", SHIPMENTS);
    const measuring = startMeasuring("Kill everything", `any of ten processes, on ${store}`);
    const until = Date.now() + RUN_MS / STORES.length;
    let kills = 0;
    const least = ROUNDS[store] * roles.names.length;
    while (kills < least || Date.now() < until) {
      for (const name of shuffled(roles.names)) {
        await Bun.sleep(GAP_MS.least + Math.random() * GAP_MS.spread);
        await roles.killAndStart(name);
        kills += 1;
      }
      // Whether the whole still moves.
      const killedAtMs = performance.now();
      await roles.ready();
      for (const url of [roles.ingest, roles.otherIngest]) {
        const before = stream.answered.get(url) ?? 0;
        const isMoving = () => (stream.answered.get(url) ?? 0) > before;
        await eventually(isMoving, "both processes accept events again", 60_000);
      }
      measuring.recovered(killedAtMs);
    }
    await roles.ready();
    await stream.stop();
    expect(stream.accepted.size).toBeGreaterThan(kills);
    const counted = await expectExactlyOnce(roles, "ROLE", ids, stream.accepted);
    for (const panel of [roles.panel, roles.otherPanel]) {
      const headers = { cookie: session };
      const answer = await fetch(`${panel}/panel/api/overview`, { headers });
      expect(answer.status).toBe(200);
    }
    await roles.halt();
    const analysed = await analysedEvents({ DATA_DIR: roles.dataDir });
    expect(analysed).toBe(stream.accepted.size);
    await measuring.done({ kills, ...counted, further: { "events in ClickHouse": analysed } });
  }, 3_600_000);
});

function shuffled(names: readonly string[]): string[] {
  const ranks = new Map(names.map((name) => [name, Math.random()]));
  return names.toSorted((one, other) => (ranks.get(one) ?? 0) - (ranks.get(other) ?? 0));
}

/** @returns the cookie of an operator in a browser */
async function logIn(panel: string): Promise<string> {
  const body = new URLSearchParams({ token: PANEL_TOKEN });
  const answer = await fetch(`${panel}/panel/login`, { method: "POST", body, redirect: "manual" });
  expect(answer.status).toBe(303);
  return answer.headers.get("set-cookie")?.split(";")[0] ?? "";
}

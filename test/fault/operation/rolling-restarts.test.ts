/**
 * design.md, "Starting, stopping, failing": stopping drains. Two processes of every role are restarted in turn, behind balancers that ask for
 * readiness every second, while 200 requests a second go through them on connections that their clients keep.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { createShipments, numbered } from "#test/support/clients/event-stream.ts";
import { type KeptConnections, keepConnections } from "#test/support/clients/kept-connections.ts";
import { request } from "#test/support/clients/merchant.ts";
import { type RawAnswer, rawRequest } from "#test/support/clients/raw-http.ts";
import { expectExactlyOnce } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { IS_MEASURED, startMeasuring } from "#test/support/measured.ts";
import { type Roles, startRoles } from "#test/support/product/roles.ts";
import { type Balancer, startBalancer } from "#test/support/servers/balancer.ts";
import {
  type ClickhouseServer,
  startClickhouseHttp,
} from "#test/support/servers/clickhouse-http.ts";

/** Of each role, one process after the other; the roles at the same time. */
const ROLLING_RESTARTS = IS_MEASURED ? 20 : 2;
const PROCESSES = [1, 2];
/** As shipped. */
const DRAIN_SECONDS = "5";
/** Requests a second, by role. */
const RATES = { ingest: 100, api: 50, panel: 30, processors: 10, analytics: 10 } as const;
const NAMES = Object.keys(RATES) as (keyof typeof RATES)[];
const SHIPMENTS = 50;
const PREFIX = "RESTART";
const RESTARTED_LIMIT_MS = 120_000;
const HOST_LINE = "Host: waybill.test";

let clickhouse: ClickhouseServer;
let roles: Roles;
const balancers = new Map<string, Balancer>();

beforeAll(async () => {
  clickhouse = await startClickhouseHttp();
  roles = await startRoles(testSetup(), "one Redis server", {
    CLICKHOUSE_URL: clickhouse.address,
    DRAIN_SECONDS,
  });
  for (const role of NAMES) {
    balancers.set(
      role,
      await startBalancer(PROCESSES.map((n) => roles.urls[`${role}-${n}`] ?? "")),
    );
  }
}, 300_000);

afterAll(async () => {
  for (const balancer of balancers.values()) balancer.stop();
  await roles.end();
  await clickhouse.stop();
}, 300_000);

/** What was asked of one role, and what became of it. */
interface Traffic {
  answered: number;
  /** Without a whole answer. */
  broken: number;
  readonly otherStatuses: number[];
}

/** Requests at a steady rate, however late their answers are. @returns what ends it, and waits for the last answers */
function sendSteadily(
  connections: KeptConnections,
  perSecond: number,
  traffic: Traffic,
  next: () => { readonly request: string; readonly onAnswer?: (answer: RawAnswer) => void },
) {
  const under = new Set<Promise<void>>();
  const fromMs = performance.now();
  let sent = 0;

  async function send(): Promise<void> {
    const { request, onAnswer } = next();
    const answer = await connections.ask(request);
    if (answer === null) traffic.broken += 1;
    else if (answer.status !== 200) traffic.otherStatuses.push(answer.status);
    else {
      traffic.answered += 1;
      onAnswer?.(answer);
    }
  }

  const timer = setInterval(() => {
    const due = ((performance.now() - fromMs) / 1_000) * perSecond;
    for (; sent < due; sent += 1) {
      const one = send();
      under.add(one);
      void one.then(() => under.delete(one));
    }
  }, 1_000 / perSecond);
  return async () => {
    clearInterval(timer);
    await Promise.all(under);
    connections.close();
  };
}

/** One event a message. */
function messages(accepted: Map<string, CourierEvent>) {
  let sent = 0;
  return () => {
    sent += 1;
    const event = numbered(`${PREFIX}-${sent % SHIPMENTS}`, sent);
    const body = JSON.stringify({
      schemaVersion: "1.0",
      messageId: `message-${event.eventId}`,
      sentAt: new Date().toISOString(),
      courier: "GLS_ITA",
      events: [event],
    });
    const headers = [
      HOST_LINE,
      "Authorization: Bearer tok_gls_1",
      "Content-Type: application/json",
    ];
    return {
      request: rawRequest("POST", "/v1/events", headers, { body }),
      onAnswer: (answer: RawAnswer) => {
        if (answer.body.includes('"ACCEPTED"')) accepted.set(event.eventId, event);
      },
    };
  };
}

test("rolling restarts of every role refuse and reset not one of 200 requests a second, and lose no event", async () => {
  const ids = await createShipments(roles, PREFIX, SHIPMENTS);
  const key = { apiKey: "key_acme_main" };
  const { token } = (await request("POST", `${roles.api}/v2/auth/token`, key)).body;
  const get =
    (path: string, ...headers: string[]) =>
    () => ({
      request: rawRequest("GET", path, [HOST_LINE, ...headers]),
    });
  const accepted = new Map<string, CourierEvent>();
  const requests = {
    ingest: messages(accepted),
    api: get(`/v2/shipments/${ids[0]}`, `Authorization: Bearer ${token}`),
    panel: get("/ips.txt"),
    processors: get("/healthz"),
    analytics: get("/healthz"),
  };
  const measuring = startMeasuring(
    "Hurt everything",
    `${ROLLING_RESTARTS} rolling restarts of every role, 200 requests a second`,
  );
  const fromMs = performance.now();
  const traffic = new Map<string, Traffic>();
  const ending = NAMES.map((role) => {
    const own: Traffic = { answered: 0, broken: 0, otherStatuses: [] };
    traffic.set(role, own);
    const connections = keepConnections(balancers.get(role)?.url ?? "");
    return sendSteadily(connections, RATES[role], own, requests[role]);
  });

  await Promise.all(
    NAMES.map(async (role) => {
      for (let n = 0; n < ROLLING_RESTARTS * PROCESSES.length; n += 1) {
        const name = `${role}-${PROCESSES[n % PROCESSES.length]}`;
        expect([name, await roles.restart(name)]).toEqual([name, 0]);
        const isBack = () => balancers.get(role)?.routesTo(roles.urls[name] ?? "");
        await eventually(isBack, `${name} is ready again`, RESTARTED_LIMIT_MS);
      }
    }),
  );
  await Promise.all(ending.map((end) => end()));
  const seconds = (performance.now() - fromMs) / 1_000;

  const refused = NAMES.map((role) => [role, balancers.get(role)?.refused()]);
  expect(refused).toEqual(NAMES.map((role) => [role, 0]));
  const all = [...traffic.values()];
  for (const { answered, broken, otherStatuses } of all) {
    expect({ broken, otherStatuses }).toEqual({ broken: 0, otherStatuses: [] });
    expect(answered).toBeGreaterThan(0);
  }
  const counted = await expectExactlyOnce(roles, PREFIX, ids, accepted);
  const requestsInAll = all.reduce((sum, { answered }) => sum + answered, 0);
  await measuring.done({
    ...counted,
    faults: ROLLING_RESTARTS * PROCESSES.length * NAMES.length,
    further: {
      "requests answered": requestsInAll,
      "requests a second": Math.round(requestsInAll / seconds),
      "requests refused or reset": 0,
    },
  });
}, 1_800_000);

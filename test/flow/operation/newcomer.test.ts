/** The whole way, as a newcomer starts it: events over HTTP become state, a signed webhook and a benchmark. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { SetupFile } from "#core/setup/rules/setup.ts";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { linesToTry } from "#demo/welcome.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { type Merchant, request, shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { daysAgo } from "#test/support/data/days.ts";
import { testSetup, WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { newProduct, PANEL_TOKEN, type Product } from "#test/support/product/product.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const OPERATOR = { authorization: `Bearer ${PANEL_TOKEN}` };
/** As many delivered shipments as a lane needs to be reported (document 1, Limits). */
const LANE_SAMPLE = 20;

function setupWith(url: string): SetupFile {
  const setup = testSetup();
  const channel = setup.companies?.[0]?.channels?.[0];
  const webhook = { code: "main", url, alertEmail: "ops@acme.test", secret: WEBHOOK_SECRET };
  Object.assign(channel ?? {}, { webhooks: [webhook] });
  return setup;
}

let receiver: Receiver;
let product: Product;
let merchant: Merchant;

beforeAll(async () => {
  receiver = await startReceiver();
  const env = { WEBHOOK_CA_FILE: AUTHORITY.file, WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8" };
  const command = ["npm", "start", "--", "--quiet"] as const;
  product = await newProduct(command, setupWith(receiver.url), env);
  await product.start();
  merchant = await signIn(product.api, "key_acme_main");
}, 300_000);

afterAll(async () => {
  await product.end();
  await receiver.stop();
}, 300_000);

async function create(numbers: readonly string[], members = {}): Promise<number[]> {
  const shipments = numbers.map((number) => shipmentItem(number, members));
  const { status, body } = await merchant.call("POST", "/v2/shipments", { shipments });
  expect(status).toBe(201);
  return body.items.map(({ id }: { id: number }) => id);
}

const step = (trackingNumber: string, code: string, occurredAt: string) =>
  event({ trackingNumber, occurredAt, status: { code, description: `text of ${code}` } });

describe("one parcel", () => {
  test("is pushed, read, found, and announced by a signed webhook", async () => {
    const [id] = await create(["FLOW-0"]);
    const events = [
      step("FLOW-0", "DEP", "2026-11-10T08:00:00+01:00"),
      step("FLOW-0", "DLV", "2026-11-12T11:30:00+01:00"),
    ];
    const answer = await push(product.ingest, events, { gzip: true, secrets: ["sig_gls_1"] });
    expect(answer.body).toMatchObject({
      accepted: 2,
      duplicate: 0,
      unknownTracking: 0,
      invalid: 0,
    });

    const detail = await eventually(async () => {
      const { body } = await merchant.call("GET", `/v2/shipments/${id}`);
      return body.history.length === events.length ? body : null;
    }, "the shipment has both events");
    expect(detail.status).toBe("DELIVERED");
    expect(detail.statusDate).toBe("2026-11-12 11:30:00");
    expect(detail.history.map(({ statusCode }: { statusCode: string }) => statusCode)).toEqual([
      "DELIVERED",
      "DEPARTED",
    ]);

    const found = await merchant.call(
      "GET",
      "/v2/shipments?status=DELIVERED&trackingNumber=FLOW-0",
    );
    expect([found.body.total, found.body.items[0].id]).toEqual([1, id]);

    const reported = await eventually(
      () => receiver.requests.find(({ body }) => body.data.event.statusCode === "DELIVERED"),
      "the webhook arrives",
    );
    expect(reported.body.data.shipment.id).toBe(id);
    const verdict = verifySignature(
      String(reported.headers["x-service-signature"]),
      [WEBHOOK_SECRET],
      new TextEncoder().encode(reported.raw),
      Date.now(),
    );
    expect(verdict).toBe("valid");
  }, 300_000);
});

describe("a lane", () => {
  test("counts in the benchmark once it has its sample", async () => {
    const numbers = Array.from({ length: LANE_SAMPLE }, (_, n) => `LANE-${n}`);
    await create(numbers, { shipDate: daysAgo(20) });
    const events = numbers.flatMap((number, n) => [
      step(number, "DEP", `${daysAgo(19)}T08:00:00+01:00`),
      step(number, "DLV", `${daysAgo(10 + (n % 4))}T15:00:00+01:00`),
    ]);
    await push(product.ingest, events);
    const ranking = await eventually(async () => {
      const question = { destCap: "00118", couriers: ["GLS_ITA"] };
      const { body } = await merchant.call("POST", "/v2/couriers/delivery-times", question);
      const [first] = body.ranking ?? [];
      return first?.sampleSize >= LANE_SAMPLE ? first : null;
    }, "the benchmark counts the deliveries");
    expect(ranking).toMatchObject({ position: 1, courierCode: "GLS_ITA" });
    expect(ranking.leadMedian).toBeGreaterThanOrEqual(1);
  }, 300_000);
});

test("the lines that README.md and the demo offer work as they are pasted", async () => {
  const lines = linesToTry(product.api, "key_acme_main");
  const script = lines.join("\necho\n");
  const { output } = await outcomeOf(startCommand(["bash", "-c", script], {}));
  const [shipments, ranking] = output.trim().split("\n");
  expect(JSON.parse(shipments ?? "").items).toHaveLength(1);
  expect(JSON.parse(ranking ?? "")).toHaveProperty("ranking");
});

describe("operators", () => {
  test("every port tells its life, readiness and metrics", async () => {
    for (const port of [product.ingest, product.api, product.panel]) {
      expect((await fetch(`${port}/healthz`)).status).toBe(200);
      expect((await fetch(`${port}/readyz`)).status).toBe(200);
      expect(await (await fetch(`${port}/metrics`)).text()).toContain("waybill_group_lag_entries");
    }
  });

  test("the overview needs the operator's token and balances", async () => {
    const path = `${product.panel}/panel/api/overview`;
    expect((await request("GET", path)).status).toBe(401);
    const { body } = await request("GET", path, undefined, OPERATOR);
    expect(body.ledger.applied).toBe(body.ledger.accepted);
    expect(body.stores).toMatchObject({ redis: { ready: true }, clickhouse: { ready: true } });
  });

  test("the test clock moves for every process, and bad seconds are 422", async () => {
    const path = `${product.panel}/panel/api/clock`;
    const { body } = await request("POST", path, { advanceSeconds: 3_600 }, OPERATOR);
    expect(Date.parse(body.now) - Date.now()).toBeGreaterThan(3_500_000);
    for (const advanceSeconds of [-1, 1.5, "1"]) {
      expect((await request("POST", path, { advanceSeconds }, OPERATOR)).status).toBe(422);
    }
  });
});

describe("stopping", () => {
  test("SIGTERM ends with status 0, and a second start finds its data again", async () => {
    expect((await product.terminate()).status).toBe(0);
    await product.start();
    merchant = await signIn(product.api, "key_acme_main");
    const { body } = await merchant.call("GET", "/v2/shipments?trackingNumber=FLOW-0");
    expect(body.items[0].status).toBe("DELIVERED");
  }, 300_000);
});

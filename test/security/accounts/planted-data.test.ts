/**
 * Invariant 8 over a whole run of the product at its most talkative: names, mails, phones and secrets are planted in every input,
 * in requests that are right and in requests that are wrong, and looked for in the log, the metrics and ClickHouse.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { openClickhouse } from "#analytics/clickhouse/clickhouse.ts";
import { readConfig } from "#core/platform/environment/config.ts";
import { event, push, pushBytes } from "#test/support/clients/courier.ts";
import { request, shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { expectSettled } from "#test/support/data/oracle.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { PANEL_TOKEN, type Product, startProduct } from "#test/support/product/product.ts";

const NAME = "Zyxwina";
const MAIL = "zyxw.mail";
const PHONE = "3477654321";
const SECRET = "zyxw-secret";
/** In whatever case they may be kept. */
const PLANTED = [NAME, MAIL, PHONE, SECRET].map((text) => text.toLowerCase());
const KEYS = ["key_acme_main", "tok_gls_1", PANEL_TOKEN];
const SHIPMENTS = 20;
const RECIPIENT = {
  name: `${NAME} Rossi`,
  street: `Via ${NAME} 1`,
  city: "Roma",
  postcode: "00118",
  country: "IT",
  email: `${MAIL}@mail.example`,
  phone: `+39${PHONE}`,
};
const SIGNED = {
  delivery: {
    deliveredTo: "NEIGHBOUR",
    signedBy: `${NAME} Bianchi`,
    podUrl: `https://pod.example/${NAME}`,
  },
  recipientActionUrl: `https://act.example/${NAME}`,
  attributes: { phone: PHONE },
} as const;

let product: Product;
let token: string;
let receiver: ReturnType<typeof Bun.serve>;

beforeAll(async () => {
  // It refuses, and repeats what it was told.
  receiver = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: async (asked) => new Response(await asked.text(), { status: 400 }),
  });
  const setup = testSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  if (channel) {
    const url = `https://localhost:${receiver.port}/${SECRET}`;
    const endpoint = { url, alertEmail: `${MAIL}@ops.example` };
    const secret = `whsec_${Buffer.from(SECRET.padEnd(32, "x")).toString("hex")}`;
    channel.webhooks = [
      { code: "main", trigger: "every_event", include: ["consignee"], secret, ...endpoint },
    ] as never;
    channel.emails = { managed: true, statusNotifications: ["OUT_FOR_DELIVERY"] } as never;
  }
  product = await startProduct(setup, {
    LOG_LEVEL: "trace",
    WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8",
  });
  const body = { apiKey: "key_acme_main" };
  ({ token } = (await request("POST", `${product.api}/v2/auth/token`, body)).body);
}, 300_000);

afterAll(async () => {
  await product.end();
  await receiver.stop(true);
}, 300_000);

/** @returns events that were accepted */
async function plantInEvents(): Promise<number> {
  let accepted = 0;
  for (const code of ["TRN", "OUT", "DLV"]) {
    const events = Array.from({ length: SHIPMENTS }, (_, at) =>
      event({ trackingNumber: `PLANT-${at}`, status: { code, description: code }, ...SIGNED }),
    );
    accepted += (await push(product.ingest, events)).body.accepted;
  }
  const broken = { ...event(), delivery: { signedBy: [NAME], deliveredTo: MAIL }, [NAME]: PHONE };
  const { body } = await push(product.ingest, [broken, { recipient: RECIPIENT }]);
  expect(body.invalid).toBe(2);
  await push(product.ingest, [event({ trackingNumber: "nobody's", ...SIGNED })]);
  await pushBytes(product.ingest, Buffer.from(`{"events":[{"name":"${NAME} ${MAIL} ${PHONE}`));
  await push(product.ingest, [event()], { token: SECRET });
  return accepted;
}

/** Requests that are refused, each in its own way. */
async function plantInRefusals(): Promise<void> {
  const headers = { authorization: `Bearer ${token}`, "user-agent": NAME, "x-request-id": MAIL };
  const wrong = shipmentItem("PLANT-WRONG", { consignee: { ...RECIPIENT, postcode: [PHONE] } });
  const url = (path: string) => `${product.api}${path}`;
  for (const body of [{ shipments: [wrong] }, { shipments: RECIPIENT }, RECIPIENT]) {
    await request("POST", url("/v2/shipments"), body, headers);
  }
  for (const path of [
    `/v2/shipments?consigneeEmail=${MAIL}%40mail.example&search=${NAME}`,
    `/v2/${NAME}/${PHONE}`,
    `/v2/shipments/${NAME}`,
    `/v2/shipments?limit=${NAME}`,
  ]) {
    await fetch(url(path), { headers });
  }
  await request("POST", url("/v2/auth/token"), { apiKey: SECRET });
  await fetch(url("/v2/shipments"), { headers: { authorization: `Bearer ${SECRET}` } });
  const panel = (path: string) => `${product.panel}/panel/api/${path}`;
  await request("POST", panel("session"), { email: `${MAIL}@mail.example`, password: SECRET });
  await request("POST", panel("session"), { token: SECRET });
  await fetch(panel(`shipments?search=${NAME}`), {
    headers: { authorization: `Bearer ${PANEL_TOKEN}` },
  });
}

/** Every row of every table, as text. */
async function everythingInClickhouse(): Promise<string> {
  const clickhouse = await openClickhouse(readConfig({ DATA_DIR: product.dataDir }), "write");
  const ask = async (query: string) =>
    (await clickhouse.query({ query, format: "JSONEachRow" })).text();
  const names = (await ask("SELECT name FROM system.tables WHERE database = currentDatabase()"))
    .split("\n")
    .filter((line) => line !== "")
    .map((line): string => JSON.parse(line).name);
  expect(names.length).toBeGreaterThan(3);
  const tables: string[] = [];
  for (const name of names) tables.push(await ask(`SELECT * FROM ${name}`));
  await clickhouse.close();
  return tables.join("\n");
}

test("nothing of what was planted stands in the log, the metrics or ClickHouse", async () => {
  const measuring = startMeasuring("Personal data", "names, mails, phones and secrets of a run");
  const merchant = await signIn(product.api, "key_acme_main");
  const shipments = Array.from({ length: SHIPMENTS }, (_, at) =>
    shipmentItem(`PLANT-${at}`, { consignee: RECIPIENT, note: `ring at ${NAME}, ${PHONE}` }),
  );
  const made = await merchant.call("POST", "/v2/shipments", { shipments });
  const read = await merchant.call("GET", `/v2/shipments/${made.body.items[0].id}`);
  expect(JSON.stringify(read.body)).toContain(`${MAIL}@mail.example`);
  const accepted = await plantInEvents();
  await plantInRefusals();
  expect(accepted).toBe(3 * SHIPMENTS);
  await expectSettled(product, accepted);
  const isTried = async () =>
    /^waybill_webhook_attempts_total\{[^}]*outcome="(?:retry|failed)"/m.test(
      await (await fetch(`${product.panel}/metrics`)).text(),
    );
  await eventually(isTried, "webhooks are refused");
  const metrics = await Promise.all(
    [product.api, product.ingest, product.panel].map(async (url) =>
      (await fetch(`${url}/metrics`)).text(),
    ),
  );
  expect((await product.terminate()).status).toBe(0);
  const places = {
    "the log": product.output(),
    "the metrics": metrics.join("\n"),
    ClickHouse: await everythingInClickhouse(),
  };
  expect(places["the log"].length).toBeGreaterThan(100);
  expect(places.ClickHouse).toContain("GLS_ITA");
  const found = Object.entries(places).flatMap(([place, text]) =>
    [...PLANTED, ...KEYS, token]
      .filter((planted) => text.toLowerCase().includes(planted.toLowerCase()))
      .map((planted) => `${planted} in ${place}`),
  );
  expect(found).toEqual([]);
  const searched = Object.values(places).reduce((sum, text) => sum + text.length, 0);
  const further = { "bytes searched": searched, "planted texts found": found.length };
  await measuring.done({ inputs: accepted, further });
}, 300_000);

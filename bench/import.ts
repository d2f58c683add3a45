/**
 * An import of 5,000 shipments beside 50 creates of 100, one after the other, both over HTTP (row 13):
 * `bun bench/import.ts [--runs 5] [--quick] [--json]`. The API and the processors run as processes of their own on an embedded
 * Redis; an import lasts from the request until its job is reported to be completed.
 */
import { parseArgs } from "node:util";
import { type Figure, machine, median, print, redisVersion } from "#bench/table.ts";
import { applySetupFile } from "#core/runtime/runtime.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { openStore, startRole } from "./product-roles.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "5" },
    quick: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const RUNS = values.quick ? 2 : Number(values.runs);
const SHIPMENTS = values.quick ? 2_000 : 5_000;
const PER_CREATE = 100;
/** Of the job; a merchant asks less often. */
const POLL_MS = 20;
const LIMIT_MS = 2_000;
const READY_LIMIT_MS = 60_000;
const IMPORT_LIMIT_MS = 60_000;
const API_KEY = "key_of_the_import_bench";
const BUDGET = { bucketSize: 100_000, refillRate: 100_000 };

let counter = 0;

/** An ordinary Italian parcel with two order lines. */
function newItem() {
  counter += 1;
  return {
    trackingNumber: `IMPORT-${counter}`,
    courier: "GLS_ITA",
    shipDate: "2026-11-10",
    orderReference: `IT-2026-${counter}`,
    orderDate: "2026-11-01",
    origin: "shopify",
    consignee: {
      name: `Mario Rossi ${counter % 977}`,
      street: `Via Garibaldi ${1 + (counter % 240)}`,
      city: "Roma",
      postcode: "00118",
      state: "RM",
      country: "IT",
      email: `cliente${counter}@example.com`,
      phone: `+39 333 ${1_000_000 + counter}`,
    },
    monetary: { totalValue: 20 + (counter % 900) / 10, currency: "EUR" },
    customAttributes: { custom1: `group-${counter % 500}` },
    parcels: [{ weight: 1 + (counter % 50) / 10, length: 30, width: 20, height: 10 }],
    orderItems: [
      { sku: `SKU-${counter % 977}`, name: "Maglietta girocollo cotone", price: 19.9 },
      { sku: `SKU-${counter % 389}`, name: "Pantaloni chino slim", quantity: 2, price: 49.5 },
    ],
  };
}

const newItems = (count: number) => Array.from({ length: count }, newItem);

type Post = (path: string, body: string, token?: string) => Promise<Response>;

interface Merchant {
  readonly url: string;
  readonly token: string;
}

async function signIn(url: string): Promise<Merchant> {
  const body = JSON.stringify({ apiKey: API_KEY });
  const response = await post(url)("/v2/auth/token", body);
  const { token } = (await response.json()) as { token: string };
  return { url, token };
}

function post(url: string): Post {
  return (path, body, token) =>
    fetch(`${url}${path}`, {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
    });
}

/** @returns milliseconds */
async function runImport({ url, token }: Merchant): Promise<number> {
  const body = JSON.stringify({ shipments: newItems(SHIPMENTS) });
  const startMs = performance.now();
  const accepted = await post(url)("/v2/shipments/import", body, token);
  const { jobId } = (await accepted.json()) as { jobId: string };
  const authorization = `Bearer ${token}`;
  for (;;) {
    const response = await fetch(`${url}/v2/jobs/${jobId}`, { headers: { authorization } });
    const job = (await response.json()) as { status: string; failedItems: number };
    const lastedMs = performance.now() - startMs;
    if (job.status === "completed" && job.failedItems === 0) return lastedMs;
    if (job.status !== "processing" || lastedMs > IMPORT_LIMIT_MS) {
      throw new Error(`the import is ${job.status}, ${job.failedItems} items failed`);
    }
    await Bun.sleep(POLL_MS);
  }
}

/** @returns milliseconds */
async function runCreates({ url, token }: Merchant): Promise<number> {
  const bodies = Array.from({ length: SHIPMENTS / PER_CREATE }, () =>
    JSON.stringify({ shipments: newItems(PER_CREATE) }),
  );
  const startMs = performance.now();
  for (const body of bodies) {
    const response = await post(url)("/v2/shipments", body, token);
    await response.json();
    if (response.status !== 201) throw new Error(`a create was answered ${response.status}`);
  }
  return performance.now() - startMs;
}

function importSetup() {
  const [company] = testSetup().companies ?? [];
  const channel = company?.channels?.[0];
  if (!company || !channel) throw new Error("no channel");
  const own = {
    ...channel,
    code: "imports",
    apiKeys: [{ code: "main", key: API_KEY }],
    rateLimit: BUDGET,
    webhooks: [],
  };
  return { companies: [{ ...company, code: "imports", channels: [own] }] };
}

async function measure(merchant: Merchant): Promise<Figure[]> {
  const [ours, peer]: [number[], number[]] = [[], []];
  await runImport(merchant);
  await runCreates(merchant);
  for (let run = 0; run < RUNS; run += 1) {
    ours.push(await runImport(merchant));
    peer.push(await runCreates(merchant));
  }
  const rate = (lastedMs: readonly number[]) => (SHIPMENTS * 1_000) / median(lastedMs);
  const creates = SHIPMENTS / PER_CREATE;
  return [
    {
      row: 13,
      work: `import of ${SHIPMENTS}`,
      ours: rate(ours),
      peer: rate(peer),
      beside: `${creates} creates of ${PER_CREATE}`,
      unit: "shipments/s",
      goal: { least: 1 },
      alarm: { least: 0.4 },
    },
    {
      row: 13,
      work: `how long the import of ${SHIPMENTS} takes`,
      ours: median(ours),
      beside: null,
      peer: null,
      unit: "ms",
      goal: { oursMost: LIMIT_MS },
      alarm: { oursMost: 5 * LIMIT_MS },
    },
  ];
}

const store = await openStore(false);
const port = await freePort();
const roles = [
  startRole("api", "api/main.ts", { ...store.env, API_PORT: String(port) }),
  startRole("processors", "processors/main.ts", store.env),
];
try {
  await applySetupFile(store.runtime, importSetup());
  const url = `http://127.0.0.1:${port}`;
  const answers = () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await eventually(answers, "the API is ready", READY_LIMIT_MS);
  const figures = await measure(await signIn(url));
  const about = `${machine(await redisVersion(store.runtime.redis))}, medians of ${RUNS}`;
  print(figures, about, values.json);
} finally {
  await Promise.all(roles.map(({ stop }) => stop()));
  await store.close();
}

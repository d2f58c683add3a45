/** Erasing the recipient of a shipment: nothing that was planted is found anywhere, and everything still answers. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { encodeLoggedEvent } from "#core/events/store/event-log.ts";
import { seenBucket } from "#core/events/store/seen.ts";
import { putOrders } from "#core/merchants/store/orders.ts";
import { answerRelease, claimRelease } from "#core/merchants/store/stock-releases.ts";
import { listDeadLetters, redriveAllDeadLetters } from "#core/platform/log/dead-letters.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { isFileRewriteMarked } from "#core/platform/redis/embedded/file-rewrite.ts";
import {
  deadLetterKey,
  eventLogs,
  FILE_REWRITE_KEY,
  retriesKey,
  retryAgesKey,
} from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { readHistory, readShipments } from "#core/shipments/store/shipments.ts";
import { startPanel } from "#panel/main.ts";
import { startProcessors } from "#processors/main.ts";
import { event } from "#test/support/clients/courier.ts";
import { makeAccount, type TestAccount } from "#test/support/data/accounts.ts";
import { CONSIGNEE, labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { channelOf } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { startMeasuring } from "#test/support/measured.ts";
import { item, openTestApi, type TestApi } from "#test/support/product/api.ts";
import {
  applyEvents,
  deliveriesOf,
  endpointOf,
  passTime,
  STATUS,
} from "#test/support/product/webhooks.ts";
import { AUTHORITY, type Receiver, startReceiver } from "#test/support/servers/receiver.ts";

const PLANTED = "Zyxw";
const plant = (name: string) => `${PLANTED}${name}`;
const RECIPIENT = {
  name: plant("Name"),
  street: plant("Street 1"),
  city: plant("City"),
  postcode: "00118",
  country: "IT",
  email: `${PLANTED}@mail.example`,
  phone: `+39 ${PLANTED}`,
};
const CUSTOM = { custom1: plant("C1"), custom2: plant("C2"), custom3: plant("C3") };
const SIGNED = {
  delivery: {
    deliveredTo: "NEIGHBOUR",
    signedBy: plant("Signer"),
    podUrl: `https://pod.example/${PLANTED}`,
  },
  recipientActionUrl: `https://act.example/${PLANTED}`,
  pickupPoint: { name: plant("Point"), address: plant("Address") },
  reason: { code: "R1", description: plant("Reason") },
  attributes: { floor: plant("Floor") },
  trackingNumberChange: { newTrackingNumber: "ERASE-NUMBER-2", reason: plant("Change") },
} as const;

let api: TestApi;
let token: string;
let panel: Running;
let processors: Running;
let receiver: Receiver;
/** Where the processors, which stand for another machine, keep their outbox. */
let otherDataDir: string;
let operator: TestAccount;
let owner: TestAccount;
let stranger: TestAccount;
let reader: TestAccount;
let id: number;
let trackingUrl: string;

beforeAll(async () => {
  const setup = labelSetup();
  const [channel] = setup.companies?.[0]?.channels ?? [];
  if (!channel) throw new Error("the test setup has no channels");
  receiver = await startReceiver();
  // It repeats what it is told, as a receiver that fails may.
  receiver.behave(({ raw }, response) => void response.writeHead(200).end(raw));
  const endpoint = { url: receiver.url, alertEmail: "ops@acme.test", trigger: "every_event" };
  channel.webhooks = [{ code: "main", include: ["consignee"], ...endpoint }] as never;
  channel.trackingPage = true;
  channel.emails = { managed: true, statusNotifications: ["OUT_FOR_DELIVERY", "DELIVERED"] };
  api = await openTestApi(setup, "away", { WEBHOOK_CA_FILE: AUTHORITY.file });
  const { runtime } = api;
  panel = await startPanel(runtime);
  otherDataDir = await mkdtemp(join(tmpdir(), "waybill-other-"));
  const config = { ...runtime.config, dataDir: otherDataDir };
  processors = await startProcessors({ ...runtime, config });
  token = await api.token("key_acme_main");
  operator = await makeAccount(runtime, "operator", "operator");
  owner = await makeAccount(runtime, "company", "owner", { companyCode: "acme" });
  stranger = await makeAccount(runtime, "company", "owner", { companyCode: "beta" });
  reader = await makeAccount(runtime, "company", "read-only", { companyCode: "acme" });
  await plantAll();
});
afterAll(async () => {
  await processors.stop();
  await panel.stop();
  await api.end();
  await receiver.stop();
  await rm(otherDataDir, { recursive: true });
});

const KEY = { "idempotency-key": "label-of-the-order" };
const LABEL = labelBody({ reference: "ERASE-1", consignee: { ...CONSIGNEE, ...RECIPIENT } });

async function plantAll(): Promise<void> {
  const made = await api.call("POST", "/v2/labels", { token, body: LABEL, headers: KEY });
  expect(made.status).toBe(201);
  await api.call("POST", "/v2/labels/confirm", {
    token,
    body: { courier: "GENERIC", labelIds: [made.body.id] },
  });
  const { companyId, id: channelId } = channelOf(api.runtime);
  await putOrders(
    api.runtime.redis,
    { companyId, channelId },
    [
      {
        source: "shopify",
        reference: "ERASE-1",
        notes: plant("Notes"),
        tag: plant("OrderTag"),
        content: plant("OrderContent"),
        parcels: [{ content: plant("ParcelContent") }],
        consignee: RECIPIENT,
        customAttributes: CUSTOM,
        items: [{ sku: "A", name: "Shirt", quantity: 1, notes: plant("Item") }],
      },
    ],
    api.runtime.live.now(),
  );
  const accepted = await api.call("POST", "/v2/shipments/import", {
    token,
    headers: { "idempotency-key": "import-of-the-shipment" },
    body: {
      shipments: [
        item("ERASE-NUMBER-1", {
          orderReference: "ERASE-1",
          note: plant("Note"),
          tag: plant("Tag"),
          parcels: [{ weight: 1, length: 10, width: 10, height: 10, content: plant("Content") }],
          consignee: RECIPIENT,
          customAttributes: CUSTOM,
          commercialContactEmail: `sales-${PLANTED}@mail.example`,
          orderItems: [{ sku: "A", name: "Shirt", notes: plant("Line"), custom5: plant("C5") }],
        }),
      ],
    },
  });
  const job = () => api.call("GET", `/v2/jobs/${accepted.body.jobId}`, { token });
  const result = async () => (await job()).body.result;
  const done = await eventually(result, "the import has ended");
  id = done.successes[0].id;
  await applyEvents(api.runtime, id, [
    { eventId: "erase-1", status: STATUS.departed, occurredAt: "2026-11-10T08:00:00Z" },
    { eventId: "erase-2", status: STATUS.outForDelivery, occurredAt: "2026-11-11T08:00:00Z" },
    { eventId: "erase-3", status: STATUS.delivered, occurredAt: "2026-11-11T09:00:00Z", ...SIGNED },
  ]);
  const asked = { action: "redeliver", redeliveryDate: null, digest: "one", askedAtMs: 0 };
  const { releaseId } = await claimRelease(api.runtime.redis, id, asked, 1_000);
  const answered = { ...asked, outcome: "ok", message: plant("Release") } as const;
  await answerRelease(api.runtime.redis, id, releaseId, answered);
  await plantFailures("erase-5", "erase-6");
  await eventually(async () => (await answers()).length === 3, "receivers have repeated it");
  const detail = () => api.call("GET", `/v2/shipments/${id}`, { token });
  await eventually(async () => (await outbox()).includes(RECIPIENT.email), "a mail was sent");
  trackingUrl = (await detail()).body.trackingUrl;
}

const [LOG = ""] = eventLogs();

function failedEntry(eventId: string): string {
  const times = { occurredAt: "2026-11-11T09:30:00Z", ...SIGNED } as Partial<CourierEvent>;
  const logged = {
    shipmentId: id,
    courier: "GLS_ITA",
    receivedAtMs: Date.now(),
    messageIndex: 0,
    factKey: seenBucket("GLS_ITA", eventId).factKey,
    event: event({ eventId, status: STATUS.inTransit, ...times }),
  };
  return JSON.stringify({ e: encodeLoggedEvent(logged) });
}

/** An event that waits for its next try, in an hour, and one that is a dead letter. */
async function plantFailures(retried: string, dead: string): Promise<void> {
  const { redis } = api.runtime;
  const value = JSON.stringify({ id: "1-1", entry: failedEntry(retried), tries: 1 });
  const due = { score: Date.now() + 3_600_000, value };
  await redis.zAdd(retriesKey(LOG, "track"), due);
  await redis.zAdd(retryAgesKey(LOG, "track"), due);
  const letter = { log: LOG, group: "track", id: "1-2", reason: "failed" };
  await redis.xAdd(deadLetterKey(LOG), "*", { ...letter, entry: failedEntry(dead) });
}

function erase(account: TestAccount, shipment: number | string = id) {
  return fetch(`${panel.url}/panel/api/shipments/${shipment}/personal-data`, {
    method: "DELETE",
    headers: { cookie: account.cookie, "sec-fetch-site": "same-origin" },
  });
}

/** Every name and value of the store as text. What is packed is read through the store's own functions. */
async function everything({ redis }: { readonly redis: Redis }): Promise<string> {
  const parts: unknown[] = [];
  for await (const keys of redis.scanIterator({ COUNT: 1_000 })) {
    for (const key of keys) {
      const type = await redis.type(key);
      parts.push(key);
      if (type === "string") parts.push(await redis.get(key));
      if (type === "hash") parts.push(await redis.hGetAll(key));
      if (type === "list") parts.push(await redis.lRange(key, 0, -1));
      if (type === "set") parts.push(await redis.sMembers(key));
      if (type === "zset") parts.push(await redis.zRange(key, 0, -1));
      if (type === "stream") parts.push(await redis.xRange(key, "-", "+"));
    }
  }
  parts.push(await readShipments(redis, [id]), await readHistory(redis, id));
  return JSON.stringify(parts);
}

/** What receivers have answered, where it repeats a name. */
async function answers(): Promise<string[]> {
  const deliveries = await deliveriesOf(api.runtime, endpointOf(api.runtime, "main"));
  const snippets = deliveries.flatMap(({ attempts }) =>
    attempts.map(({ responseSnippet }) => responseSnippet ?? ""),
  );
  return snippets.filter((snippet) => snippet.includes(PLANTED));
}

/** A file that is erased between listing and reading is empty. */
async function outbox(): Promise<string> {
  const folder = join(otherDataDir, "outbox");
  const names = await readdir(folder).catch(() => []);
  const files = await Promise.all(
    names.map((name) => readFile(join(folder, name), "utf8").catch(() => "")),
  );
  return files.join("\n");
}

test("nobody without the capability may, and a shipment that is missing or another company's is 404", async () => {
  expect((await erase(reader)).status).toBe(403);
  expect((await erase(stranger)).status).toBe(404);
  expect((await erase(operator, 999_999)).status).toBe(404);
  expect(await everything(api.runtime)).toContain(RECIPIENT.name);
});

test("leaves nothing of the recipient, whatever is asked afterwards, and may be repeated", async () => {
  const before = await everything(api.runtime);
  const { signedBy } = SIGNED.delivery;
  for (const text of [
    RECIPIENT.name,
    RECIPIENT.email,
    CUSTOM.custom1,
    signedBy,
    plant("Release"),
  ]) {
    expect(before).toContain(text);
  }
  expect(await outbox()).toContain(RECIPIENT.email);

  const name = "a recipient, in every key of Redis and the outbox";
  const measuring = startMeasuring("Personal data", name);
  const places = (text: string) => text.split(PLANTED).length - 1;
  const planted = places(before) + places(await outbox());
  await api.runtime.redis.del(FILE_REWRITE_KEY);
  expect((await erase(owner)).status).toBe(204);
  expect(await isFileRewriteMarked(api.runtime.redis)).toBe(true);
  expect((await erase(operator)).status).toBe(204);

  const after = await everything(api.runtime);
  expect(after).not.toContain(PLANTED);
  await eventually(async () => !(await outbox()).includes(PLANTED), "the outbox is empty of it");
  const left = places(after) + places(await outbox());
  await measuring.done({ further: { "places before": planted, "places after": left } });
  const detail = await api.call("GET", `/v2/shipments/${id}`, { token });
  expect(detail.status).toBe(200);
  expect(JSON.stringify(detail.body)).not.toContain(PLANTED);
  const again = await api.call("POST", "/v2/labels", { token, body: LABEL, headers: KEY });
  expect([again.status, again.body.labels]).toEqual([201, []]);
});

test("what had failed before is applied without what it says of a person", async () => {
  const { redis, live } = api.runtime;
  const known = async () => (await readHistory(redis, id)).length;
  const before = await known();
  expect((await redriveAllDeadLetters(redis, live.now())).redriven).toBe(1);
  await eventually(async () => (await known()) === before + 1, "the dead letter was applied");
  expect(await everything(api.runtime)).not.toContain(PLANTED);
});

test("what was on its way meanwhile is erased by a repetition a minute later", async () => {
  await plantFailures("erase-7", "erase-8");
  await api.runtime.redis.del(FILE_REWRITE_KEY);
  await passTime(api.runtime, 61);
  const isClean = async () => !(await everything(api.runtime)).includes(PLANTED);
  await eventually(isClean, "the repetition has erased it");
  const isMarked = () => isFileRewriteMarked(api.runtime.redis);
  await eventually(isMarked, "the append-only file is to be rewritten");
  expect((await listDeadLetters(api.runtime.redis, null, 10)).letters).toHaveLength(1);
});

test("a later courier event is folded without what it says of a person", async () => {
  const late = { eventId: "erase-4", status: STATUS.delivered, occurredAt: "2026-11-12T09:00:00Z" };
  await applyEvents(api.runtime, id, [{ ...late, ...SIGNED }]);
  const known = await readHistory(api.runtime.redis, id);
  expect(known.map(({ event: { eventId } }) => eventId)).toContain("erase-4");
  const isSent = () => receiver.requests.find(({ raw }) => raw.includes("2026-11-12 10:00:00"));
  const { body } = await eventually(isSent, "its webhook was sent");
  const { consignee, note } = body.data.shipment;
  expect([note, ...Object.values(consignee)].filter((value) => value !== null)).toEqual([]);
  expect(await everything(api.runtime)).not.toContain(PLANTED);
});

test("detail, trace, search and tracking page still answer", async () => {
  const { pathname } = new URL(trackingUrl);
  const pages = [`/panel/api/shipments/${id}`, `/panel/api/shipments/${id}/trace`, pathname];
  for (const path of [...pages, "/panel/api/shipments?q=ERASE-NUMBER-1"]) {
    const answer = await fetch(`${panel.url}${path}`, { headers: { cookie: operator.cookie } });
    expect([path, answer.status]).toEqual([path, 200]);
    expect(await answer.text()).not.toContain(PLANTED);
  }
  const found = await api.call("GET", `/v2/shipments?custom1=${CUSTOM.custom1}`, { token });
  expect(JSON.stringify(found.body)).not.toContain("ERASE-NUMBER-1");
});

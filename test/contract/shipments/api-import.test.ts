/** Document 1, `POST /v2/shipments/import` and `GET /v2/jobs/{jobId}`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import {
  acceptJob,
  CALLBACKS_PER_CHANNEL,
  finishJob,
  noteCallback,
  readJob as storedJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import { atWork, background } from "#core/platform/process/background.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import type { Running } from "#core/runtime/runtime.ts";
import { verifySignature } from "#core/webhooks/rules/signature.ts";
import { CALLBACKS_AT_ONCE } from "#processors/jobs/import-callbacks.ts";
import { startJobs } from "#processors/jobs/start.ts";
import { channelOf, testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Answer, item, openTestApi, type TestApi } from "#test/support/product/api.ts";

const MAIN_SECRET = `whsec_${"1".repeat(64)}`;
const SPARE_SECRET = `whsec_${"2".repeat(64)}`;
const OTHER_SECRET = `whsec_${"3".repeat(64)}`;

let api: TestApi;
let token: string;
let jobs: Running;
let counter = 0;

beforeAll(async () => {
  const setup = testSetup();
  const keys = setup.companies?.[0]?.channels?.[0]?.apiKeys;
  keys?.push({ code: "read", key: "key_acme_read", scopes: ["shipments:read"] });
  const outlet = setup.companies?.[0]?.channels?.[1];
  if (outlet) outlet.trackingPage = true;
  const endpoint = (code: string, secret: string) => ({
    code,
    secret,
    url: "https://127.0.0.1:1/hook",
    alertEmail: "ops@acme.test",
  });
  Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, {
    webhooks: [endpoint("main", MAIN_SECRET), endpoint("spare", SPARE_SECRET)],
  });
  Object.assign(setup.companies?.[1]?.channels?.[0] ?? {}, {
    webhooks: [endpoint("main", OTHER_SECRET)],
  });
  api = await openTestApi(setup);
  token = await api.token("key_acme_main");
  jobs = await startJobs(api.runtime);
});
afterAll(async () => {
  await jobs.stop();
  await api.end();
});

function newNumber(): string {
  counter += 1;
  return `IMP-${counter}`;
}

function importThem(body: unknown, as = token): Promise<Answer> {
  return api.call("POST", "/v2/shipments/import", { token: as, body });
}

function readJob(jobId: string, as = token): Promise<Answer> {
  return api.call("GET", `/v2/jobs/${jobId}`, { token: as });
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever the API answered
async function finished(jobId: string, as = token): Promise<any> {
  return eventually(async () => {
    const { body } = await readJob(jobId, as);
    return body.status !== "processing" && body;
  }, "the job ends");
}

async function run(shipments: readonly unknown[], more: object = {}, as = token) {
  const { status, body } = await importThem({ shipments, ...more }, as);
  expect(status).toBe(202);
  return finished(body.jobId, as);
}

describe("202", () => {
  test("jobId, status processing, relative statusUrl and totalShipments", async () => {
    const { status, body } = await importThem({
      shipments: [item(newNumber()), item(newNumber())],
    });
    expect(status).toBe(202);
    expect(body).toEqual({
      jobId: expect.any(String),
      status: "processing",
      statusUrl: `/jobs/${body.jobId}`,
      totalShipments: 2,
    });
  });

  test("the finished job: summary, successes by position, and the shipments are found", async () => {
    const numbers = [newNumber(), newNumber()];
    const job = await run(numbers.map((number) => item(number)));
    expect(job).toEqual({
      jobId: expect.any(String),
      type: expect.any(String),
      status: "completed",
      totalItems: 2,
      processedItems: 2,
      failedItems: 0,
      result: {
        summary: { totalRequested: 2, totalSuccess: 2, totalFailed: 0 },
        successes: numbers.map((trackingNumber, index) => ({
          index,
          id: expect.any(Number),
          trackingNumber,
          trackingUrl: null,
        })),
        errors: [],
      },
      error: null,
      createdAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      completedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      callback: null,
    });
    const { body } = await api.call("GET", `/v2/shipments?trackingNumber=${numbers[1]}`, { token });
    expect(body.items[0].id).toBe(job.result.successes[1].id);
  });

  test("a number typed otherwise is DUPLICATE_SHIPMENT, within the file and across imports; an invisible one fails alone", async () => {
    const number = newNumber();
    const other = `\u00a0${number.toLowerCase()} `;
    const first = await run([item(number), item(other), item("\u200b\u2060")]);
    const failed = (job: typeof first) =>
      job.result.errors.map((one: { index: number; errors: { code: string }[] }) => [
        one.index,
        one.errors[0]?.code,
      ]);
    expect(failed(first)).toEqual([
      [1, "DUPLICATE_SHIPMENT"],
      [2, "VALIDATION_ERROR"],
    ]);
    expect(failed(await run([item(other)]))).toEqual([[0, "DUPLICATE_SHIPMENT"]]);
  });

  test("statically invalid items fail alone with VALIDATION_ERROR, each fault by its field", async () => {
    const job = await run([
      item("", { shipDate: "yesterday" }),
      item(newNumber()),
      null,
      item(newNumber(), { parcels: [{ length: 1, width: 1, height: 1 }] }),
      item(newNumber(), { shipDate: "1999-12-31" }),
    ]);
    expect(job.status).toBe("completed");
    expect(job.result.summary).toEqual({ totalRequested: 5, totalSuccess: 1, totalFailed: 4 });
    expect(job.failedItems).toBe(4);
    const codes = job.result.errors.flatMap((row: { errors: { code: string }[] }) =>
      row.errors.map(({ code }) => code),
    );
    expect(new Set(codes)).toEqual(new Set(["VALIDATION_ERROR"]));
    expect(job.result.errors.map((row: { index: number }) => row.index)).toEqual([0, 2, 3, 4]);
    expect(job.result.errors[0].errors.map(({ field }: { field: string }) => field)).toEqual([
      "trackingNumber",
      "shipDate",
    ]);
    expect(job.result.errors[1].trackingNumber).toBeNull();
    expect(job.result.errors[2].errors[0].field).toBe("parcels[0].weight");
  });

  test("the other item codes are those of the synchronous creation", async () => {
    const number = newNumber();
    const job = await run([
      item(number),
      item(number),
      item(newNumber(), { courier: "NOBODY" }),
      item(newNumber(), { language: "xx" }),
    ]);
    const errors = job.result.errors.map(
      (row: { index: number; trackingNumber: string; errors: { code: string }[] }) => [
        row.index,
        row.errors[0]?.code,
      ],
    );
    expect(errors).toEqual([
      [1, "DUPLICATE_SHIPMENT"],
      [2, "INVALID_COURIER"],
      [3, "INVALID_LANGUAGE"],
    ]);
    expect(job.result.errors[0].errors[0].existingId).toBe(job.result.successes[0].id);
  });

  test("a job of which every shipment failed is failed and says why", async () => {
    const job = await run([item(newNumber(), { courier: "NOBODY" })]);
    expect([job.status, typeof job.error]).toEqual(["failed", "string"]);
    expect(job.result.summary).toEqual({ totalRequested: 1, totalSuccess: 0, totalFailed: 1 });
  });

  test("a channel with a tracking page gets its addresses in the result", async () => {
    const outlet = await api.token("key_acme_outlet");
    const job = await run([item(newNumber())], {}, outlet);
    expect(job.result.successes[0].trackingUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/t\/\S+$/);
  });

  test("5,000 items are created in the order of the request and counted on the way", async () => {
    const numbers = Array.from({ length: 5_000 }, newNumber);
    const { body } = await importThem({ shipments: numbers.map((number) => item(number)) });
    const seen = new Set<number>();
    const job = await eventually(
      async () => {
        const answer = await readJob(body.jobId);
        seen.add(answer.body.processedItems);
        return answer.body.status === "completed" && answer.body;
      },
      "the job ends",
      60_000,
    );
    const found = job.result.successes.map((row: { trackingNumber: string }) => row.trackingNumber);
    expect(found).toEqual(numbers);
    expect(seen.size).toBeGreaterThan(2);
  }, 300_000);
});

interface Called {
  readonly headers: Headers;
  readonly body: string;
}

/** A merchant's receiver of completion calls. */
function startReceiver(status = 200) {
  const calls: Called[] = [];
  const server = Bun.serve({
    port: 0,
    async fetch(request) {
      calls.push({ headers: request.headers, body: await request.text() });
      return new Response("", { status });
    },
  });
  return { calls, url: `http://127.0.0.1:${server.port}/done`, stop: () => server.stop(true) };
}

/** One that answers nothing until it is released. */
function startHoldingReceiver() {
  const gate = Promise.withResolvers<void>();
  let open = 0;
  let most = 0;
  const server = Bun.serve({
    port: 0,
    async fetch({ signal }) {
      open += 1;
      most = Math.max(most, open);
      // A caller that has waited for long enough gives up, and may make its next call.
      await Promise.race([gate.promise, once(signal, "abort")]);
      open -= 1;
      return new Response("");
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}/done`,
    open: () => open,
    most: () => most,
    release: gate.resolve,
    stop: () => server.stop(true),
  };
}

function ownChannel() {
  const { companyId, id: channelId } = channelOf(api.runtime);
  return { partition: companyPartition(companyId), companyId, channelId };
}

/** The job once its call has an outcome. */
async function calledBack(jobId: string, as = token) {
  return eventually(async () => {
    const { body } = await readJob(jobId, as);
    return body.callback?.status !== "pending" && body;
  }, "the call has an outcome");
}

describe("the completion call", () => {
  test("webhookUrl is told jobId, status and the same result, and the job that it was delivered", async () => {
    const receiver = startReceiver();
    const job = await run([item(newNumber())], { webhookUrl: receiver.url });
    const { jobId, status, result } = job;
    const { callback } = await calledBack(jobId);
    expect(receiver.calls.map(({ body }) => JSON.parse(body))).toEqual([{ jobId, status, result }]);
    expect(callback).toEqual({
      status: "delivered",
      httpStatus: 200,
      error: null,
      sentAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    });
    receiver.stop();
  });

  test("it is signed like a webhook, with the secret of each endpoint of the channel and of no other", async () => {
    const receiver = startReceiver();
    const job = await run([item(newNumber())], { webhookUrl: receiver.url });
    await calledBack(job.jobId);
    const [call] = receiver.calls;
    const { headers, body = "" } = call ?? {};
    const signature = headers?.get("x-service-signature") ?? "";
    const judge = (secret: string) =>
      verifySignature(signature, [secret], Buffer.from(body), api.runtime.live.now());
    expect(judge(MAIN_SECRET)).toBe("valid");
    expect(judge(SPARE_SECRET)).toBe("valid");
    expect(judge(OTHER_SECRET)).toBe("mismatch");
    expect(signature.match(/v1=/g)).toHaveLength(2);
    expect(headers?.get("x-service-event-type")).toBe("import.finished");
    expect(headers?.get("x-service-event-id")).toBe(job.jobId);
    receiver.stop();
  });

  test("a channel without endpoints has no secret: the call is not signed", async () => {
    const receiver = startReceiver();
    const outlet = await api.token("key_acme_outlet");
    const job = await run([item(newNumber())], { webhookUrl: receiver.url }, outlet);
    await calledBack(job.jobId, outlet);
    expect(receiver.calls[0]?.headers.has("x-service-signature")).toBe(false);
    receiver.stop();
  });

  test("a receiver that refuses or is unavailable is told in the job and called once", async () => {
    const receiver = startReceiver(503);
    const refusing = await run([item(newNumber())], { webhookUrl: receiver.url });
    expect((await calledBack(refusing.jobId)).callback).toMatchObject({
      status: "failed",
      httpStatus: 503,
      error: "status 503",
    });
    expect(receiver.calls).toHaveLength(1);
    receiver.stop();
    const away = await run([item(newNumber())], { webhookUrl: "https://127.0.0.1:1/done" });
    const { status, callback } = await calledBack(away.jobId);
    expect([status, callback.status, callback.httpStatus]).toEqual(["completed", "failed", null]);
  });

  test("a host that has become private is not called, and the job says so", async () => {
    const receiver = startReceiver();
    const { config } = api.runtime;
    const strict = await startJobs({
      ...api.runtime,
      config: { ...config, webhookAllowedCidrs: [] },
    });
    await jobs.stop();
    const job = await run([item(newNumber())], { webhookUrl: receiver.url });
    const { callback } = await calledBack(job.jobId);
    await strict.stop();
    jobs = await startJobs(api.runtime);
    expect([job.status, receiver.calls]).toEqual(["completed", []]);
    expect(callback).toEqual({
      status: "refused",
      httpStatus: null,
      sentAt: null,
      error: "host resolves to a non-public address",
    });
    receiver.stop();
  });

  test("a receiver that does not answer has 4 calls under way, and holds up neither imports nor other channels", async () => {
    const slow = startHoldingReceiver();
    const quick = startReceiver();
    const held: string[] = [];
    for (let n = 0; n < CALLBACKS_AT_ONCE + 2; n += 1) {
      held.push((await run([item(newNumber())], { webhookUrl: slow.url })).jobId);
    }
    await eventually(() => slow.open() === CALLBACKS_AT_ONCE, "the calls are under way");
    const outlet = await api.token("key_acme_outlet");
    const other = await run([item(newNumber())], { webhookUrl: quick.url }, outlet);
    const { callback } = await calledBack(other.jobId, outlet);
    expect(callback.status).toBe("delivered");
    slow.release();
    for (const jobId of held) await calledBack(jobId);
    expect(slow.most()).toBe(CALLBACKS_AT_ONCE);
    slow.stop();
    quick.stop();
  }, 300_000);

  test("of a job that an earlier version ended before it called is made", async () => {
    const receiver = startReceiver();
    await jobs.stop();
    const { body } = await importThem({ shipments: [item(newNumber())], webhookUrl: receiver.url });
    const { redis } = api.runtime;
    const { partition } = ownChannel();
    await redis.hSet(companyKeys(partition).job(body.jobId), { status: "failed", error: "gone" });
    jobs = await startJobs(api.runtime);
    expect((await calledBack(body.jobId)).callback.status).toBe("delivered");
    expect(receiver.calls).toHaveLength(1);
    receiver.stop();
  });

  test("is not made for a job that ends while 100 of its channel wait", async () => {
    await jobs.stop();
    const { redis, live } = api.runtime;
    const { partition, companyId, channelId } = ownChannel();
    const end = async () => {
      const chunks = [{ from: 0, text: "[{}]" }];
      const job = { companyId, channelId, chunks, total: 1, webhookUrl: "https://127.0.0.1:1/" };
      const jobId = (await acceptJob(redis, job, live.now())) ?? "";
      const stored = await storedJob(redis, partition, jobId, live.now());
      if (stored) await finishJob(redis, partition, stored, null, live.now());
      return jobId;
    };
    const callbackOf = async (jobId: string) =>
      (await storedJob(redis, partition, jobId, live.now()))?.callback;
    const waiting: string[] = [];
    for (let n = 0; n < CALLBACKS_PER_CHANNEL; n += 1) waiting.push(await end());
    const beyond = await end();
    expect(await callbackOf(waiting.at(-1) ?? "")).toBeNull();
    const failed = { status: "failed", httpStatus: null, sentAt: null } as const;
    const told = { ...failed, error: "too many callbacks are waiting" };
    expect(await callbackOf(beyond)).toEqual(told);
    for (const jobId of waiting) {
      await noteCallback(redis, partition, { jobId, channelId }, { ...failed, error: null });
    }
    expect(await callbackOf(await end())).toBeNull();
    jobs = await startJobs(api.runtime);
  });

  test("a private webhookUrl is refused before anything is imported", async () => {
    const strict = await openTestApi(testSetup(), "away", { WEBHOOK_ALLOWED_CIDRS: "" });
    const as = await strict.token("key_acme_main");
    for (const host of ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1:8080"]) {
      const number = newNumber();
      const body = { shipments: [item(number)], webhookUrl: `https://${host}/done` };
      const answer = await strict.call("POST", "/v2/shipments/import", { token: as, body });
      expect(answer.status).toBe(422);
      expect(answer.body.violations).toMatchObject([{ path: "webhookUrl", code: "NOT_ALLOWED" }]);
    }
    expect(await strict.runtime.redis.keys("*:job:*")).toEqual([]);
    await strict.end();
  });
});

describe("404", () => {
  test("a missing job, a text that is no id, and a job of another channel answer the same", async () => {
    const { body } = await importThem({ shipments: [item(newNumber())] });
    const outlet = await api.token("key_acme_outlet");
    const foreign = await readJob(body.jobId, outlet);
    const missing = await readJob(crypto.randomUUID());
    const other = await readJob("nothing");
    expect([foreign.status, missing.status, other.status]).toEqual([404, 404, 404]);
    expect(foreign.body).toEqual(missing.body);
    expect(other.body).toEqual(missing.body);
  });
});

describe("403", () => {
  test("import needs shipments:write, jobs need jobs:read", async () => {
    const reader = await api.token("key_acme_read");
    expect((await importThem({ shipments: [item(newNumber())] }, reader)).status).toBe(403);
    expect((await readJob(crypto.randomUUID(), reader)).status).toBe(403);
  });
});

describe("422", () => {
  const faulty: [string, unknown, string, string][] = [
    ["no shipments", {}, "shipments", "REQUIRED"],
    ["an empty list", { shipments: [] }, "shipments", "TOO_FEW"],
    ["5,001 items", { shipments: Array.from({ length: 5_001 }, () => 1) }, "shipments", "TOO_MANY"],
    ["webhookUrl no URL", { shipments: [1], webhookUrl: "hook" }, "webhookUrl", "BAD_FORMAT"],
    [
      "webhookUrl of another protocol",
      { shipments: [1], webhookUrl: "ftp://x/" },
      "webhookUrl",
      "BAD_FORMAT",
    ],
  ];
  for (const [name, body, path, code] of faulty) {
    test(name, async () => {
      const answer = await importThem(body);
      expect(answer.status).toBe(422);
      expect(answer.body.violations[0]).toMatchObject({ path, code });
    });
  }
});

describe("an import creates in one step", () => {
  const WORK = [
    ["beside others", 10, 1],
    ["beside others", 11, 2],
    ["alone", 100, 1],
    ["alone", 101, 2],
  ] as const;

  test.each(WORK)("%s: %d items are %d of them", async (when, items, steps) => {
    const { redis } = api.runtime;
    const { changes } = companyKeys(ownChannel().partition);
    const created = async () => {
      const entries = await redis.xRange(changes, "-", "+");
      return (entries ?? []).filter(({ message }) => message["created"] !== undefined).length;
    };
    await eventually(async () => (await redis.keys("*:jobs:*")).length === 0, "no job is open");
    // Whoever asked for something in the tests before is no longer at work after a second.
    if (when === "alone") {
      const another = await api.token("key_acme_outlet");
      const isAlone = () => background(ownChannel().channelId, async (alone) => alone);
      await eventually(isAlone, "nobody else is at work");
      // Whoever asks how far an import is waits for one, and is nobody to rest for.
      await readJob(crypto.randomUUID(), another);
    }
    const work = () => void (when === "beside others" && atWork(null));
    const others = setInterval(work, 50);
    work();
    const before = await created();
    await jobs.stop();
    const { body } = await importThem({
      shipments: Array.from({ length: items }, () => item(newNumber())),
    });
    jobs = await startJobs(api.runtime);
    const { failedItems } = await finished(body.jobId);
    clearInterval(others);
    expect(failedItems).toBe(0);
    expect((await created()) - before).toBe(steps);
  });
});

describe("503", () => {
  test("a channel has at most 20 unfinished imports", async () => {
    const { redis } = api.runtime;
    await eventually(async () => (await redis.keys("*:jobs:*")).length === 0, "no job is open");
    await jobs.stop();
    const body = { shipments: [item(newNumber())] };
    const answers = [];
    for (let n = 0; n < 21; n += 1) answers.push(await importThem(body));
    jobs = await startJobs(api.runtime);
    expect(answers.map(({ status }) => status).slice(0, 20)).toEqual(Array(20).fill(202));
    expect(answers[20]?.status).toBe(503);
    expect(answers[20]?.headers.get("retry-after")).toBe("10");
    for (const answer of answers.slice(0, 20)) await finished(answer.body.jobId);
  });
});

describe("jobs are kept 30 days", () => {
  test("by the service clock", async () => {
    const job = await run([item(newNumber())]);
    await api.advance(30 * 86_400 - 60);
    token = await api.token("key_acme_main").then(async () => {
      const answer = await api.call("POST", "/v2/auth/token", {
        body: { apiKey: "key_acme_main" },
      });
      return answer.body.token;
    });
    expect((await readJob(job.jobId)).status).toBe(200);
    await api.advance(120);
    expect((await readJob(job.jobId)).status).toBe(404);
  });
});

/**
 * Valid and mutated envelopes by the thousand: never a 5xx, counters that always sum, and the real endpoint and validate
 * agree on what is INVALID. Seed and counts are printed; a failure prints its seed and message.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Running } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { type PushResult, pushBytes } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { RUN_MS, startMeasuring } from "#test/support/measured.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/** A new one every run; put a printed one here to repeat its run. */
const SEED = Date.now() & 0x7fffffff;
const MESSAGES = RUN_MS > 0 ? Number.POSITIVE_INFINITY : 10_000;
const RAW_BODIES = RUN_MS > 0 ? Number.POSITIVE_INFINITY : 5_000;
const DRAWN_AT_ONCE = 1_000;
const EVENTS_LIMIT = 12;
const IN_FLIGHT = 8;
/** Events, at least. */
const JUDGED_DUE = 1_000;
/** The run ends here, with what it has got through. */
const BUDGET_MS = Math.max(15_000, RUN_MS / 2);

let runtime: TestRuntime;
let ingest: Running;
let url: string;

beforeAll(async () => {
  const setup = testSetup();
  const gls = setup.couriers?.find(({ code }) => code === "GLS_ITA");
  Object.assign(gls ?? {}, { rateLimit: { perSecond: 100_000, burst: 1_000_000 } });
  runtime = await openTestRuntime(setup);
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
  for (const number of ["TN1", "TN2", "TN3"]) await addShipment(runtime, number);
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

const text = fc.oneof(
  fc.string({ minLength: 1, maxLength: 20 }),
  fc.constantFrom("à", "📦", "\u0000"),
);
const time = fc.constantFrom(
  "2026-11-10T10:00:00+01:00",
  "2026-11-10T09:00:00Z",
  "2026-10-25T02:30:00.123+02:00",
);
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const validEvent = fc.record({
  eventId: fc.oneof(fc.uuid(), fc.constantFrom("again-1", "again-2", "again-3")),
  trackingNumber: fc.constantFrom("TN1", "TN2", "TN3", "nobody's"),
  occurredAt: time,
  status: fc.record({ code: fc.constantFrom("TRN", "DLV", "XYZ", "new"), description: text }),
  externalId: optional(text),
  senderAccount: optional(fc.constantFrom("ACC-1", "ACC-2")),
  location: optional(fc.record({ name: text, countryCode: fc.constantFrom("IT", "fr") })),
  parcel: optional(fc.record({ index: fc.integer({ min: 1, max: 999 }) })),
  delivery: optional(fc.record({ attemptNumber: fc.integer({ min: 1, max: 9 }), signedBy: text })),
  trackingNumberChange: optional(fc.record({ newTrackingNumber: fc.constantFrom("TN9", "TN8") })),
  attributes: optional(
    fc.dictionary(fc.string({ minLength: 1, maxLength: 64 }), fc.string(), {
      maxKeys: 20,
      noNullPrototype: true,
    }),
  ),
});

const FIELDS = [
  "eventId",
  "trackingNumber",
  "occurredAt",
  "status",
  "externalId",
  "location",
  "parcel",
  "delivery",
  "attributes",
  "isReturn",
  "surprise",
  "constructor",
  "toString",
];
const ENVELOPE_FIELDS = ["schemaVersion", "messageId", "sentAt", "courier", "events", "surprise"];

/** Anything JSON can hold, half surrogate pairs and strange keys included. */
const anything = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom<unknown>(
    undefined,
    null,
    "",
    "x".repeat(600),
    "\ud83d",
    -1,
    1e300,
    2 ** 53,
    [],
    {},
  ),
  fc.string({ unit: "binary", maxLength: 10 }),
);

const mutatedEvent = fc
  .tuple(
    validEvent,
    fc.array(fc.tuple(fc.constantFrom(...FIELDS), anything), { minLength: 1, maxLength: 3 }),
  )
  .map(([event, changes]) => ({ ...event, ...Object.fromEntries(changes) }));
const someEvent = fc.oneof(
  { weight: 5, arbitrary: validEvent },
  { weight: 4, arbitrary: mutatedEvent },
  { weight: 1, arbitrary: anything },
);
const events = fc.array(someEvent, { minLength: 1, maxLength: EVENTS_LIMIT });

const envelope = fc.record({
  schemaVersion: fc.constantFrom("1.0", "1.1"),
  messageId: fc.uuid(),
  sentAt: time,
  courier: fc.constant("GLS_ITA"),
  events,
});
const mutatedEnvelope = fc
  .tuple(envelope, fc.constantFrom(...ENVELOPE_FIELDS), anything)
  .map(([valid, field, value]) => ({ ...valid, [field]: value }));
const message = fc.oneof(
  { weight: 9, arbitrary: envelope },
  { weight: 1, arbitrary: mutatedEnvelope },
);

const send = (body: Uint8Array, path: string, gzip: boolean) =>
  pushBytes(url, body, { path, gzip });
const invalids = ({ body }: PushResult) =>
  body.results.map(({ outcome }: { outcome: string }) => outcome === "INVALID");

/** What must hold of any answer to a message. */
function checkAnswer(sent: unknown, { status, body }: PushResult): void {
  expect(status).toBeLessThan(500);
  if (status !== 200) {
    expect([400, 403]).toContain(status);
    expect(body.code).toMatch(/^[A-Z_]+$/);
    return;
  }
  const count = (sent as { events: unknown[] }).events.length;
  const { accepted, duplicate, unknownTracking, invalid, results } = body;
  expect(accepted + duplicate + unknownTracking + invalid).toBe(count);
  expect(results.length).toBe(count);
  for (const { outcome, errors } of results) {
    expect(Array.isArray(errors) && errors.length > 0).toBe(outcome === "INVALID");
  }
}

function* drawn<T>(arbitrary: fc.Arbitrary<T>, most: number): Generator<T> {
  for (let from = 0; from < most; from += DRAWN_AT_ONCE) {
    yield* fc.sample(arbitrary, { numRuns: DRAWN_AT_ONCE, seed: SEED + from });
  }
}

/**
 * Several at once, until all are through, or the budget is spent and what is due is done.
 * @returns how many were
 */
async function runAll<T>(
  items: Iterator<T>,
  work: (item: T) => Promise<void>,
  isEnough = () => true,
): Promise<number> {
  const deadline = performance.now() + BUDGET_MS;
  let count = 0;
  const worker = async () => {
    while (performance.now() < deadline || !isEnough()) {
      const { value, done } = items.next();
      if (done) return;
      count += 1;
      await work(value);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  return count;
}

function reported(what: string, count: number): void {
  process.stderr.write(`fuzz: seed ${SEED}, ${count} ${what}\n`);
}

describe("fuzz", () => {
  test("messages: no 5xx, counters sum, both endpoints agree on INVALID", async () => {
    const measuring = startMeasuring("Bad input", "messages drawn and mutated, sent to two routes");
    let judged = 0;
    let failed = 0;
    const messages = drawn(message, MESSAGES);
    const judge = async (sent: unknown) => {
      const body = new TextEncoder().encode(JSON.stringify(sent));
      const gzip = body.length % 3 === 0;
      const validated = await send(body, "/v1/events/validate", gzip);
      const real = await send(body, "/v1/events", gzip);
      failed += [validated, real].filter(({ status }) => status >= 500).length;
      try {
        checkAnswer(sent, validated);
        checkAnswer(sent, real);
        expect(real.status).toBe(validated.status);
        if (real.status === 200) expect(invalids(real)).toEqual(invalids(validated));
      } catch (error) {
        throw new Error(`seed ${SEED}: ${JSON.stringify(sent)}`, { cause: error });
      }
      judged += real.status === 200 ? real.body.results.length : 0;
    };
    const count = await runAll(messages, judge, () => judged > JUDGED_DUE);
    const further = { "events judged": judged, "answers of 5xx": failed };
    await measuring.done({ inputs: 2 * count, further });
    reported(`messages with ${judged} judged events, each sent to both endpoints`, count);
    expect(judged).toBeGreaterThan(JUDGED_DUE);
  }, 3_600_000);

  test("bodies cut, doubled and broken at random bytes: no 5xx", async () => {
    const valid = envelope.map((one) => new TextEncoder().encode(JSON.stringify(one)));
    const change = fc.tuple(
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.integer({ min: 0, max: 255 }),
    );
    const broken = fc
      .tuple(valid, fc.array(change, { minLength: 1, maxLength: 4 }), fc.boolean())
      .map(([bytes, changes, isCut]) => {
        const copy = Uint8Array.from(bytes);
        for (const [share, byte] of changes) copy[Math.floor(share * (copy.length - 1))] = byte;
        return isCut ? copy.slice(0, Math.floor((changes[0]?.[0] ?? 0) * copy.length)) : copy;
      });
    const bodies = drawn(broken, RAW_BODIES);
    const measuring = startMeasuring("Bad input", "bodies cut, doubled and broken at random bytes");
    let failed = 0;
    const count = await runAll(bodies, async (body) => {
      const { status } = await send(body, "/v1/events", false);
      if (status >= 500) failed += 1;
      if (![200, 400, 403].includes(status)) {
        throw new Error(`seed ${SEED}: ${status} for ${Buffer.from(body).toString("base64")}`);
      }
    });
    await measuring.done({ inputs: count, further: { "answers of 5xx": failed } });
    reported("broken bodies", count);
  }, 3_600_000);
});

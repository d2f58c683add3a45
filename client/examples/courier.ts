/**
 * A courier in one file: sends events in signed, compressed messages, and repeats what was not answered.
 *
 *   export WAYBILL_URL=https://push.example WAYBILL_TOKEN=tok_… WAYBILL_SIGNING_SECRET=sig_… WAYBILL_COURIER=GLS_ITA
 *   node courier.ts < events.ndjson     one event a line; with VALIDATE=1 they are judged, and not stored
 *
 * Needs Node.js 22.18 or newer, or Bun.
 */
import { createHmac, randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { gzipSync } from "node:zlib";

interface Answer {
  accepted: number;
  duplicate: number;
  unknownTracking: number;
  invalid: number;
  results: { eventId: string | null; outcome: string; errors?: unknown[] }[];
}

const {
  WAYBILL_URL = "",
  WAYBILL_TOKEN = "",
  WAYBILL_SIGNING_SECRET = "",
  WAYBILL_COURIER = "",
  VALIDATE,
} = process.env;
const PATH = VALIDATE === "1" ? "/v1/events/validate" : "/v1/events";
const EVENTS_PER_MESSAGE = 500;
const TIMEOUT_MS = 60_000;
/** Over 15 minutes, each with up to as much again by chance. */
const WAITS_SECONDS = [1, 4, 16, 64, 256, 600];

async function post(body: Uint8Array<ArrayBuffer>) {
  // A signature of now, over the bytes as they are sent.
  const t = Math.floor(Date.now() / 1000);
  const v1 = createHmac("sha256", WAYBILL_SIGNING_SECRET)
    .update(`${t}.`)
    .update(body)
    .digest("hex");
  const response = await fetch(WAYBILL_URL + PATH, {
    method: "POST",
    headers: {
      authorization: `Bearer ${WAYBILL_TOKEN}`,
      "content-type": "application/json",
      "content-encoding": "gzip",
      "x-service-signature": `t=${t},v1=${v1}`,
    },
    body,
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  return { response, text: await response.text() };
}

/** Seconds to wait at least, where it should be repeated. */
async function attempt(body: Uint8Array<ArrayBuffer>): Promise<Answer | number> {
  const answer = await post(body).catch((error: Error) => error);
  if (answer instanceof Error) return 0;
  const { response, text } = answer;
  if (response.ok) return JSON.parse(text);
  if (response.status >= 500 || response.status === 429) {
    return Number(response.headers.get("retry-after") ?? 0);
  }
  throw new Error(`${response.status} ${text}`);
}

/** The same bytes each time: events that an attempt has stored come back as DUPLICATE. */
async function deliver(body: Uint8Array<ArrayBuffer>): Promise<Answer> {
  for (const leastSeconds of WAITS_SECONDS) {
    const answer = await attempt(body);
    if (typeof answer !== "number") return answer;
    await wait(1000 * Math.max(answer, leastSeconds * (1 + Math.random())));
  }
  throw new Error("There was no answer for 15 minutes. Send the events again later.");
}

async function send(events: unknown[]): Promise<void> {
  const message = {
    schemaVersion: "1.0",
    messageId: randomUUID(),
    sentAt: new Date().toISOString(),
    courier: WAYBILL_COURIER,
    events,
  };
  const { accepted, duplicate, unknownTracking, invalid, results } = await deliver(
    gzipSync(JSON.stringify(message)),
  );
  console.log(
    `accepted ${accepted}, duplicate ${duplicate}, unknown ${unknownTracking}, invalid ${invalid}`,
  );
  for (const result of results) {
    // Correct these and send them again with the same eventId; all others are done.
    if (result.outcome === "INVALID") console.error(JSON.stringify(result));
  }
}

let batch: unknown[] = [];
for await (const line of createInterface({ input: process.stdin })) {
  if (line.trim() === "") continue;
  batch.push(JSON.parse(line));
  if (batch.length < EVENTS_PER_MESSAGE) continue;
  await send(batch);
  batch = [];
}
if (batch.length > 0) await send(batch);

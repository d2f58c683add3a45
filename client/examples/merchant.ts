/**
 * A merchant in one file, without a package: imports shipments, prints and confirms labels, reconciles, and receives webhooks.
 *
 *   export WAYBILL_URL=https://api.example WAYBILL_API_KEY=key_…
 *   node merchant.ts import < shipments.json              a list of shipments, as POST /v2/shipments/import takes them
 *   node merchant.ts print < label.json                   the body of POST /v2/labels
 *   node merchant.ts confirm GENERIC 81 65                closes the day: a carrier, and the ids of labels that were printed
 *   node merchant.ts reconcile '2026-11-01 00:00:00'      prints every change since then, and where the next run starts
 *   WAYBILL_WEBHOOK_SECRET=whsec_… PORT=3000 node merchant.ts receive
 *
 * Needs Node.js 22.18 or newer, or Bun.
 */
import { createHash, createHmac, randomUUID, timingSafeEqual } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

interface Shipment {
  id: number;
  trackingNumber: string;
  status: string;
  statusUpdatedAt: string | null;
}

interface Job {
  status: "pending" | "processing" | "completed" | "failed";
  result: { summary: { totalSuccess: number; totalFailed: number }; errors: unknown[] } | null;
  error: string | null;
}

interface Label {
  id: number;
  labelFormat: "PDF" | "ZPL";
  labels: string[];
}

interface Confirmation {
  confirmedIds: number[];
  alreadyConfirmedIds: number[];
  notFoundIds: number[];
  errors: unknown[];
  transmissions: { transmissionNumber: string; slipUrl: string; labelIds: number[] }[];
}

interface Answer {
  status: number;
  retryAfterSeconds: number;
  text: string;
}

interface WebhookEvent {
  id: string;
  type: "shipment.updated" | "webhook.test";
  data: { shipment: Shipment };
}

const {
  WAYBILL_URL = "",
  WAYBILL_API_KEY = "",
  WAYBILL_WEBHOOK_SECRET = "",
  PORT = "3000",
} = process.env;
/** Over half a minute, each with up to as much again by chance. */
const WAITS_SECONDS = [1, 2, 4, 8, 16];
const TIMEOUT_MS = 60_000;
const PAGE = 100;
const TOLERANCE_SECONDS = 300;

let token: string | null = null;

/** Again after a lost connection, 429 and every 5xx, and while another request with the same key is under way. */
async function send(path: string, init: RequestInit): Promise<Answer> {
  for (let attempt = 0; ; attempt += 1) {
    const answer = await sendOnce(path, init).catch((error: Error) => error);
    const isLost = answer instanceof Error;
    const askedSeconds = isLost ? 0 : answer.retryAfterSeconds;
    const isTemporary =
      isLost ||
      answer.status === 429 ||
      answer.status >= 500 ||
      (answer.status === 409 && askedSeconds > 0);
    const leastSeconds = WAITS_SECONDS[attempt];
    if (isTemporary && leastSeconds !== undefined) {
      await wait(1000 * Math.max(askedSeconds, leastSeconds * (1 + Math.random())));
    } else if (isLost) {
      throw answer;
    } else {
      return answer;
    }
  }
}

async function sendOnce(path: string, init: RequestInit): Promise<Answer> {
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const response = await fetch(WAYBILL_URL + path, { ...init, signal });
  const retryAfterSeconds = Number(response.headers.get("retry-after") ?? 0);
  return { status: response.status, retryAfterSeconds, text: await response.text() };
}

function bodyOf<T>({ status, text }: Answer): T {
  if (status < 300) return JSON.parse(text);
  throw new Error(`${status} ${text}`);
}

async function login(): Promise<string> {
  const answer = await send("/v2/auth/token", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiKey: WAYBILL_API_KEY }),
  });
  return bodyOf<{ token: string }>(answer).token;
}

/** The same request has the same key after a restart of this program, too. */
function keyOf(path: string, text: string | null): string {
  return createHash("sha256").update(`${path} ${text}`).digest("hex");
}

/** A POST may be repeated, since its repetitions have the same key. */
async function call<T>(method: "GET" | "POST", path: string, body?: unknown, key?: string) {
  const text = body === undefined ? null : JSON.stringify(body);
  const ask = () =>
    send(path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(text !== null && {
          "content-type": "application/json",
          "idempotency-key": key ?? keyOf(path, text),
        }),
      },
      body: text,
    });
  token ??= await login();
  let answer = await ask();
  if (answer.status === 401) {
    token = await login();
    answer = await ask();
  }
  return bodyOf<T>(answer);
}

async function importShipments(shipments: unknown[]): Promise<void> {
  const { jobId } = await call<{ jobId: string }>("POST", "/v2/shipments/import", { shipments });
  let job = await call<Job>("GET", `/v2/jobs/${jobId}`);
  while (job.status === "pending" || job.status === "processing") {
    await wait(1_000);
    job = await call<Job>("GET", `/v2/jobs/${jobId}`);
  }
  const { summary, errors } = job.result ?? { summary: null, errors: [] };
  console.log(
    job.status,
    `${summary?.totalSuccess ?? 0} created`,
    `${summary?.totalFailed ?? 0} refused`,
  );
  for (const error of errors) console.error(JSON.stringify(error));
  if (job.status === "failed") throw new Error(job.error ?? "The import failed.");
}

async function printLabel(request: unknown): Promise<void> {
  const label = await call<Label>("POST", "/v2/labels", request);
  for (const [at, sheet] of label.labels.entries()) {
    const name = `label-${label.id}-${at + 1}.${label.labelFormat.toLowerCase()}`;
    await writeFile(name, sheet, label.labelFormat === "PDF" ? "base64" : "utf8");
    console.log(name);
  }
}

/** May be repeated: a confirmed label stays in its transmission. */
async function confirm(courier: string, labelIds: number[]): Promise<void> {
  // A key of its own for each run, so that labels the carrier refused are sent again.
  const { confirmedIds, alreadyConfirmedIds, notFoundIds, errors, transmissions } =
    await call<Confirmation>("POST", "/v2/labels/confirm", { courier, labelIds }, randomUUID());
  console.log(`${confirmedIds.length} confirmed, ${alreadyConfirmedIds.length} confirmed before`);
  for (const { transmissionNumber, slipUrl, labelIds: ids } of transmissions) {
    console.log(transmissionNumber, ids.join(","), slipUrl);
  }
  for (const error of errors) console.error(JSON.stringify(error));
  if (notFoundIds.length > 0) console.error(`not found: ${notFoundIds.join(", ")}`);
  if (errors.length + notFoundIds.length > 0) process.exitCode = 1;
}

/** Always page 1, from the last change of the page before, until a page is not full. */
async function reconcile(since: string): Promise<void> {
  const seen = new Set<string>();
  let from = since;
  let items: Shipment[];
  do {
    const query = new URLSearchParams({
      updatedAfter: from,
      sortBy: "updatedAt_asc",
      limit: `${PAGE}`,
    });
    ({ items } = await call<{ items: Shipment[] }>("GET", `/v2/shipments?${query}`));
    for (const { id, trackingNumber, status, statusUpdatedAt } of items) {
      from = statusUpdatedAt ?? from;
      const change = `${id} ${statusUpdatedAt}`;
      if (seen.has(change)) continue;
      seen.add(change);
      // Store the shipment here.
      console.log(trackingNumber, status, statusUpdatedAt);
    }
  } while (items.length === PAGE);
  console.log("next time from", from);
}

function isAuthentic(body: Buffer, signature: string): boolean {
  const parts = signature.split(",").map((part) => part.trim().split("="));
  const t = parts.find(([name]) => name === "t")?.[1] ?? "";
  if (!/^\d{1,12}$/.test(t) || Math.abs(Date.now() / 1000 - Number(t)) > TOLERANCE_SECONDS)
    return false;
  const expected = createHmac("sha256", WAYBILL_WEBHOOK_SECRET)
    .update(`${t}.`)
    .update(body)
    .digest();
  // Two of them while a rotation runs: it is enough if one matches.
  return parts
    .filter(([name, value = ""]) => name === "v1" && /^[0-9a-f]{64}$/.test(value))
    .some(([, value = ""]) => timingSafeEqual(Buffer.from(value, "hex"), expected));
}

async function bytesOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function receive(): void {
  // Keep the ids in your database for 30 days: these are forgotten when the program ends.
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    const body = await bytesOf(request);
    if (!isAuthentic(body, `${request.headers["x-service-signature"]}`))
      return response.writeHead(401).end();
    const { id, type, data }: WebhookEvent = JSON.parse(body.toString());
    if (type === "shipment.updated" && !seen.has(id)) {
      // Store the event here, and work on it after the answer. If that fails, answer 503: it is sent again.
      console.log(data.shipment.trackingNumber, data.shipment.status);
    }
    seen.add(id);
    return response.writeHead(204).end();
  });
  server.listen(Number(PORT), () => console.log("listening"));
}

async function input<T>(): Promise<T> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return JSON.parse(Buffer.concat(chunks).toString());
}

const [command, argument = "", ...others] = process.argv.slice(2);
if (command === "import") await importShipments(await input());
else if (command === "print") await printLabel(await input());
else if (command === "confirm") await confirm(argument, others.map(Number));
else if (command === "reconcile") await reconcile(argument || "2026-01-01 00:00:00");
else if (command === "receive") receive();
else throw new Error("Say import, print, confirm, reconcile or receive.");

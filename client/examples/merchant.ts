/**
 * A merchant in one file, without a package: imports shipments, prints labels, reconciles, and receives webhooks.
 *
 *   export WAYBILL_URL=https://api.example WAYBILL_API_KEY=key_…
 *   node merchant.ts import < shipments.json              a list of shipments, as POST /v2/shipments/import takes them
 *   node merchant.ts print < label.json                   the body of POST /v2/labels
 *   node merchant.ts reconcile '2026-11-01 00:00:00'      prints every change since then, and where the next run starts
 *   WAYBILL_WEBHOOK_SECRET=whsec_… PORT=3000 node merchant.ts receive
 *
 * Needs Node.js 22.18 or newer, or Bun.
 */
import { createHash, createHmac, timingSafeEqual } from "node:crypto";
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
const ATTEMPTS = 5;
const PAGE = 100;
const TOLERANCE_SECONDS = 300;

let token: string | null = null;

async function login(): Promise<string> {
  const response = await fetch(`${WAYBILL_URL}/v2/auth/token`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ apiKey: WAYBILL_API_KEY }),
  });
  const body = (await response.json()) as { token: string; code?: string; message?: string };
  if (!response.ok) throw new Error(`${response.status} ${body.code}: ${body.message}`);
  return body.token;
}

/** Repeats what is safe to repeat: a GET always, and a POST because its repetitions have the same key. */
async function call<T>(method: "GET" | "POST", path: string, body?: unknown): Promise<T> {
  const text = body === undefined ? null : JSON.stringify(body);
  // The same request has the same key after a restart of this program, too.
  const key = createHash("sha256").update(`${method} ${path} ${text}`).digest("hex");
  for (let attempt = 1; ; attempt += 1) {
    token ??= await login();
    const response = await fetch(WAYBILL_URL + path, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(text !== null && { "content-type": "application/json", "idempotency-key": key }),
      },
      body: text,
    }).catch((error: Error) => error);
    if (!(response instanceof Error)) {
      const answer = (await response.json()) as T & { code?: string };
      if (response.ok) return answer;
      const isOver = response.status === 401;
      const isBusy = [429, 503].includes(response.status) || response.headers.has("retry-after");
      if ((!isOver && !isBusy) || attempt === ATTEMPTS) {
        throw new Error(`${response.status} ${answer.code}: ${JSON.stringify(answer)}`);
      }
      if (isOver) token = null;
      await wait(1000 * Number(response.headers.get("retry-after") ?? 0));
    } else if (attempt === ATTEMPTS) {
      throw response;
    } else {
      await wait(1000 * 2 ** attempt);
    }
  }
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

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function receive(): void {
  // Keep the ids in your database for 30 days: these are forgotten when the program ends.
  const seen = new Set<string>();
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
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

const [command, argument = "2026-01-01 00:00:00"] = process.argv.slice(2);
if (command === "import") await importShipments(await input());
else if (command === "print") await printLabel(await input());
else if (command === "reconcile") await reconcile(argument);
else if (command === "receive") receive();
else throw new Error("Say import, print, reconcile or receive.");

/**
 * BullMQ as the measurements use it: through Bun's client, the fastest of those it takes, on the Redis that we use too. And the
 * deliveries as a TypeScript team would otherwise send them: one HTTPS POST by `fetch` for each job, with keep-alive, the same body and the
 * same signature. Jobs are added in bulk before the clock starts and removed when they are done; its retries stand ready as ours do.
 */
import { createBunRedisClient, type DefaultJobOptions, Queue, Worker } from "bullmq";
import { RedisClient } from "bun";
import type { Runtime } from "#core/runtime/runtime.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { type Defer, socketOf } from "./harness.ts";

const JOBS_PER_CALL = 500;
/** The product's request limit. */
const REQUEST_LIMIT_MS = 10_000;
const RETRY = { attempts: 8, backoff: { type: "exponential", delay: 60_000 } } as const;

const connections = new Set<ReturnType<typeof createBunRedisClient>>();

function connect(runtime: Runtime) {
  const connection = createBunRedisClient(new RedisClient(`redis+unix://${socketOf(runtime)}`));
  connections.add(connection);
  return connection;
}

export function queueOf<T>(runtime: Runtime, name: string, job: DefaultJobOptions): Queue<T> {
  return new Queue<T>(name, { connection: connect(runtime), defaultJobOptions: job });
}

/** @param concurrency jobs at once */
export function workerOf<T>(
  runtime: Runtime,
  name: string,
  concurrency: number,
  work: (job: T, attempt: number) => Promise<unknown>,
): Worker<T> {
  const options = { connection: connect(runtime), concurrency };
  return new Worker<T>(name, ({ data, attemptsMade }) => work(data, attemptsMade + 1), options);
}

/** Document 3, "Receiver request sent by the service": what the peers send is the same. */
export function requestHeaders(id: string, body: string, attempt: number): Record<string, string> {
  return {
    "Content-Type": "application/json",
    "User-Agent": "Service-Webhooks/2",
    "X-Service-Event-Id": id,
    "X-Service-Event-Type": "shipment.updated",
    "X-Service-Delivery-Attempt": String(attempt),
    "X-Service-Signature": sign([WEBHOOK_SECRET], body, Date.now()),
  };
}

type WebhookJob = Readonly<{ id: string; url: string; payload: object }>;

async function sendJob(ca: string, { id, url, payload }: WebhookJob, attempt: number) {
  const body = JSON.stringify(payload);
  const response = await fetch(url, {
    method: "POST",
    headers: requestHeaders(id, body, attempt),
    body,
    tls: { ca },
    redirect: "manual",
    signal: AbortSignal.timeout(REQUEST_LIMIT_MS),
  });
  await response.arrayBuffer();
  if (!response.ok) throw new Error(`status ${response.status}`);
}

/** @returns a function that adds jobs and processes them, and returns how many a second */
export function openWebhookPeer(defer: Defer, runtime: Runtime, ca: string, concurrency: number) {
  const name = `webhooks-${concurrency}`;
  const queue = queueOf<WebhookJob>(runtime, name, { ...RETRY, removeOnComplete: true });
  defer(async () => {
    await queue.close();
    // BullMQ closes what it opens itself, not what it is given.
    for (const connection of connections) connection.disconnect();
    connections.clear();
  });
  return async (jobs: readonly WebhookJob[]): Promise<number> => {
    for (let from = 0; from < jobs.length; from += JOBS_PER_CALL) {
      const part = jobs.slice(from, from + JOBS_PER_CALL);
      await queue.addBulk(part.map((data) => ({ name: "post", data })) as never);
    }
    const { promise: all, resolve, reject } = Promise.withResolvers<void>();
    let left = jobs.length;
    const startMs = performance.now();
    const worker = workerOf(runtime, name, concurrency, (job: WebhookJob, attempt) =>
      sendJob(ca, job, attempt),
    );
    worker.on("completed", () => {
      left -= 1;
      if (left === 0) resolve();
    });
    worker.on("failed", (_, error) => reject(error));
    await all;
    const rate = (jobs.length * 1_000) / (performance.now() - startMs);
    await worker.close();
    return rate;
  };
}

/**
 * The deliveries as a TypeScript team would otherwise send them: BullMQ jobs on the same Redis, one HTTPS POST by `fetch`
 * each, with keep-alive, the same body and the same signature. Jobs are added in bulk before the clock starts and removed
 * when they are done: what BullMQ keeps of an attempt, it keeps; its retries stand ready as ours do.
 */
import { createBunRedisClient, Queue, Worker } from "bullmq";
import { RedisClient } from "bun";
import { sign } from "#core/webhooks/rules/signature.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";

const NAME = "webhooks";
const JOBS_PER_CALL = 500;
/** `fetch` keeps 64 idle connections in all: more at once opens new ones for most requests, and is slower. */
const CONCURRENCY = 64;
/** The product's request limit. */
const REQUEST_LIMIT_MS = 10_000;
const RETRY = { attempts: 8, backoff: { type: "exponential", delay: 60_000 } } as const;

export interface BullmqJob {
  readonly id: string;
  readonly url: string;
  readonly payload: object;
}

export interface BullmqPeer {
  readonly add: (jobs: readonly BullmqJob[]) => Promise<void>;
  /** Works off everything that was added. @returns jobs a second */
  readonly run: (count: number) => Promise<number>;
  readonly close: () => Promise<void>;
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

/**
 * @param socket path of Redis' Unix socket, or its URL
 * @param concurrency jobs at once
 */
export function createBullmqPeer(
  socket: string,
  ca: string,
  concurrency = CONCURRENCY,
): BullmqPeer {
  // The fastest of the clients that BullMQ takes.
  const address = socket.startsWith("/") ? `redis+unix://${socket}` : socket;
  const connect = () => createBunRedisClient(new RedisClient(address));
  // BullMQ closes what it opens itself, not what it is given.
  const connections = [connect(), connect()] as const;
  const queue = new Queue<BullmqJob>(NAME, { connection: connections[0] });

  async function send({ id, url, payload }: BullmqJob, attempt: number): Promise<number> {
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
    return response.status;
  }

  return {
    async add(jobs) {
      const options = { ...RETRY, removeOnComplete: true };
      for (let from = 0; from < jobs.length; from += JOBS_PER_CALL) {
        const part = jobs.slice(from, from + JOBS_PER_CALL);
        await queue.addBulk(part.map((data) => ({ name: "post", data, opts: options })));
      }
    },
    async run(count) {
      const { promise: all, resolve, reject } = Promise.withResolvers<void>();
      let done = 0;
      const startMs = performance.now();
      const worker = new Worker<BullmqJob, number>(
        NAME,
        ({ data, attemptsMade }) => send(data, attemptsMade + 1),
        { connection: connections[1], concurrency },
      );
      worker.on("completed", () => {
        done += 1;
        if (done === count) resolve();
      });
      worker.on("failed", (_, error) => reject(error));
      await all;
      const seconds = (performance.now() - startMs) / 1000;
      await worker.close();
      return count / seconds;
    },
    async close() {
      await queue.close();
      for (const connection of connections) connection.disconnect();
    },
  };
}

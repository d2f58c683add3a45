/**
 * The peers of `bench/ingest.ts`: Elysia routes that parse the same body. `/v1/events` does nothing else; `/v1/jobs` adds
 * the message to a BullMQ queue on the Redis whose address is the argument, so that it is as durable as ours, and then answers.
 */
import { createBunRedisClient, Queue } from "bullmq";
import { RedisClient } from "bun";
import { Elysia } from "elysia";

const RAW = { parse: "none" } as const;
const utf8 = new TextDecoder();
const [, , address = ""] = process.argv;
const queue = new Queue("messages", { connection: createBunRedisClient(new RedisClient(address)) });

async function eventsOf(request: Request): Promise<unknown[]> {
  const body = new Uint8Array(await request.arrayBuffer());
  const { events } = JSON.parse(utf8.decode(body)) as { events: unknown[] };
  return events;
}

new Elysia()
  .post("/v1/events", async ({ request }) => ({ accepted: (await eventsOf(request)).length }), RAW)
  .post(
    "/v1/jobs",
    async ({ request }) => {
      const events = await eventsOf(request);
      await queue.add("message", { events }, { removeOnComplete: true });
      return { accepted: events.length };
    },
    RAW,
  )
  .listen({ port: 0, hostname: "127.0.0.1" }, ({ port }) => {
    process.stdout.write(`http://127.0.0.1:${port}\n`);
  });

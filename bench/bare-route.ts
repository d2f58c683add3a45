/** The peer of `bench/ingest.ts`: an Elysia route that inflates and parses the same body, and does nothing else. */
import { gunzipSync } from "node:zlib";
import { Elysia } from "elysia";
import { BODY_LIMIT_BYTES } from "#core/domain/courier-events/event.ts";

const utf8 = new TextDecoder();

const app = new Elysia()
  .post(
    "/v1/events",
    async ({ request }) => {
      const body = new Uint8Array(await request.arrayBuffer());
      const isGzip = request.headers.get("content-encoding") === "gzip";
      const plain = isGzip ? gunzipSync(body, { maxOutputLength: BODY_LIMIT_BYTES }) : body;
      const { events } = JSON.parse(utf8.decode(plain)) as { events: unknown[] };
      return { accepted: events.length };
    },
    { parse: "none" },
  )
  .listen({ port: 0, hostname: "127.0.0.1" });
process.stdout.write(`http://127.0.0.1:${app.server?.port}\n`);

/** What receivers need and may read without a token: the addresses we call from, the payload's schema, AsyncAPI. */

import { readFileSync } from "node:fs";
import { type TSchema, Type } from "@sinclair/typebox";
import { publicRoutes, route } from "#core/platform/http/access.ts";
import { PUBLIC_CACHE, pageResponse, searched } from "#core/platform/http/reference-page.ts";
import { jsonValue } from "#core/platform/schema/json-value.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { WebhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { webhookAsyncapi } from "./webhook-asyncapi.ts";
import { webhookReference } from "./webhook-reference.ts";

const SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema";

const VECTOR = new URL("../../../docs/vectors/webhook-signature.json", import.meta.url);

export function webhookKitRoutes({ config }: Runtime) {
  const page = webhookReference();
  const vector = readFileSync(VECTOR, "utf8");
  return publicRoutes("webhook kit")
    .get(
      "/ips.txt",
      () => new Response(addressList(config.outboundIps), { headers: PLAIN }),
      route({
        summary: "Addresses that outgoing calls leave from, one per line",
        answers: answer("text/plain", Type.String()),
      }),
    )
    .get(
      "/webhooks/payload.schema.json",
      () => ({ $schema: SCHEMA_DIALECT, ...WebhookPayload }),
      route({
        summary: "JSON Schema of the webhook payload",
        answers: answer("application/json", ANYTHING),
      }),
    )
    .get("/webhooks/docs", ({ request }) => pageResponse(searched(page, request)))
    .get(
      "/webhooks/vector.json",
      () => new Response(vector, { headers: JSON_HEADERS }),
      route({
        summary: "A body, two secrets and a signature, to test a receiver with",
        answers: answer("application/json", ANYTHING),
      }),
    )
    .get(
      "/webhooks/asyncapi.json",
      () => webhookAsyncapi(),
      route({
        summary: "AsyncAPI description of the webhooks",
        answers: answer("application/json", ANYTHING),
      }),
    );
}

const ANYTHING = jsonValue();

function answer(mediaType: string, schema: TSchema) {
  return {
    200: { description: "as it is now", content: { mediaType, schema } },
  };
}

const JSON_HEADERS = { "content-type": "application/json", ...PUBLIC_CACHE };
const PLAIN = { "content-type": "text/plain; charset=utf-8", "cache-control": "max-age=300" };

/** Empty if none are configured: behind a router, receivers do not see this machine's own addresses. */
function addressList(configured: readonly string[]): string {
  return [...new Set(configured)].map((address) => `${address}\n`).join("");
}

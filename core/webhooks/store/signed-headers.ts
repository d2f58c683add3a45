/** The headers of a webhook request, signatures included (document 3, "Signature rules"). */

import type { Endpoint } from "#core/configuration/store/configuration.ts";
import { hasPreviousSecret } from "#core/configuration/store/endpoint-entity.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { openedHeaders, withCustomHeaders } from "#core/webhooks/rules/custom-headers.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { standardSignature } from "#core/webhooks/rules/standard-webhooks.ts";
import { type RequestFacts, webhookHeaders } from "#core/webhooks/rules/webhook-request.ts";

/** @param body exactly as it is sent */
export function signedHeaders(
  endpoint: Endpoint,
  vault: Vault,
  event: RequestFacts,
  body: string | Uint8Array,
): Record<string, string> {
  const { eventId, sentAtMs } = event;
  const secrets = secretsInForce(endpoint, vault, sentAtMs);
  const headers = webhookHeaders(event, endpoint);
  headers["X-Service-Signature"] = sign(secrets, body, sentAtMs);
  const timestamp = headers["webhook-timestamp"];
  if (timestamp !== undefined) {
    headers["webhook-signature"] = standardSignature(eventId, timestamp, secrets, body);
  }
  return withCustomHeaders(headers, openedHeaders(endpoint.headers, vault));
}

/** The newest first; the one before it for 24 hours (document 3, "Signature rules" 5). */
export function secretsInForce(endpoint: Endpoint, vault: Vault, nowMs: number): readonly string[] {
  const { secret, previousSecret } = endpoint;
  const overlaps = previousSecret !== null && hasPreviousSecret(endpoint, nowMs);
  return (overlaps ? [secret, previousSecret] : [secret]).map(vault.open);
}

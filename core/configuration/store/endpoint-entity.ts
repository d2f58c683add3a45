/** New endpoints and new secrets, the same whether the setup file or the panel makes them. */

import type { EndpointEntity } from "#core/configuration/rules/entities.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { newToken } from "#core/platform/secrets/secrets.ts";
import { targetKey, type WebhookTarget } from "#core/webhooks/rules/webhook-request.ts";

/** Document 3, "Limits": the old secret signs for 24 hours more after a rotation. */
export const SECRET_OVERLAP_MS = 86_400_000;

/** 64 random bits. */
export function newEndpointId(): string {
  return newToken("ep_").slice(0, 19);
}

/** `whsec_` and 64 hex characters. */
export function newWebhookSecret(): string {
  return newToken("whsec_");
}

/** The new secret with the old one beside it. Both are sealed. */
export function rotatedSecret(
  before: string,
  after: string,
  nowMs: number,
): Pick<EndpointEntity, "secret" | "previousSecret" | "previousUntilMs"> {
  return { secret: after, previousSecret: before, previousUntilMs: nowMs + SECRET_OVERLAP_MS };
}

/** Whether the secret of an earlier rotation still signs. */
export function hasPreviousSecret(
  { previousSecret, previousUntilMs }: Pick<EndpointEntity, "previousSecret" | "previousUntilMs">,
  nowMs: number,
): boolean {
  return previousSecret !== null && nowMs < previousUntilMs;
}

export const EARLIER_TARGETS_KEPT = limit(
  20,
  "earlier URLs of an endpoint that the delivery log can show",
  "older ones are null",
);

/** `earlierTargets` after a change of where its requests go; the oldest are dropped. */
export function earlierTargetsAfter(
  before: EndpointEntity,
  after: WebhookTarget,
): readonly WebhookTarget[] {
  const { url, standardWebhooks, bodyFormat, earlierTargets } = before;
  const old: WebhookTarget = {
    url,
    standardWebhooks,
    ...(bodyFormat !== "waybill" && { bodyFormat }),
  };
  if (targetKey(old) === targetKey({ ...after })) return earlierTargets;
  return [...earlierTargets, old].slice(-EARLIER_TARGETS_KEPT);
}

/** New endpoints and new secrets, the same whether the setup file or the panel makes them. */

import { newToken } from "#core/platform/secrets/secrets.ts";
import type { WebhookTarget } from "#core/webhooks/rules/webhook-request.ts";
import type { EndpointEntity } from "./entities.ts";

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
  {
    previousSecret,
    previousUntilMs,
  }: { readonly previousSecret?: string | null; readonly previousUntilMs: number },
  nowMs: number,
): boolean {
  return Boolean(previousSecret) && nowMs < previousUntilMs;
}

/** Past targets of an endpoint that the delivery log can still name. */
export const EARLIER_TARGETS_KEPT = 20;

/** `earlierTargets` after a change of where its requests go; the oldest are dropped. */
export function earlierTargetsAfter(
  before: EndpointEntity,
  { url, standardWebhooks }: WebhookTarget,
): string {
  const { url: oldUrl, standardWebhooks: oldStandard = false, earlierTargets = "" } = before;
  if (url === oldUrl && standardWebhooks === oldStandard) return earlierTargets;
  const old: WebhookTarget = { url: oldUrl, standardWebhooks: oldStandard };
  return JSON.stringify([...earlierTargetsOf(before), old].slice(-EARLIER_TARGETS_KEPT));
}

export function earlierTargetsOf({
  earlierTargets,
}: Pick<EndpointEntity, "earlierTargets">): WebhookTarget[] {
  return earlierTargets ? JSON.parse(earlierTargets) : [];
}

export interface Disabled {
  /** `failing`: 3 days without success. */
  readonly reason: "manual" | "failing";
  /** UTC milliseconds. */
  readonly sinceMs: number;
  /** The first failure, where failing is the reason. */
  readonly failingSinceMs: number | null;
}

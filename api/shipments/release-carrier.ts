/**
 * Carriers that release parcels from their depots, as adapters. The gateway contract: `POST {url}` with `ReleaseOrder` as
 * JSON and `Idempotency-Key`; 2xx `{outcome: "ok"|"error"|"pending", message}` is its answer, 400, 409 and 422 with
 * `{message}` are its refusal, anything else means it is unavailable. A deferred carrier's real outcome comes later as a
 * tracking event.
 */

import { REFUSALS, readAnswer } from "#api/http/gateway.ts";
import type { Courier } from "#core/configuration/store/configuration.ts";
import { isNational } from "#core/merchants/rules/label-carrier.ts";
import type { StockReleaseBody } from "#core/merchants/rules/stock-release.ts";
import type { ReleaseOutcome } from "#core/merchants/store/stock-releases.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { limit } from "#core/platform/schema/limit.ts";

export interface ReleaseOrder {
  readonly releaseId: number;
  readonly courier: string;
  readonly trackingNumber: string;
  readonly action: StockReleaseBody["action"];
  readonly notes: string | null;
  /** Null for carriers that take no date. */
  readonly redeliveryDate: string | null;
  readonly address: StockReleaseBody["address"] | null;
}

export type ReleaseAnswer =
  | { readonly kind: "accepted"; readonly outcome: ReleaseOutcome; readonly message: string | null }
  | { readonly kind: "refused"; readonly message: string }
  | { readonly kind: "unreachable" | "unreadable" };

/** Null: the carrier takes no stock releases. */
export type ReleaseCarrier = ((order: ReleaseOrder) => Promise<ReleaseAnswer>) | null;

/** Timeout of one request to a carrier. */
export const RELEASE_LIMIT_MS = 10_000;
const ANSWER_LIMIT_BYTES = limit(64 * 1024, "answer of a carrier to a stock release", "unreadable");
const MESSAGE_LENGTH = 500;

export function releaseCarrier(
  { code, stockRelease }: Courier,
  config: Pick<Config, "nationalCarrier" | "nationalCarrierUrl" | "testClock">,
): ReleaseCarrier {
  const { mode, url } = stockRelease;
  if (mode === "none") return null;
  const gateway = url ?? (isNational(code, config.nationalCarrier) ? nationalUrl(config) : null);
  const expected: readonly ReleaseOutcome[] = mode === "sync" ? ["ok", "error"] : ["pending"];
  if (gateway !== null) return (order) => ask(gateway, order, expected);
  const outcome = expected[0] ?? "ok";
  // Under a test clock nothing is real; elsewhere a carrier that cannot be asked is unavailable.
  return async () =>
    config.testClock ? { kind: "accepted", outcome, message: null } : { kind: "unreachable" };
}

function nationalUrl({ nationalCarrierUrl }: Pick<Config, "nationalCarrierUrl">): string | null {
  return nationalCarrierUrl && `${nationalCarrierUrl.replace(/\/+$/, "")}/stock-release`;
}

async function ask(
  url: string,
  order: ReleaseOrder,
  expected: readonly ReleaseOutcome[],
): Promise<ReleaseAnswer> {
  let status: number;
  let answer: unknown;
  try {
    const response = await fetch(url, {
      method: "POST",
      body: JSON.stringify(order),
      headers: {
        "content-type": "application/json",
        "idempotency-key": `${order.courier}-${order.releaseId}`,
      },
      redirect: "manual",
      signal: AbortSignal.timeout(RELEASE_LIMIT_MS),
    });
    status = response.status;
    answer = await readAnswer(response, ANSWER_LIMIT_BYTES);
  } catch {
    return { kind: "unreachable" };
  }
  return answerOf(status, answer, expected);
}

function answerOf(
  status: number,
  value: unknown,
  expected: readonly ReleaseOutcome[],
): ReleaseAnswer {
  if (status >= 500) return { kind: "unreachable" };
  const answer = typeof value === "object" ? (value as Record<string, unknown> | null) : null;
  const text = typeof answer?.["message"] === "string" ? answer["message"] : null;
  const message = text?.slice(0, MESSAGE_LENGTH).toWellFormed() ?? null;
  if (REFUSALS.includes(status)) {
    return { kind: "refused", message: message ?? "The carrier refused without a reason." };
  }
  const outcome = expected.find((one) => one === answer?.["outcome"]);
  if (status >= 300 || outcome === undefined) return { kind: "unreadable" };
  return { kind: "accepted", outcome, message };
}

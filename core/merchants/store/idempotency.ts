/** Requests that may be repeated under an `Idempotency-Key`: one answer for each key of a channel or of a caller of the panel, for 24 hours. */
import { randomUUID } from "node:crypto";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { digestOf } from "#core/platform/redis/digest.ts";
import { companyKeys, companyPartition, panelRequestKeys } from "#core/platform/redis/keys.ts";
import { limit } from "#core/platform/schema/limit.ts";
import beginSource from "./begin-request.lua" with { type: "text" };
import endSource from "./end-request.lua" with { type: "text" };

const beginScript = script(beginSource);
const endScript = script(endSource);

const KEY_LIFE_MS = limit(86_400_000, "life of an idempotency key", "carried out as a new one");
/** A request takes less than this; a process that has died in the middle holds up its repetition for so long. */
const REQUEST_LEASE_MS = limit(
  60_000,
  "life of a request under an idempotency key that is not answered",
  "carried out again",
);
/**
 * A longer answer is not kept, and its repetition is carried out. Those of the merchant API are shorter (`packAnswer`): one
 * import of orders through the panel may have a longer one, and finds the same orders again.
 */
export const ANSWER_KEPT_CHARACTERS = limit(
  65_536,
  "length of an answer that is kept for an idempotency key",
  "a repetition is carried out again",
);
/** Keys of one caller of the panel that are remembered. Those of a channel are limited by its budget of requests. */
export const KEYS_PER_CALLER = limit(
  2_000,
  "idempotency keys of a caller of the panel that are remembered",
  "429 with `Retry-After`",
);

/** Keys of two owners never meet. */
export type KeyOwner =
  | { readonly companyId: number; readonly channelId: number }
  /** Of the panel: an account, or the operator of `PANEL_TOKEN`. */
  | { readonly identity: string };

export type Begun =
  | { readonly kind: "begun"; readonly owner: string }
  | { readonly kind: "running" }
  | { readonly kind: "other" }
  /** The caller has used as many keys as it may; `freeAtMs` = when the first of them is forgotten, service clock. */
  | { readonly kind: "full"; readonly freeAtMs: number }
  | { readonly kind: "answered"; readonly answer: string };

/** @param fingerprint of the whole request: the same key with another one is refused */
export async function beginRequest(
  redis: Redis,
  whose: KeyOwner,
  key: string,
  fingerprint: string,
  nowMs: number,
): Promise<Begun> {
  const owner = randomUUID();
  const { keys, digest } = recordOf(whose, key);
  const times = [nowMs, REQUEST_LEASE_MS, KEY_LIFE_MS].map(String);
  const args = [fingerprint, owner, ...times, digest, String(KEYS_PER_CALLER)];
  const [kind, value = ""] = await run<[Begun["kind"], string?]>(redis, beginScript, keys, args);
  switch (kind) {
    case "begun":
      return { kind, owner };
    case "answered":
      return { kind, answer: value };
    case "full":
      return { kind, freeAtMs: Number(value) };
    case "running":
    case "other":
      return { kind };
  }
}

/** @param answer null = the key is forgotten, so that a repetition is carried out */
export async function endRequest(
  redis: Redis,
  whose: KeyOwner,
  key: string,
  owner: string,
  answer: string | null,
): Promise<void> {
  const kept = answer !== null && answer.length <= ANSWER_KEPT_CHARACTERS ? answer : "";
  const { keys, digest } = recordOf(whose, key);
  await run(redis, endScript, keys, [owner, kept, digest]);
}

function recordOf(whose: KeyOwner, key: string) {
  const digest = digestOf(key).toString("base64url");
  if ("identity" in whose) {
    const { request, remembered } = panelRequestKeys(whose.identity);
    return { digest, keys: [request(digest), remembered] };
  }
  const { companyId, channelId } = whose;
  return { digest, keys: [companyKeys(companyPartition(companyId)).idempotent(channelId, digest)] };
}

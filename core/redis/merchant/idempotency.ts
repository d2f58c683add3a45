/** Requests that a merchant may repeat under an `Idempotency-Key`: one answer for each key of a channel, for 24 hours. */
import { randomUUID } from "node:crypto";
import { type Redis, run, script } from "#core/redis/client/client.ts";
import { digestOf } from "#core/redis/client/digest.ts";
import { companyKeys, companyPartition } from "#core/redis/client/keys.ts";
import beginSource from "./begin-request.lua" with { type: "text" };
import endSource from "./end-request.lua" with { type: "text" };

const beginScript = script(beginSource);
const endScript = script(endSource);

/** How long a key is remembered. */
const KEY_LIFE_MS = 86_400_000;
/** A request takes less than this; a process that has died in the middle holds up its repetition for so long. */
const REQUEST_LEASE_MS = 60_000;
/** A longer answer is not kept: the repetition is carried out, which for a label finds the one that exists. */
export const ANSWER_KEPT_CHARACTERS = 65_536;

export interface KeyOwner {
  readonly companyId: number;
  readonly channelId: number;
}

export type Begun =
  | { readonly kind: "begun"; readonly owner: string }
  | { readonly kind: "running" }
  | { readonly kind: "other" }
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
  const times = [nowMs, REQUEST_LEASE_MS, KEY_LIFE_MS].map(String);
  const args = [fingerprint, owner, ...times];
  const [kind, answer = ""] = await run<[Begun["kind"], string?]>(
    redis,
    beginScript,
    [recordKey(whose, key)],
    args,
  );
  switch (kind) {
    case "begun":
      return { kind, owner };
    case "answered":
      return { kind, answer };
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
  await run(redis, endScript, [recordKey(whose, key)], [owner, kept]);
}

function recordKey({ companyId, channelId }: KeyOwner, key: string): string {
  const digest = digestOf(key).toString("base64url");
  return companyKeys(companyPartition(companyId)).idempotent(channelId, digest);
}

/**
 * Limits guessing of secrets. Wrong secrets empty a bucket; while it is empty, right ones are refused as well, so a guess reveals
 * nothing. Who was accepted from there before has a bucket of their own, so that an attacker cannot keep them out. Wrong passwords
 * and codes from such a network empty that one; a wrong token tells nobody's name, and is too long to be guessed by whoever shares an
 * address.
 */
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { wrongSecretKeys } from "#core/platform/redis/keys.ts";
import { limit, rate } from "#core/platform/schema/limit.ts";
import source from "./check-secret.lua" with { type: "text" };

const checkSecretScript = script(source);

/** Wrong secrets from one network: a burst for some retries of a whole office, then one in three seconds. */
export const WRONG_SECRETS = rate(
  20,
  1 / 3,
  "wrong API keys, OAuth client secrets, operators' tokens, tokens of `/metrics` from one address or IPv6 network, each separately",
  "429 with `Retry-After`, unless the secret is correct and was accepted from there recently",
);
/** Wrong passwords and codes of one account, from everywhere: a code of six digits must not be guessed. */
export const WRONG_PASSWORDS = rate(
  10,
  1 / 60,
  "wrong passwords and codes of one account, from everywhere",
  "429; each network that the account was used from before has as many of its own",
);
const HOLDERS_KEPT = limit(
  100,
  "clients remembered as accepted from one address",
  "the oldest are forgotten",
);
const KEPT_MS = limit(
  7 * 86_400_000,
  "for how long a client is remembered as accepted from an address",
  "forgotten",
);
const NOTED_AGAIN_MS = 3_600_000;

export type SecretKind = "api-key" | "oauth-client" | "operator" | "metrics" | "account";

export interface SecretShown {
  readonly kind: SecretKind;
  /** The caller's network (`subscriberOf`); for `account`, the id of the e-mail address (`addressIdOf`). */
  readonly network: string;
  /** The presumed holder; for `account`, the caller's network; null where a wrong secret names nobody. */
  readonly holder: string | null;
  readonly isRight: boolean;
}

/** @returns 0 if the secret may be checked, otherwise the milliseconds until the next attempt */
export async function refuseGuess(
  redis: Redis,
  { kind, network, holder, isRight }: SecretShown,
  nowMs: number,
): Promise<number> {
  const { bucket, holders, own } = wrongSecretKeys(kind, network);
  const { perSecond, burst } = kind === "account" ? WRONG_PASSWORDS : WRONG_SECRETS;
  const [isChecked, waitMs = 0] = await run<number[]>(
    redis,
    checkSecretScript,
    [bucket, holders, holder === null ? bucket : own(holder)],
    [String(nowMs), String(perSecond), String(burst), holder ?? "", isRight ? "1" : "0"].concat(
      [HOLDERS_KEPT, KEPT_MS, NOTED_AGAIN_MS].map(String),
    ),
  );
  return isChecked === 1 ? 0 : Math.max(1, waitMs);
}

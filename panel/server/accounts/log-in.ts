/** Log-in: who shows which credentials, how often from where, and the session that follows. */
import { totpStepOf } from "#core/accounts/rules/totp.ts";
import { accountOfAddress, addressIdOf, isUsable, useCode } from "#core/accounts/store/accounts.ts";
import { openSession, SESSION_MS } from "#core/accounts/store/sessions.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { takeCourierRate } from "#core/events/store/courier-rate.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { rate } from "#core/platform/schema/limit.ts";
import { verifyPassword } from "#core/platform/secrets/passwords.ts";
import { refuseGuess } from "#core/platform/secrets/wrong-secrets.ts";
import {
  accountCredential,
  isOfClosed,
  isOperatorToken,
  networkOf,
  operatorCredential,
  type PanelDeps,
  unknownOperator,
} from "#panel/server/caller.ts";
import { cookieOf, originOf } from "./cookies.ts";

export const LOGIN_RATE = rate(
  10,
  0.2,
  "log-ins from one address (behind `TRUSTED_PROXIES` the visitor's)",
  "429",
);

type Server = Bun.Server<unknown> | null;

/**
 * All visitors behind a proxy would share its address, so a trusted proxy's `X-Forwarded-For` counts.
 * @throws {Problem} 403 from a page of another site, 429
 */
export async function admitLogin(
  deps: PanelDeps,
  request: Request,
  server: Server,
): Promise<Admitted> {
  refuseOtherSites(deps, request);
  const { redis, live } = deps;
  await live.followTestClock();
  const network = networkOf(deps, request, server);
  const taking = takeCourierRate(redis, `login ${network}`, LOGIN_RATE, live.now());
  const verdict = await taking.catch((error) => {
    if (!isShardUnavailable(error, redis)) throw error;
    return { error };
  });
  if ("error" in verdict) return { network, uncounted: verdict.error };
  if (verdict.allowed) return { network, uncounted: null };
  throw tooMany(verdict.retryAfterMs);
}

/** @returns the network of a request that was counted @throws why it could not be */
export function countedNetwork({ network, uncounted }: Admitted): string {
  if (uncounted !== null) throw uncounted;
  return network;
}

export interface Admitted {
  /** That the request comes from. */
  readonly network: string;
  /** Why the request could not be counted: only the right token of the operator, who has to mend the store, is taken. */
  readonly uncounted: unknown;
}

/** @throws {Problem} 403: another site must neither log our visitors in nor out */
export function refuseOtherSites(deps: PanelDeps, request: Request): void {
  if (originOf(deps, request) !== "other") return;
  throw new Problem(403, "CROSS_SITE", "Log-in and log-out work from the panel's own pages.");
}

/**
 * @returns the cookie of the operator of `PANEL_TOKEN`
 * @throws {Problem} 401
 */
export async function logInByToken(
  deps: PanelDeps,
  { uncounted }: Admitted,
  token: string,
): Promise<string> {
  if (!isOperatorToken(deps, token)) throw uncounted ?? unknownOperator();
  const session = { credential: operatorCredential(deps), accountId: null };
  return newCookie(deps, await openSession(deps.redis, session, deps.live.now()));
}

export interface PasswordLogin {
  readonly email: string;
  readonly password: string;
  readonly code?: string;
}

/**
 * An address without an account is answered as a wrong password is, after the same work.
 * @returns the cookie
 * @throws {Problem} 401, 429, 503
 */
export async function logInByPassword(
  deps: PanelDeps,
  admitted: Admitted,
  { email, password, code }: PasswordLogin,
): Promise<string> {
  const network = countedNetwork(admitted);
  const account = await accountOfAddress(deps.redis, email);
  const mayLogIn = account && isUsable(account) && !(await isOfClosed(deps, account));
  const usable = mayLogIn ? account : null;
  const isRight = await verifyPassword(password, usable?.passwordHash ?? "");
  // A network that is known by its password alone has no advantage in guessing codes.
  const holder = usable?.totpActive && code === undefined ? `password ${network}` : network;
  if (!usable || !isRight) {
    await refuseGuesser(deps, email, { holder, isRight: false });
    throw unknownOperator();
  }
  if (!usable.totpActive) {
    await refuseGuesser(deps, email, { holder, isRight: true });
    return logInAccount(deps, usable);
  }
  if (code === undefined) {
    await refuseGuesser(deps, email, { holder, isRight: true });
    throw new Problem(401, "TOTP_REQUIRED", "The account needs the code of its second factor.");
  }
  if (!(await isCodeSpent(deps, network, usable, code))) throw unknownOperator();
  return logInAccount(deps, usable);
}

/** The session of an account whose credentials were checked. @returns its cookie */
export async function logInAccount(deps: PanelDeps, account: AccountEntity): Promise<string> {
  const session = { credential: accountCredential(deps, account), accountId: account.id };
  return newCookie(deps, await openSession(deps.redis, session, deps.live.now()));
}

/**
 * Of an account with a second factor, also where a link or another password is to be used.
 * @throws {Problem} 401, 429
 */
export async function requireCode(
  deps: PanelDeps,
  network: string,
  account: AccountEntity,
  code: string | undefined,
): Promise<void> {
  if (!account.totpActive) return;
  if (code === undefined) {
    throw new Problem(401, "TOTP_REQUIRED", "The account needs the code of its second factor.");
  }
  await spendCode(deps, network, account, code);
}

/** @throws {Problem} 401, 429 */
export async function spendCode(
  deps: PanelDeps,
  network: string,
  account: AccountEntity,
  code: string,
): Promise<void> {
  if (await isCodeSpent(deps, network, account, code)) return;
  throw new Problem(401, "WRONG_CODE", "The code is wrong, over, or was used before.");
}

/** @returns false if it is wrong, over or was used before @throws {Problem} 429 */
async function isCodeSpent(
  deps: PanelDeps,
  network: string,
  account: AccountEntity,
  code: string,
): Promise<boolean> {
  const step = stepOf(deps, account, code);
  await refuseGuesser(deps, account.email, { holder: network, isRight: step !== null });
  return step !== null && (await useCode(deps.redis, account.id, step));
}

/**
 * Of whoever has a session already, before their credentials are changed: a session may be somebody else's by then.
 * @throws {Problem} 401, 429, 503
 */
export async function requirePassword(
  deps: PanelDeps,
  network: string,
  { email, passwordHash }: AccountEntity,
  password: string,
): Promise<void> {
  const isRight = await verifyPassword(password, passwordHash);
  await refuseGuesser(deps, email, { holder: network, isRight });
  if (!isRight) throw new Problem(401, "WRONG_PASSWORD", "The current password is wrong.");
}

/** Null = wrong. */
function stepOf({ secrets, live }: PanelDeps, account: AccountEntity, code: string): number | null {
  if (account.totpSecret === "") return null;
  const secret = Buffer.from(secrets.vault.open(account.totpSecret), "base64url");
  return totpStepOf(secret, code, live.now());
}

/**
 * Wrong passwords and codes of an address are counted wherever they come from and whatever they were sent to. Networks that its
 * account was used from before are counted each alone, so that a stranger can neither guess on nor keep its owner out.
 * @throws {Problem} 429
 */
async function refuseGuesser(
  { redis, live, secrets }: PanelDeps,
  email: string,
  shown: { readonly holder: string; readonly isRight: boolean },
): Promise<void> {
  const network = addressIdOf(secrets.vault, email);
  const waitMs = await refuseGuess(redis, { kind: "account", network, ...shown }, live.now());
  if (waitMs > 0) throw tooMany(waitMs);
}

function tooMany(waitMs: number): Problem {
  const seconds = Math.max(1, Math.ceil(waitMs / 1000));
  return new Problem(429, "RATE_LIMITED", `Too many log-ins; retry after ${seconds} s.`, {
    headers: { "retry-after": String(seconds) },
  });
}

function newCookie(deps: PanelDeps, sessionId: string): string {
  return cookieOf(deps, sessionId, SESSION_MS / 1000);
}

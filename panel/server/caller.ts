/** Who calls the panel: the operator of `PANEL_TOKEN`, by bearer token, or an account or that operator, by session cookie. */
import { timingSafeEqual } from "node:crypto";
import {
  type AccountKind,
  type Capability,
  capabilitiesOf,
  type Role,
} from "#core/accounts/rules/roles.ts";
import { isUsable, readAccount } from "#core/accounts/store/accounts.ts";
import { OPERATORS } from "#core/accounts/store/audit-log.ts";
import { readSession, type Session } from "#core/accounts/store/sessions.ts";
import type { AccountEntity } from "#core/configuration/rules/entities.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { peerOfConnection, subscriberOf } from "#core/platform/http/peer.ts";
import { refuseGuesses } from "#core/platform/http/refuse-guesses.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { SearchableArchive } from "#core/search/store/archive-search.ts";
import { originOf, sessionIdOf } from "#panel/server/accounts/cookies.ts";

export interface PanelDeps extends Pick<Runtime, "config" | "secrets" | "redis" | "live" | "log"> {
  /** Absent: only shipments that Redis has are shown. */
  readonly archive?: SearchableArchive;
}

export interface Caller {
  /** Null = the operator of `PANEL_TOKEN`. */
  readonly account: AccountEntity | null;
  /** For the audit log. */
  readonly actor: string;
  readonly kind: AccountKind;
  readonly role: Role;
  /** Of a company's member; else null. */
  readonly companyCode: string | null;
  /** Of a courier's member; else null. */
  readonly courierCode: string | null;
  readonly capabilities: readonly Capability[];
}

/** Whose entries of the audit log the caller's are. */
export function tenantOf({
  companyCode,
  courierCode,
}: Pick<Caller | AccountEntity, "companyCode" | "courierCode">): string {
  if (companyCode) return `company ${companyCode}`;
  return courierCode ? `courier ${courierCode}` : OPERATORS;
}

/** Methods that change nothing. */
export const READING: ReadonlySet<string> = new Set(["GET", "HEAD"]);

type Server = Bun.Server<unknown> | null;

/** Whose token `PANEL_TOKEN` is. */
const OPERATOR: Caller = {
  account: null,
  actor: "PANEL_TOKEN",
  kind: "operator",
  role: "admin",
  companyCode: null,
  courierCode: null,
  capabilities: capabilitiesOf("operator", "admin"),
};

function callerOfAccount(account: AccountEntity): Caller {
  const { kind, role, email, companyCode, courierCode } = account;
  return {
    account,
    actor: email,
    kind: kind as AccountKind,
    role: role as Role,
    companyCode: companyCode || null,
    courierCode: courierCode || null,
    capabilities: capabilitiesOf(kind as AccountKind, role),
  };
}

/** @throws {Problem} 401, 403 where a session is used from another site, 429 */
export async function authenticate(
  deps: PanelDeps,
  request: Request,
  server: Server,
): Promise<Caller> {
  const { redis, live } = deps;
  const authorization = request.headers.get("authorization");
  if (authorization !== null) {
    const given = /^Bearer +(\S+) *$/i.exec(authorization)?.[1] ?? "";
    const isRight = isOperatorToken(deps, given);
    const network = networkOf(deps, request, server);
    const shown = {
      kind: "operator",
      network,
      holder: isRight ? "operator" : null,
      isRight,
    } as const;
    await refuseGuesses(redis, shown, () => live.followTestClock().then(live.now));
    if (isRight) return OPERATOR;
    throw unknownOperator();
  }
  await live.followTestClock();
  const session = await readSession(redis, sessionIdOf(deps, request), live.now());
  const caller = session && (await callerOfSession(deps, session));
  if (!caller) throw unknownOperator();
  if (READING.has(request.method) || originOf(deps, request) === "own") return caller;
  throw new Problem(403, "CROSS_SITE", "A session works from the panel's own pages only.");
}

async function callerOfSession(
  deps: PanelDeps,
  { accountId, credential }: Session,
): Promise<Caller | null> {
  if (accountId === null) return credential === operatorCredential(deps) ? OPERATOR : null;
  const account = await readAccount(deps.redis, accountId);
  if (!account || !isUsable(account) || credential !== accountCredential(deps, account))
    return null;
  return (await isOfClosed(deps, account)) ? null : callerOfAccount(account);
}

/** Nobody of a closed company or courier logs in, and their sessions end with it; once it is open again, they go on. */
export async function isOfClosed(
  { live }: Pick<PanelDeps, "live">,
  { companyCode, courierCode }: Pick<AccountEntity, "companyCode" | "courierCode">,
): Promise<boolean> {
  if (companyCode === "" && courierCode === "") return false;
  const { companies, couriers } = await live.refresh();
  const company = [...companies.values()].find(({ code }) => code === companyCode);
  return (company?.closedAtMs ?? 0) > 0 || (couriers.get(courierCode)?.closedAtMs ?? 0) > 0;
}

/** The caller's network: all addresses of one subscriber count as one. */
export function networkOf(deps: PanelDeps, request: Request, server: Server): string {
  return subscriberOf(peerOfConnection(request, server, deps.config).address);
}

export function isOperatorToken({ secrets }: Pick<PanelDeps, "secrets">, given: string): boolean {
  return timingSafeEqual(Buffer.from(hashToken(given)), Buffer.from(hashToken(secrets.panelToken)));
}

export function unknownOperator(): Problem {
  return new Problem(401, "UNKNOWN_OPERATOR", "The credentials are missing or wrong.", {
    headers: { "www-authenticate": "Bearer" },
  });
}

/** A new token is another credential, so it ends every session of the old one. */
export function operatorCredential({ secrets }: Pick<PanelDeps, "secrets">): string {
  return secrets.vault.mac(`operator ${secrets.panelToken}`);
}

/** A new password is another credential, and so is a new epoch: it ends every session of the account. */
export function accountCredential(
  { secrets }: Pick<PanelDeps, "secrets">,
  { id, passwordHash, epoch }: AccountEntity,
): string {
  return secrets.vault.mac(`account ${id} ${epoch} ${passwordHash}`);
}

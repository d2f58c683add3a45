/**
 * What lets a courier in: tokens, signing secrets, OAuth client, client certificates, activation. A setup file replaces
 * what it named before; what the panel has issued, revoked or switched since stays as it is.
 */

import type {
  CourierEntity,
  Issued,
  MtlsBinding,
  OauthClient,
} from "#core/configuration/rules/entities.ts";
import { canonicalSubject, plainFingerprint } from "#core/platform/network/client-certificate.ts";
import { hashToken, type Vault } from "#core/platform/secrets/secrets.ts";
import { type SetupCourier, tokensGiven } from "#core/setup/rules/setup.ts";

type Access = Pick<
  CourierEntity,
  | "tokenHashes"
  | "signingSecrets"
  | "revoked"
  | "panelTokens"
  | "panelSigningSecrets"
  | "acceptingEvents"
  | "setupAccepting"
>;

/** The fields of a courier's entity after a setup file that names it. */
export function courierAccess(
  courier: SetupCourier,
  before: CourierEntity | undefined,
  signingSecrets: readonly string[],
): Access {
  const isGiven = typeof courier.tokens !== "string";
  const tokenHashes = isGiven ? tokensGiven(courier).map(hashToken) : (before?.tokenHashes ?? []);
  const listed = new Set([...tokenHashes, ...signingSecrets]);
  return {
    tokenHashes,
    signingSecrets,
    // A revoked one stays so for as long as the file names it.
    revoked: (before?.revoked ?? []).filter((value) => listed.has(value)),
    panelTokens: before?.panelTokens ?? [],
    panelSigningSecrets: before?.panelSigningSecrets ?? [],
    ...activation(courier.acceptingEvents, before),
  };
}

/** The panel's word stands until a file says something else than the file before it. */
function activation(given: boolean | undefined, before: CourierEntity | undefined) {
  const last = before?.setupAccepting ?? "";
  const current = before?.acceptingEvents ?? true;
  if (given === undefined) return { acceptingEvents: current, setupAccepting: last };
  const changed = last !== String(given);
  return { acceptingEvents: changed ? given : current, setupAccepting: String(given) };
}

/** Which tokens and signing secrets a call of the panel leaves in force; undefined = those that there are. */
export interface Listed {
  /** Hashes. */
  readonly tokens: readonly string[] | undefined;
  /** Sealed; one that the courier has already by the same sealed text. */
  readonly signingSecrets: readonly string[] | undefined;
}

/** The fields of a courier's entity after a call of the panel: of each list that it gives, what is not on it is revoked. */
export function accessAfterCall(
  accepting: boolean | undefined,
  listed: Listed,
  before: CourierEntity | undefined,
  issue: (kind: AccessKind, value: string) => Issued,
): Access {
  const { tokenHashes = [], signingSecrets = [], revoked = [] } = before ?? {};
  const lists = [
    { file: tokenHashes, now: listed.tokens },
    { file: signingSecrets, now: listed.signingSecrets },
  ];
  const allGiven = new Set(lists.flatMap(({ now = [] }) => now));
  const dropped = lists.flatMap(({ file, now }) =>
    now ? file.filter((value) => !now.includes(value)) : [],
  );
  return {
    tokenHashes,
    signingSecrets,
    revoked: [...new Set([...revoked, ...dropped])].filter((value) => !allGiven.has(value)),
    panelTokens: issuedAfter(before?.panelTokens, tokenHashes, listed.tokens, (value) =>
      issue("tokens", value),
    ),
    panelSigningSecrets: issuedAfter(
      before?.panelSigningSecrets,
      signingSecrets,
      listed.signingSecrets,
      (value) => issue("signing-secrets", value),
    ),
    acceptingEvents: accepting ?? before?.acceptingEvents ?? true,
    setupAccepting: before?.setupAccepting ?? "",
  };
}

function issuedAfter(
  before: readonly Issued[] = [],
  ofFile: readonly string[],
  wanted: readonly string[] | undefined,
  issue: (value: string) => Issued,
): readonly Issued[] {
  if (!wanted) return before;
  const known = new Map(before.map((one) => [one.value, one]));
  const own = [...new Set(wanted)].filter((value) => !ofFile.includes(value));
  return own.map((value) => known.get(value) ?? issue(value));
}

export type AccessKind = "tokens" | "signing-secrets";

/** Keyed: a token of an old contract may be short enough to be guessed from a plain hash. */
export function accessId(vault: Vault, kind: AccessKind, value: string): string {
  return vault.mac(kind === "tokens" ? `token ${value}` : `secret ${vault.open(value)}`);
}

/** @param secretHash of a client whose secret is not given */
export function clientOf(
  oauth: NonNullable<SetupCourier["oauth"]>,
  secretHash: () => string,
): OauthClient {
  const { clientId, clientSecret } = oauth;
  return { clientId, secretHash: clientSecret ? hashToken(clientSecret) : secretHash() };
}

export function bindingOf(mtls: SetupCourier["mtls"]): MtlsBinding | null {
  if (!mtls) return null;
  return {
    subjects: [mtls.subject ?? []].flat().map(canonicalSubject),
    fingerprints: [mtls.fingerprint ?? []].flat().map(plainFingerprint),
  };
}

/** Hashes of every token, revoked ones included: none of them may become another courier's. */
export function listedTokens({ tokenHashes, panelTokens }: CourierEntity): string[] {
  return [...tokenHashes, ...panelTokens.map(({ value }) => value)];
}

export function tokensInForce(courier: CourierEntity): string[] {
  return withoutRevoked(listedTokens(courier), courier);
}

/** Sealed. */
export function secretsInForce(courier: CourierEntity): string[] {
  const { signingSecrets, panelSigningSecrets } = courier;
  const issued = panelSigningSecrets.map(({ value }) => value);
  return withoutRevoked([...signingSecrets, ...issued], courier);
}

function withoutRevoked(values: readonly string[], { revoked }: CourierEntity): string[] {
  const gone = new Set(revoked);
  return values.filter((value) => !gone.has(value));
}

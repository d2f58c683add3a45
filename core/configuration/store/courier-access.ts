/**
 * What lets a courier in: tokens, signing secrets, OAuth client, client certificates, activation. A setup file replaces
 * what it named before; what the panel has issued, revoked or switched since stays as it is.
 */

import type {
  CourierEntity,
  MtlsBinding,
  OauthClient,
} from "#core/configuration/rules/entities.ts";
import { canonicalSubject, plainFingerprint } from "#core/platform/network/client-certificate.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { SetupCourier } from "#core/setup/rules/setup.ts";

type Access = Pick<
  CourierEntity,
  | "tokenHashes"
  | "signingSecrets"
  | "revoked"
  | "panelTokens"
  | "panelSigningSecrets"
  | "oauth"
  | "mtls"
  | "acceptingEvents"
  | "setupAccepting"
>;

/** The fields of a courier's entity after a setup file that names it. */
export function courierAccess(
  courier: SetupCourier,
  before: CourierEntity | undefined,
  signingSecrets: readonly string[],
): Access {
  const tokenHashes = courier.tokens.map(hashToken);
  const listed = new Set([...tokenHashes, ...signingSecrets]);
  return {
    tokenHashes,
    signingSecrets,
    // A revoked one stays so for as long as the file names it.
    revoked: (before?.revoked ?? []).filter((value) => listed.has(value)),
    panelTokens: before?.panelTokens ?? [],
    panelSigningSecrets: before?.panelSigningSecrets ?? [],
    oauth: courier.oauth === undefined ? (before?.oauth ?? null) : clientOf(courier.oauth),
    mtls: courier.mtls === undefined ? (before?.mtls ?? null) : bindingOf(courier.mtls),
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

function clientOf(oauth: SetupCourier["oauth"]): OauthClient | null {
  return oauth ? { clientId: oauth.clientId, secretHash: hashToken(oauth.clientSecret) } : null;
}

function bindingOf(mtls: SetupCourier["mtls"]): MtlsBinding | null {
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

/**
 * What lets a courier in: tokens, signing secrets, OAuth client, client certificates, activation. A setup file replaces
 * what it named before; what the panel has issued, revoked or switched since stays as it is.
 */

import { canonicalSubject, plainFingerprint } from "#core/platform/network/client-certificate.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import type { SetupCourier } from "#core/setup/rules/setup.ts";
import type { CourierEntity } from "./entities.ts";

/** A token or signing secret issued by the panel. */
export interface Issued {
  readonly id: string;
  /** Hash of a token, sealed text of a signing secret. */
  readonly value: string;
  readonly createdAtMs: number;
}

export interface OauthClient {
  readonly clientId: string;
  readonly secretHash: string;
}

export interface MtlsBinding {
  readonly subjects: readonly string[];
  readonly fingerprints: readonly string[];
}

/** The fields of a courier's entity after a setup file that names it. */
export function courierAccess(
  courier: SetupCourier,
  before: CourierEntity | undefined,
  signingSecrets: string,
) {
  const tokenHashes = courier.tokens.map(hashToken);
  const listed = new Set([...tokenHashes, ...list<string>(signingSecrets)]);
  return {
    tokenHashes: JSON.stringify(tokenHashes),
    signingSecrets,
    // A revoked one stays so for as long as the file names it.
    revoked: textOf(list<string>(before?.revoked).filter((value) => listed.has(value))),
    panelTokens: before?.panelTokens ?? "",
    panelSigningSecrets: before?.panelSigningSecrets ?? "",
    oauth: courier.oauth === undefined ? (before?.oauth ?? "") : oauthText(courier.oauth),
    mtls: courier.mtls === undefined ? (before?.mtls ?? "") : mtlsText(courier.mtls),
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

function oauthText(oauth: SetupCourier["oauth"]): string {
  if (!oauth) return "";
  const client: OauthClient = {
    clientId: oauth.clientId,
    secretHash: hashToken(oauth.clientSecret),
  };
  return JSON.stringify(client);
}

function mtlsText(mtls: SetupCourier["mtls"]): string {
  if (!mtls) return "";
  const certificates: MtlsBinding = {
    subjects: [mtls.subject ?? []].flat().map(canonicalSubject),
    fingerprints: [mtls.fingerprint ?? []].flat().map(plainFingerprint),
  };
  return JSON.stringify(certificates);
}

/** Hashes of every token, revoked ones included: none of them may become another courier's. */
export function listedTokens(courier: CourierEntity): string[] {
  return [...list<string>(courier.tokenHashes), ...valuesOf(courier.panelTokens)];
}

export function clientIdOf(courier: CourierEntity): string | null {
  return oauthOf(courier)?.clientId ?? null;
}

export function tokensInForce(courier: CourierEntity): string[] {
  return withoutRevoked(listedTokens(courier), courier);
}

/** Sealed. */
export function secretsInForce(courier: CourierEntity): string[] {
  const { signingSecrets, panelSigningSecrets } = courier;
  return withoutRevoked(
    [...list<string>(signingSecrets), ...valuesOf(panelSigningSecrets)],
    courier,
  );
}

export function oauthOf({ oauth }: CourierEntity): OauthClient | null {
  return oauth ? JSON.parse(oauth) : null;
}

export function mtlsOf({ mtls }: CourierEntity): MtlsBinding | null {
  return mtls ? JSON.parse(mtls) : null;
}

/** redis-om drops empty texts, and older entities lack the field. */
export function list<T>(text: string | undefined): T[] {
  return text ? JSON.parse(text) : [];
}

export function textOf(items: readonly unknown[]): string {
  return items.length === 0 ? "" : JSON.stringify(items);
}

function valuesOf(issued: string | undefined): string[] {
  return list<Issued>(issued).map(({ value }) => value);
}

function withoutRevoked(values: readonly string[], { revoked }: CourierEntity): string[] {
  const gone = new Set(list<string>(revoked));
  return values.filter((value) => !gone.has(value));
}

/** The couriers of a setup file. */

import type { CourierEntity, Issued } from "#core/configuration/rules/entities.ts";
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { COURIER_SETTINGS } from "#core/configuration/rules/settings.ts";
import {
  type AccessKind,
  accessAfterCall,
  accessId,
  bindingOf,
  clientOf,
  courierAccess,
} from "#core/configuration/store/courier-access.ts";
import { nextId } from "#core/configuration/store/entities.ts";
import type { DateSupport } from "#core/merchants/rules/stock-release.ts";
import { hashToken, newToken, type Vault } from "#core/platform/secrets/secrets.ts";
import { type SetupCourier, tokensGiven } from "#core/setup/rules/setup.ts";
import { type CatalogueEntry, sameMapping } from "#core/statuses/rules/map-status.ts";
import { mergeCatalogue } from "#core/statuses/rules/merge-catalogue.ts";
import { announceRemap } from "#core/statuses/store/remaps.ts";
import { newsOf, saidAfterEntry } from "./said-members.ts";
import type { SetupWriter } from "./setup-writer.ts";

/** Members that are compared with the last file's; tokens, signing secrets, activation and catalogue have rules of their own. */
const COMPARED = [
  "code",
  ...(Object.keys(COURIER_SETTINGS) as (keyof typeof COURIER_SETTINGS)[]),
  "rateLimit",
  "oauth",
  "mtls",
  "stockReleaseNeedsDate",
] as const satisfies readonly (keyof SetupCourier)[];

export async function writeCourier(writer: SetupWriter, courier: SetupCourier): Promise<void> {
  const { redis, stored, save, by } = writer;
  const before = stored.couriers.get(courier.code);
  if (before && before.closedAtMs > 0) {
    writer.passedOver.push(`courier ${courier.code}`);
    return;
  }
  const catalogue = catalogueAfter(writer, courier, before);
  if (before) await announceRemapped(writer, courier.code, before.catalogue, catalogue.entries);
  const compared = { entry: courier, names: COMPARED, said: before?.setupSaid };
  const news = newsOf(by, compared);
  const given = { ...news, stockReleaseDate: dateSupportOf(news) };
  const { oauth, mtls, rateLimit } = news;
  await save("courier", courier.code, before, {
    number: before?.number ?? (await nextId(redis, "courier")),
    code: courier.code,
    ...settingsAfter(COURIER_SETTINGS, given, before ?? { name: courier.code }),
    ...accessAfter(writer, courier, before),
    oauth: oauth === undefined ? (before?.oauth ?? null) : clientAfter(writer, news, before),
    mtls: mtls === undefined ? (before?.mtls ?? null) : bindingOf(mtls),
    perSecond: rateLimit?.perSecond ?? before?.perSecond ?? 20,
    burst: rateLimit?.burst ?? before?.burst ?? 100,
    catalogue: catalogue.entries,
    setupCatalogue: catalogue.said,
    setupSaid: saidAfterEntry(by, compared),
    closedAtMs: before?.closedAtMs ?? 0,
  });
}

function catalogueAfter(
  { by }: SetupWriter,
  courier: SetupCourier,
  before: CourierEntity | undefined,
) {
  const { catalogue: entries = [], setupCatalogue: said = [] } = before ?? {};
  const given = courier.catalogue ?? [];
  if (by === "file") return mergeCatalogue({ entries, said }, given);
  return { entries: mergeCatalogue({ entries, said: [] }, given).entries, said };
}

/** Codes that the file maps otherwise than before: their shipments are refolded, as after a panel call. */
async function announceRemapped(
  { redis, nowMs, remaps, by }: SetupWriter,
  courier: string,
  before: readonly CatalogueEntry[],
  after: readonly CatalogueEntry[],
): Promise<void> {
  const known = new Map(before.map((entry) => [entry.code, entry]));
  const entries = after.flatMap((entry) => {
    const old = known.get(entry.code) ?? null;
    return sameMapping(old, entry) ? [] : [{ code: entry.code, before: old, after: entry }];
  });
  if (entries.length === 0) return;
  const order = { courier, by: by === "file" ? "setup file" : "panel", entries, reverts: null };
  remaps.push(await announceRemap(redis, order, nowMs));
}

function accessAfter(
  writer: SetupWriter,
  courier: SetupCourier,
  before: CourierEntity | undefined,
) {
  const { by, vault, nowMs } = writer;
  const tokens = tokensAfter(writer, courier, before);
  if (by === "file") {
    const secrets = signingSecretsOf(writer, courier, before, before?.signingSecrets);
    const named = { ...courier, tokens: tokens ?? ("generated" as const) };
    return courierAccess(named, before, secrets ?? before?.signingSecrets ?? []);
  }
  const known = [...(before?.signingSecrets ?? []), ...issuedSecrets(before)];
  const listed = {
    tokens: tokens?.map(hashToken),
    signingSecrets: signingSecretsOf(writer, courier, before, known),
  };
  const issue = (kind: AccessKind, value: string): Issued => ({
    id: accessId(vault, kind, value),
    value,
    createdAtMs: nowMs,
  });
  return accessAfterCall(courier.acceptingEvents, listed, before, issue);
}

/** Undefined = those that it has. */
function tokensAfter(
  { generated }: SetupWriter,
  courier: SetupCourier,
  before: CourierEntity | undefined,
): string[] | undefined {
  if (courier.tokens !== undefined && courier.tokens !== "generated") {
    return [...tokensGiven(courier)];
  }
  if (before) return undefined;
  const secret = newToken("tok_");
  generated.push({ owner: `courier ${courier.code}, token`, secret });
  return [secret];
}

/**
 * A courier that must sign and has no secret could not send anything: it gets one.
 * @param known sealed: secrets that have not changed keep their sealed text
 * @returns undefined = those that it has
 */
function signingSecretsOf(
  { vault, generated }: SetupWriter,
  courier: SetupCourier,
  before: CourierEntity | undefined,
  known: readonly string[] = [],
): readonly string[] | undefined {
  const { code, signingSecrets, signatureRequired = before?.signatureRequired } = courier;
  const has = before ? [...before.signingSecrets, ...issuedSecrets(before)] : [];
  if (!signatureRequired || signingSecrets !== undefined || has.length > 0) {
    return signingSecrets && sealed(vault, signingSecrets, known);
  }
  const secret = newToken("sig_");
  generated.push({ owner: `courier ${code}, signing secret`, secret });
  return sealed(vault, [secret], known);
}

function issuedSecrets(courier: CourierEntity | undefined): string[] {
  return (courier?.panelSigningSecrets ?? []).map(({ value }) => value);
}

/** Sealing is never the same twice. */
function sealed(vault: Vault, secrets: readonly string[], before: readonly string[]): string[] {
  const known = new Map(before.map((text) => [vault.open(text), text]));
  return secrets.map((secret) => known.get(secret) ?? vault.seal(secret));
}

/** A client whose secret is left out keeps the one that it has; a new one gets one. */
function clientAfter(
  { generated }: SetupWriter,
  { code, oauth }: SetupCourier,
  before: CourierEntity | undefined,
) {
  if (!oauth) return null;
  return clientOf(oauth, () => {
    if (before?.oauth?.clientId === oauth.clientId) return before.oauth.secretHash;
    const secret = newToken("oauth_");
    generated.push({ owner: `courier ${code}, OAuth client secret`, secret });
    return hashToken(secret);
  });
}

function dateSupportOf(courier: SetupCourier): DateSupport | undefined {
  return courier.stockReleaseDate ?? (courier.stockReleaseNeedsDate ? "required" : undefined);
}

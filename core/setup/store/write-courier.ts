/** The couriers of a setup file. */

import { courierAccess, list, textOf } from "#core/configuration/store/courier-access.ts";
import { type CourierEntity, nextId } from "#core/configuration/store/entities.ts";
import type { DateSupport } from "#core/merchants/rules/stock-release.ts";
import { newToken, type Vault } from "#core/platform/secrets/secrets.ts";
import type { SetupCatalogueEntry, SetupCourier } from "#core/setup/rules/setup.ts";
import { type CatalogueEntry, sameMapping } from "#core/statuses/rules/map-status.ts";
import { mergeCatalogue } from "#core/statuses/rules/merge-catalogue.ts";
import { announceRemap, catalogueOf } from "#core/statuses/store/remaps.ts";
import { listOf, type SetupWriter } from "./setup-writer.ts";
import { parseStored } from "./stored-setup.ts";

export async function writeCourier(writer: SetupWriter, courier: SetupCourier): Promise<void> {
  const { redis, stored, save } = writer;
  const before = stored.couriers.get(courier.code);
  const entries = before ? catalogueOf(before) : [];
  const said = before?.setupCatalogue
    ? parseStored<SetupCatalogueEntry[]>(before.setupCatalogue)
    : [];
  const catalogue = mergeCatalogue({ entries, said }, courier.catalogue ?? []);
  if (before) await announceRemapped(writer, courier.code, entries, catalogue.entries);
  await save("courier", courier.code, before, {
    number: before?.number ?? (await nextId(redis, "courier")),
    code: courier.code,
    name: courier.name ?? before?.name ?? courier.code,
    environment: courier.environment ?? before?.environment ?? "production",
    ...courierAccess(courier, before, signingSecretsOf(writer, courier, before)),
    signatureRequired: courier.signatureRequired ?? before?.signatureRequired ?? false,
    allowedIps: listOf(courier.allowedIps, before?.allowedIps),
    perSecond: courier.rateLimit?.perSecond ?? before?.perSecond ?? 20,
    burst: courier.rateLimit?.burst ?? before?.burst ?? 100,
    stockRelease: courier.stockRelease ?? before?.stockRelease ?? "none",
    stockReleaseDate: dateSupportOf(courier) ?? before?.stockReleaseDate ?? "optional",
    stockReleaseUrl: courier.stockReleaseUrl ?? before?.stockReleaseUrl ?? "",
    catalogue: JSON.stringify(catalogue.entries),
    setupCatalogue: textOf(catalogue.said),
  } satisfies CourierEntity);
}

/** Codes that the file maps otherwise than before: their shipments are refolded, as after a panel call. */
async function announceRemapped(
  { redis, nowMs, remaps }: SetupWriter,
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
  const order = { courier, by: "setup file", entries, reverts: null };
  remaps.push(await announceRemap(redis, order, nowMs));
}

/** A courier that must sign and has no secret could not send anything: it gets one. */
function signingSecretsOf(
  { vault, generated }: SetupWriter,
  courier: SetupCourier,
  before: CourierEntity | undefined,
): string {
  const { code, signingSecrets, signatureRequired = before?.signatureRequired } = courier;
  const known = [before?.signingSecrets, before?.panelSigningSecrets].flatMap((text) => list(text));
  if (!signatureRequired || signingSecrets !== undefined || known.length > 0) {
    return sealList(vault, signingSecrets, before?.signingSecrets);
  }
  const secret = newToken("sig_");
  generated.push({ owner: `courier ${code}, signing secret`, secret });
  return sealList(vault, [secret]);
}

/** Sealing is never the same twice: secrets that have not changed keep their sealed text. */
function sealList(vault: Vault, secrets: readonly string[] | undefined, before = "[]"): string {
  if (secrets === undefined) return before;
  const known = new Map(
    parseStored<string[]>(before).map((sealed) => [vault.open(sealed), sealed]),
  );
  return JSON.stringify(secrets.map((secret) => known.get(secret) ?? vault.seal(secret)));
}

function dateSupportOf(courier: SetupCourier): DateSupport | undefined {
  return courier.stockReleaseDate ?? (courier.stockReleaseNeedsDate ? "required" : undefined);
}

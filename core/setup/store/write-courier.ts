/** The couriers of a setup file. */

import type { CourierEntity } from "#core/configuration/rules/entities.ts";
import { settingsAfter } from "#core/configuration/rules/entity.ts";
import { COURIER_SETTINGS } from "#core/configuration/rules/settings.ts";
import { courierAccess } from "#core/configuration/store/courier-access.ts";
import { nextId } from "#core/configuration/store/entities.ts";
import type { DateSupport } from "#core/merchants/rules/stock-release.ts";
import { newToken, type Vault } from "#core/platform/secrets/secrets.ts";
import type { SetupCourier } from "#core/setup/rules/setup.ts";
import { type CatalogueEntry, sameMapping } from "#core/statuses/rules/map-status.ts";
import { mergeCatalogue } from "#core/statuses/rules/merge-catalogue.ts";
import { announceRemap } from "#core/statuses/store/remaps.ts";
import type { SetupWriter } from "./setup-writer.ts";

export async function writeCourier(writer: SetupWriter, courier: SetupCourier): Promise<void> {
  const { redis, stored, save } = writer;
  const before = stored.couriers.get(courier.code);
  const { catalogue: entries = [], setupCatalogue: said = [] } = before ?? {};
  const catalogue = mergeCatalogue({ entries, said }, courier.catalogue ?? []);
  if (before) await announceRemapped(writer, courier.code, entries, catalogue.entries);
  const given = { ...courier, stockReleaseDate: dateSupportOf(courier) };
  await save("courier", courier.code, before, {
    number: before?.number ?? (await nextId(redis, "courier")),
    code: courier.code,
    ...settingsAfter(COURIER_SETTINGS, given, before ?? { name: courier.code }),
    ...courierAccess(courier, before, signingSecretsOf(writer, courier, before)),
    perSecond: courier.rateLimit?.perSecond ?? before?.perSecond ?? 20,
    burst: courier.rateLimit?.burst ?? before?.burst ?? 100,
    catalogue: catalogue.entries,
    setupCatalogue: catalogue.said,
  });
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
): readonly string[] {
  const { code, signingSecrets, signatureRequired = before?.signatureRequired } = courier;
  const known = before ? [...before.signingSecrets, ...before.panelSigningSecrets] : [];
  if (!signatureRequired || signingSecrets !== undefined || known.length > 0) {
    return sealed(vault, signingSecrets, before?.signingSecrets);
  }
  const secret = newToken("sig_");
  generated.push({ owner: `courier ${code}, signing secret`, secret });
  return sealed(vault, [secret]);
}

/** Sealing is never the same twice: secrets that have not changed keep their sealed text. */
function sealed(
  vault: Vault,
  secrets: readonly string[] | undefined,
  before: readonly string[] = [],
): readonly string[] {
  if (secrets === undefined) return before;
  const known = new Map(before.map((text) => [vault.open(text), text]));
  return secrets.map((secret) => known.get(secret) ?? vault.seal(secret));
}

function dateSupportOf(courier: SetupCourier): DateSupport | undefined {
  return courier.stockReleaseDate ?? (courier.stockReleaseNeedsDate ? "required" : undefined);
}

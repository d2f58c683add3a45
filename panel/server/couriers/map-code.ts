/** Mapping a courier's code and taking a mapping back. Both are written down as remaps and bear repetition. */

import type { CourierEntity } from "#core/configuration/rules/entities.ts";
import { refuseStale } from "#core/configuration/store/change-context.ts";
import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { bumpVersion } from "#core/configuration/store/entities.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { CATALOGUE_LIMIT, checkRules, type SetupMappingRule } from "#core/setup/rules/setup.ts";
import { detailFaults } from "#core/setup/store/check-references.ts";
import type { CatalogueChanges } from "#core/statuses/rules/compare-catalogues.ts";
import { type CatalogueEntry, sameMapping } from "#core/statuses/rules/map-status.ts";
import {
  announceRemap,
  applyRemap,
  listRemaps,
  type Remap,
  type RemapEntry,
  type RemapOrder,
  readRemap,
  remapped,
  saveCatalogue,
} from "#core/statuses/store/remaps.ts";
import { notFound } from "#panel/server/not-found.ts";
import { readCourier } from "./courier-of.ts";

/** The wanted mapping of a code; `status: null` takes its own mapping away. */
export interface WantedMapping {
  readonly status: NonNullable<CatalogueEntry["status"]> | null;
  readonly statusDetail?: number;
  /** Absent = as it was, and false for a new code. */
  readonly terminal?: boolean;
  readonly description?: string;
  /** Absent = none. */
  readonly rules?: readonly SetupMappingRule[];
}

/** Remaps among which a repeated call finds its own. */
const LOOKED_BACK = 100;

const BY = "operator";

/** @throws {Problem} 422 */
export function wantedEntry(
  configuration: Configuration,
  courier: Courier,
  code: string,
  wanted: WantedMapping,
): CatalogueEntry {
  const { status, statusDetail = 0, rules = [] } = wanted;
  const details = new Set(configuration.statusDetails.keys());
  const violations = [
    ...checkRules(rules, "rules"),
    ...detailFaults({ statusDetail, rules: [...rules] }, details, "").map((fault) => ({
      ...fault,
      path: fault.path.replace(/^\./, ""),
    })),
    ...(status === null && statusDetail !== 0
      ? [{ path: "statusDetail", code: "NOT_ALLOWED", message: "A detail needs a status." }]
      : []),
  ];
  if (violations.length > 0) {
    throw new Problem(422, "INVALID_BODY", "The mapping is invalid.", { members: { violations } });
  }
  const before = courier.catalogue.get(code);
  return {
    code,
    description: wanted.description ?? before?.description ?? "",
    terminal: wanted.terminal ?? before?.terminal ?? false,
    ...(status !== null && { status }),
    ...(statusDetail !== 0 && { statusDetail }),
    ...(rules.length > 0 && { rules: rules as CatalogueEntry["rules"] & object }),
  };
}

/** @returns the remap that refolds the shipments; null when no event is mapped otherwise than before */
export function mapCode(
  redis: Redis,
  courierCode: string,
  entry: CatalogueEntry,
  nowMs: number,
): Promise<Remap | null> {
  return underSetupLock(redis, async () => {
    const courier = await readCourier(redis, courierCode);
    // A remap is announced before the courier is saved.
    refuseStale(courier);
    const catalogue = courier.catalogue;
    const before = catalogue.find(({ code }) => code === entry.code) ?? null;
    if (before === null && catalogue.length >= CATALOGUE_LIMIT) {
      throw catalogueFull();
    }
    const latest = await latestOf(redis, courierCode, entry.code);
    const isRepeated =
      latest !== null &&
      sameMapping(afterOf(latest, entry.code), entry) &&
      isInForce(latest, before);
    if (isRepeated && latest.state === "announced") return finished(redis, latest);
    if (sameMapping(before, entry)) {
      await describe(redis, courier, before, entry);
      return isRepeated ? latest : null;
    }
    const entries = [{ code: entry.code, before, after: entry }];
    const order = { courier: courierCode, by: BY, entries, reverts: null };
    return ordered(redis, order, nowMs);
  });

  /** An announced one is on its way into the catalogue; any other one counts as long as the catalogue says it. */
  function isInForce(remap: Remap, stored: CatalogueEntry | null): boolean {
    return remap.state === "announced" || sameMapping(stored, entry);
  }
}

/**
 * Writes the changes of an imported catalogue in one step, so that they can be taken back in one.
 * @param changesFrom what the file says about the catalogue in force
 * @returns null when no event is mapped otherwise than before
 */
export function importCatalogue(
  redis: Redis,
  courierCode: string,
  changesFrom: (courier: CourierEntity) => Promise<CatalogueChanges>,
  nowMs: number,
): Promise<{ readonly changes: CatalogueChanges; readonly remap: Remap | null }> {
  return underSetupLock(redis, async () => {
    refuseStale(await readCourier(redis, courierCode));
    await finishAnnounced(redis, courierCode);
    const courier = await readCourier(redis, courierCode);
    const changes = await changesFrom(courier);
    const { added, removed } = changes;
    if (courier.catalogue.length + added.length - removed.length > CATALOGUE_LIMIT) {
      throw catalogueFull();
    }
    const entries = entriesOf(changes);
    if (remapped(entries).length > 0) {
      const order = { courier: courierCode, by: BY, entries, reverts: null };
      return { changes, remap: await ordered(redis, order, nowMs) };
    }
    if (entries.length > 0) {
      await saveCatalogue(redis, courier, entries);
      await bumpVersion(redis);
    }
    return { changes, remap: null };
  });
}

export function entriesOf({ added, changed, removed }: CatalogueChanges): RemapEntry[] {
  return [
    ...added.map((after) => ({ code: after.code, before: null, after })),
    ...changed.map(({ before, after }) => ({ code: after.code, before, after })),
    ...removed.map((before) => ({ code: before.code, before, after: null })),
  ];
}

/** What somebody died over is finished first: later it would write over the import. */
async function finishAnnounced(redis: Redis, courierCode: string): Promise<void> {
  const remaps = await listRemaps(redis, courierCode, 0, LOOKED_BACK);
  for (const remap of remaps.toReversed()) {
    if (remap.state === "announced") await applyRemap(redis, remap.id, remap);
  }
}

/** Takes a remap back: its codes are mapped as they were before it. */
export function revertRemap(redis: Redis, id: string, nowMs: number): Promise<Remap> {
  return underSetupLock(redis, async () => {
    const remap = await readRemap(redis, id);
    if (!remap) throw notFound("remap");
    const known = await listRemaps(redis, remap.courier, 0, LOOKED_BACK);
    const own = known.find(({ reverts }) => reverts === id);
    if (own) return own.state === "announced" ? finished(redis, own) : own;
    const entries = await entriesBefore(redis, remap);
    return ordered(redis, { courier: remap.courier, by: BY, entries, reverts: id }, nowMs);
  });
}

/** What taking a remap back would change. @throws {Problem} 409: its codes have been remapped since */
export async function entriesBefore(redis: Redis, remap: Remap): Promise<RemapEntry[]> {
  const current = new Map(
    (await readCourier(redis, remap.courier)).catalogue.map((entry) => [entry.code, entry]),
  );
  const changed = remap.entries.filter(({ code, after }) => !sameMapping(current.get(code), after));
  if (changed.length > 0) {
    const codes = changed.slice(0, 10).map(({ code }) => code);
    const detail = "Some of its codes have been remapped since; revert those first.";
    throw new Problem(409, "REMAP_SUPERSEDED", detail, { members: { codes } });
  }
  return remap.entries.map(({ code, before }) => ({
    code,
    before: current.get(code) ?? null,
    after: before,
  }));
}

function catalogueFull(): Problem {
  return new Problem(409, "CATALOGUE_FULL", `A catalogue has at most ${CATALOGUE_LIMIT} codes.`);
}

async function ordered(redis: Redis, order: RemapOrder, nowMs: number): Promise<Remap> {
  const id = await announceRemap(redis, order, nowMs);
  await applyRemap(redis, id, order);
  return reread(redis, id);
}

async function finished(redis: Redis, remap: Remap): Promise<Remap> {
  await applyRemap(redis, remap.id, remap);
  return reread(redis, remap.id);
}

async function reread(redis: Redis, id: string): Promise<Remap> {
  const remap = await readRemap(redis, id);
  if (!remap) throw new Error(`remap ${id} is gone`);
  return remap;
}

async function latestOf(redis: Redis, courier: string, code: string): Promise<Remap | null> {
  const remaps = await listRemaps(redis, courier, 0, LOOKED_BACK);
  return remaps.find(({ entries }) => entries.some((one) => one.code === code)) ?? null;
}

function afterOf({ entries }: Remap, code: string): CatalogueEntry | null {
  return entries.find((one) => one.code === code)?.after ?? null;
}

/** A new description, or an entry that maps nothing, concerns no shipment. */
async function describe(
  redis: Redis,
  courier: CourierEntity,
  before: CatalogueEntry | null,
  entry: CatalogueEntry,
): Promise<void> {
  if (JSON.stringify(before) === JSON.stringify(entry)) return;
  await saveCatalogue(redis, courier, [{ code: entry.code, after: entry }]);
  await bumpVersion(redis);
}

/**
 * A setup file's catalogue laid over the one in force. The operators map codes between two applications, so only what the
 * file says otherwise than the last time counts; what it does not name stays.
 */

import type { SetupCatalogueEntry } from "#core/setup/rules/setup.ts";
import type { CatalogueEntry } from "./map-status.ts";

export interface MergedCatalogue {
  readonly entries: readonly CatalogueEntry[];
  /** The file's own words, to compare the next file with. */
  readonly said: readonly SetupCatalogueEntry[];
}

export function mergeCatalogue(
  before: MergedCatalogue,
  file: readonly SetupCatalogueEntry[],
): MergedCatalogue {
  const entries = new Map(before.entries.map((entry) => [entry.code, entry]));
  const said = new Map(before.said.map((entry) => [entry.code, entry]));
  for (const entry of file) {
    const stored = entries.get(entry.code);
    const last = said.get(entry.code);
    // What the operators have removed stays so until the file says it otherwise.
    const isRemoved = !stored && JSON.stringify(last) === JSON.stringify(entry);
    if (!isRemoved) entries.set(entry.code, merged(stored, last, entry));
    said.set(entry.code, entry);
  }
  return { entries: [...entries.values()], said: [...said.values()] };
}

function merged(
  stored: CatalogueEntry | undefined,
  last: SetupCatalogueEntry | undefined,
  now: SetupCatalogueEntry,
): CatalogueEntry {
  if (!stored) return entryOf(now);
  const isNew = (member: keyof SetupCatalogueEntry) =>
    now[member] !== undefined && JSON.stringify(now[member]) !== JSON.stringify(last?.[member]);
  const { description, terminal, status, statusDetail, rules } = now;
  const { statusDetail: _, ...rest } = stored;
  // Status and detail are one pair: a new status does not keep the detail of the old one.
  const paired = isNew("status") || isNew("statusDetail");
  return {
    ...(paired ? rest : stored),
    ...(isNew("description") && description !== undefined && { description }),
    ...(isNew("terminal") && terminal !== undefined && { terminal }),
    ...(paired && status !== undefined && { status }),
    ...(paired && statusDetail !== undefined && { statusDetail }),
    ...(isNew("rules") && rules !== undefined && { rules: entryOf(now).rules ?? [] }),
  };
}

function entryOf({ rules, ...entry }: SetupCatalogueEntry): CatalogueEntry {
  const defaults = { description: "", terminal: false };
  return { ...defaults, ...entry, ...(rules && rules.length > 0 && { rules }) } as CatalogueEntry;
}

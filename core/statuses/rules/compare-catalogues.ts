/** What a catalogue read from a file would change in the one in force. */
import { type CatalogueEntry, sameMapping } from "./map-status.ts";

export interface CatalogueChanges {
  readonly added: readonly CatalogueEntry[];
  readonly changed: readonly { readonly before: CatalogueEntry; readonly after: CatalogueEntry }[];
  readonly removed: readonly CatalogueEntry[];
  /** Codes that the file says as they are. */
  readonly unchanged: number;
  /** Codes that the file does not name and that stay. */
  readonly kept: number;
}

/** @param isComplete whether codes that `after` does not name are removed */
export function compareCatalogues(
  before: readonly CatalogueEntry[],
  after: readonly CatalogueEntry[],
  isComplete: boolean,
): CatalogueChanges {
  const known = new Map(before.map((entry) => [entry.code, entry]));
  const named = new Set(after.map(({ code }) => code));
  const missing = before.filter(({ code }) => !named.has(code));
  const pairs = after.flatMap((entry) => {
    const old = known.get(entry.code);
    return old ? [{ before: old, after: entry }] : [];
  });
  const changed = pairs.filter((pair) => !sameEntry(pair.before, pair.after));
  return {
    added: after.filter(({ code }) => !known.has(code)),
    changed,
    removed: isComplete ? missing : [],
    unchanged: pairs.length - changed.length,
    kept: isComplete ? 0 : missing.length,
  };
}

function sameEntry(one: CatalogueEntry, other: CatalogueEntry): boolean {
  return (
    one.description === other.description &&
    one.terminal === other.terminal &&
    sameMapping(one, other)
  );
}

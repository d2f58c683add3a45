/** Maps a courier's own status code by its catalogue. No default and no guessing: an unknown code is unmapped. */
import type { Mapping } from "./fact.ts";
import type { Status } from "./status.ts";

export interface CatalogueEntry {
  readonly code: string;
  readonly description: string;
  readonly terminal: boolean;
  /** Absent while the code is not mapped. */
  readonly status?: Status;
  readonly statusDetail?: number;
}

export type Catalogue = ReadonlyMap<string, CatalogueEntry>;

export function mapStatus(catalogue: Catalogue, code: string): Mapping | null {
  const entry = catalogue.get(code);
  if (entry?.status === undefined) return null;
  return { status: entry.status, detail: entry.statusDetail ?? 0, terminal: entry.terminal };
}

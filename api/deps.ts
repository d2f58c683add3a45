/** What the routes of the merchant API work with. */
import type { Benchmarks } from "#analytics/benchmarks.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { SearchableArchive } from "#core/search/store/archive-search.ts";

export interface ApiDeps extends Pick<Runtime, "config" | "log" | "redis" | "live" | "secrets"> {
  readonly benchmarks: Benchmarks;
  readonly archive: SearchableArchive;
}

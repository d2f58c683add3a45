/**
 * `asOf` of the full answers: every event that was answered ACCEPTED before this moment counts in the figures. Looked up
 * before the figures are read.
 */
import type { ApiDeps } from "#api/deps.ts";
import { readLags } from "#core/platform/log/streams.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";

/** How far the logs are behind is looked up at most once in so long. */
const KEPT_MS = 1_000;
/** What an event goes through before it counts. */
const GROUPS: ReadonlySet<string> = new Set(["track", "analytics"]);

type Deps = Pick<ApiDeps, "redis" | "live">;

/** @returns ISO 8601 with offset, never later than the truth */
export function freshness(deps: Deps) {
  let known = { untilMs: 0, asOf: Promise.resolve("") };
  return async (): Promise<string> => {
    if (performance.now() >= known.untilMs) {
      const asOf = lookUp(deps);
      known = { untilMs: performance.now() + KEPT_MS, asOf };
      asOf.catch(() => {
        known = { untilMs: 0, asOf: Promise.resolve("") };
      });
    }
    return known.asOf;
  };
}

async function lookUp({ redis, live }: Deps): Promise<string> {
  const nowMs = live.now();
  const lags = (await readLags(redis)).filter(({ group }) => GROUPS.has(group));
  const behindMs = Math.max(0, ...lags.map(({ seconds }) => seconds * 1000));
  return romeIso(Math.floor(nowMs - behindMs));
}

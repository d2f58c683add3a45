/** Adds the search lines of all channels while nobody searches, so that a search waits for those of the latest shipments only. */
import { startTicking, type Ticking } from "#core/platform/process/tick.ts";
import { addLines } from "#core/search/store/search-lines.ts";
import type { PanelDeps } from "#panel/server/caller.ts";

const TICK_MS = 60_000;

export function keepSearchable({ redis, live, log }: PanelDeps): Ticking {
  return startTicking(
    TICK_MS,
    async (isStopping) => {
      const { channels } = await live.refresh();
      for (const { id, companyId } of channels.values()) {
        if (isStopping()) return;
        await addLines(redis, companyId, id, Number.POSITIVE_INFINITY, isStopping);
      }
    },
    (error) => log.warn({ reason: error.message }, "shipments could not be made searchable"),
  );
}

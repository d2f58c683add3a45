/** One page of shipments that are refolded from their history, those in the archive too. */

import { type Archive, channelsOfShipments } from "#core/archive/store/archive.ts";
import { bringBack } from "#core/archive/store/bring-back.ts";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import type { Live } from "#core/configuration/store/live.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { commitShipments, missingOf } from "#core/shipments/store/shipments.ts";
import type { Remapping, ShipmentPage } from "#core/statuses/store/remappings.ts";
import type { RemapProgress } from "#core/statuses/store/remaps.ts";
import { replaceHistory } from "./commits.ts";

export interface RemapDeps {
  readonly redis: Redis;
  readonly live: Live;
  readonly log: Log;
  /** Absent: nothing was ever archived. */
  readonly archive?: Archive;
}

type ReadRemappings = (
  configuration: Configuration,
  ids: readonly number[],
) => Promise<readonly Remapping[]>;

/** Rounds of reading and committing again when events got ahead; then the page waits for its next turn. */
const ROUNDS = 20;

type Done = Omit<RemapProgress, "cursor" | "isScan">;

/** Progress behind a page. */
export function progressAfter(
  { isScan, ...before }: RemapProgress,
  cursor: RemapProgress["cursor"],
  done: Done,
): RemapProgress {
  return {
    cursor,
    isScan,
    examined: before.examined + done.examined,
    shipments: before.shipments + done.shipments,
    statesChanged: before.statesChanged + done.statesChanged,
    events: before.events + done.events,
  };
}

/**
 * @param read those of the shipments that have to be refolded, as Redis has them now
 */
export async function remapPage(
  deps: RemapDeps,
  { ids, mayBeArchived, isRepetition }: Omit<ShipmentPage, "cursor">,
  read: ReadRemappings,
): Promise<Done> {
  const { redis, live } = deps;
  let open = ids;
  const examined = isRepetition ? (await missingOf(redis, ids)).length : ids.length;
  const done = { examined, shipments: 0, statesChanged: 0, events: 0 };
  for (let round = 0; open.length > 0 && round < ROUNDS; round += 1) {
    const configuration = await live.refresh();
    const lost = mayBeArchived ? await fromArchive(deps, configuration, open) : NONE;
    const remappings = await read(configuration, open);
    const commits = remappings.map(({ from, history, facts }) =>
      replaceHistory(from, history, facts),
    );
    const outcomes = await commitShipments(redis, commits, live.now(), configuration.version);
    const conflicts = remappings.flatMap(({ from, history, facts }, at) => {
      if (outcomes[at] !== "committed") return [from.id];
      done.shipments += 1;
      done.statesChanged += Number(commits[at]?.stamp ?? false);
      done.events += facts.filter((fact, index) => fact !== history[index]).length;
      return [];
    });
    // One that has moved to the archive meanwhile may not have been remapped.
    const left = mayBeArchived ? open.filter((one) => !lost.has(one)) : [];
    open = [...new Set([...conflicts, ...(await missingOf(redis, left))])];
  }
  if (open.length > 0) throw new Error("shipments kept changing while they were remapped");
  return done;
}

const NONE: ReadonlySet<number> = new Set();

/**
 * Shipments with unmapped events that have been silent for long enough to be archived come back.
 * @returns those that are in neither store, or whose rows are damaged
 * @throws {Problem} 503 ARCHIVE_UNAVAILABLE: the remap waits
 */
async function fromArchive(
  { redis, archive }: RemapDeps,
  configuration: Configuration,
  ids: readonly number[],
): Promise<ReadonlySet<number>> {
  const missing = await missingOf(redis, ids);
  if (!archive) return new Set(missing);
  const channelIds = channelsOfShipments(configuration, missing);
  const { back } = await bringBack(redis, archive, missing, channelIds);
  return new Set(missing.filter((id) => !back.has(id)));
}

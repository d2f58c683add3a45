/** Repeats erasures of recipients, and empties the outbox of this process of mails about them. */

import { ArchiveUnreadable } from "#core/archive/store/archive.ts";
import { type ErasureDeps, eraseAgain } from "#core/merchants/store/erase-personal-data.ts";
import { readErasedMails, repeatDue } from "#core/merchants/store/erasures.ts";
import type { Log } from "#core/platform/process/log.ts";
import { removeMails } from "#core/platform/process/mail.ts";
import type { Ticking } from "#core/platform/process/tick.ts";
import { startTickingThroughOutages } from "#core/platform/redis/outage.ts";

const EVERY_MS = 2_000;
/** Clocks of processes differ, and a call takes a while. */
const OVERLAP_MS = 60_000;

export function startErasures(deps: ErasureDeps & { readonly log: Log }): Ticking {
  const { redis, live, log, config } = deps;
  let lookedAtMs = 0;
  return startTickingThroughOutages(log, "erasures", EVERY_MS, async () => {
    await live.refresh();
    const nowMs = live.now();
    await removeMails(config, await readErasedMails(redis, lookedAtMs - OVERLAP_MS));
    lookedAtMs = nowMs;
    await repeatDue(redis, nowMs, (shipmentId) => repeat(deps, shipmentId));
  });
}

/** One whose row in the archive cannot be opened does not hold up the others; it was erased before it moved there. */
async function repeat(
  deps: ErasureDeps & { readonly log: Log },
  shipmentId: number,
): Promise<void> {
  try {
    await eraseAgain(deps, shipmentId);
  } catch (error) {
    if (!(error instanceof ArchiveUnreadable)) throw error;
    deps.log.error(
      { shipment: shipmentId },
      "an erasure cannot be repeated: the archived shipment cannot be read",
    );
  }
}

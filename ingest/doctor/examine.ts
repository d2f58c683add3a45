/** Sends the probes one after the other and makes the report of what came back. */
import { type Cause, firstCause, silent } from "#ingest/doctor/first-cause.ts";
import { type Probe, probes } from "#ingest/doctor/probes.ts";
import type { Sender } from "#ingest/doctor/sender.ts";

export interface Finding {
  readonly group: string;
  readonly name: string;
  /** Null: as expected. */
  readonly fault: string | null;
  readonly remedy: string;
  /** How far ahead of this machine's clock a valid event is dated, where it is. */
  readonly aheadMs?: number;
}

export interface Examination {
  readonly findings: readonly Finding[];
  /** Probes that need a signing secret and were left out. */
  readonly skipped: number;
  /** Why the rest was not tried. */
  readonly stopped: Cause | null;
}

export async function examine(sender: Sender, nowMs: () => number): Promise<Examination> {
  const all = probes(nowMs);
  const chosen = all.filter(({ needsSecret }) => !needsSecret || sender.target.secret !== null);
  const skipped = all.length - chosen.length;
  const findings: Finding[] = [];
  const stopped = await firstCause(sender);
  if (stopped !== null) return { findings, skipped, stopped };
  for (const probe of chosen) {
    try {
      findings.push(await tryProbe(sender, probe));
    } catch (error) {
      return { findings, skipped, stopped: silent(sender.target.url, error) };
    }
  }
  return { findings, skipped, stopped: null };
}

/** @throws when nothing answers */
async function tryProbe(sender: Sender, probe: Probe): Promise<Finding> {
  const { group, name, remedy } = probe;
  return { group, name, remedy, fault: probe.expect(await probe.send(sender)) };
}

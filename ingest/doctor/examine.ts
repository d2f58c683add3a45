/** Sends the probes one after the other and makes the report of what came back. */

import { told } from "#ingest/doctor/expect.ts";
import { type Probe, probes } from "#ingest/doctor/probes.ts";
import type { Answer, Sender } from "#ingest/doctor/sender.ts";

export interface Finding {
  readonly group: string;
  readonly name: string;
  /** Null: as expected. */
  readonly fault: string | null;
  readonly remedy: string;
}

export interface Examination {
  readonly findings: readonly Finding[];
  /** Probes that need a signing secret and were left out. */
  readonly skipped: number;
}

/** @param sample a message of the carrier's own, judged besides the probes */
export async function examine(
  sender: Sender,
  sample: string | null,
  nowMs: () => number,
): Promise<Examination> {
  const all = probes(nowMs);
  const chosen = all.filter(({ needsSecret }) => !needsSecret || sender.target.secret !== null);
  const findings: Finding[] = [];
  for (const probe of chosen) findings.push(await tryProbe(sender, probe));
  if (sample !== null) findings.push(...(await judgeSample(sender, sample)));
  return { findings, skipped: all.length - chosen.length };
}

async function tryProbe(sender: Sender, probe: Probe): Promise<Finding> {
  const { group, name, remedy } = probe;
  try {
    return { group, name, remedy, fault: probe.expect(await probe.send(sender)) };
  } catch (error) {
    return { group, name, remedy, fault: `no answer: ${(error as Error).message}` };
  }
}

interface SampleResult {
  readonly eventId: string | null;
  readonly errors?: readonly { readonly path: string; readonly message: string }[];
}

async function judgeSample(sender: Sender, sample: string): Promise<Finding[]> {
  const group = "Your message";
  const answer = await sender.send(sample);
  if (answer.status !== 200) {
    const faults = errorLines((answer.body?.["errors"] ?? []) as SampleResult["errors"]);
    const fault = [told(answer), ...faults].join("; ");
    return [{ group, name: "is accepted", fault, remedy: "Correct the envelope." }];
  }
  return resultsOf(answer).map(({ eventId, errors }, at) => ({
    group,
    name: `events[${at}] ${eventId ?? "(no eventId)"}`,
    fault: errors === undefined ? null : errorLines(errors).join("; "),
    remedy: "Correct the event and resend it with the same eventId.",
  }));
}

function resultsOf({ body }: Answer): readonly SampleResult[] {
  const results = body?.["results"];
  return Array.isArray(results) ? results : [];
}

function errorLines(errors: SampleResult["errors"]): string[] {
  return (errors ?? []).map(({ path, message }) => `${path}: ${message}`);
}

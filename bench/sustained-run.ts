/**
 * A sustained run: a sender under back-pressure, so that what is measured is the rate of the slowest stage and the lag stays
 * bounded. It is over when the last event has got to its end.
 */
import { join } from "node:path";
import { median } from "#bench/table.ts";
import { eventually } from "#test/support/eventually.ts";
import {
  IN_FLIGHT,
  type SenderCommand,
  type SenderOptions,
  type SenderReport,
} from "./event-sender.ts";

const HOLD_AT = 16_000;
const SENDER_START_MS = 500;
const LOOK_EVERY_MS = 200;
const DRAIN_LIMIT_MS = 120_000;
/** A look at all groups is work for Redis too. */
const DRAIN_LOOK_MS = 100;
/** Of the lag, seconds: what is below is the rhythm of the batches and no growth. */
const LAG_FLOOR_SECONDS = 1;

export interface Behind {
  readonly group: string;
  readonly entries: number;
  /** Age of the oldest; 0 where it is not known. */
  readonly seconds: number;
}

export interface Sustained {
  readonly events: number;
  /** From the first message to the last event at its end. */
  readonly seconds: number;
  /** Medians of what every group was behind, over the second quarter and the last one. */
  readonly lag: readonly { readonly early: Behind; readonly late: Behind }[];
}

type Sample = readonly Behind[];

export interface SustainedOptions extends SenderOptions {
  readonly seconds: number;
  /** Entries that the slowest stage may be behind, default 16,000: the nearer it is, the fewer messages are in flight. */
  readonly holdAt?: number;
  readonly behind: () => Promise<Sample>;
}

/** @throws when the sender ends before its time, or what is behind is not worked off */
export async function runSustained(options: SustainedOptions): Promise<Sustained> {
  const { seconds, behind, holdAt = HOLD_AT, ...sending } = options;
  let report: SenderReport = { accepted: 0, over: false };
  const command = [process.execPath, join(import.meta.dir, "event-sender.ts")];
  const sender = Bun.spawn([...command, JSON.stringify(sending satisfies SenderOptions)], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (message: SenderReport) => {
      report = message;
    },
  });
  const say = (word: SenderCommand) => sender.send(word);
  await Bun.sleep(SENDER_START_MS);
  const samples: Sample[] = [];
  let inFlight = IN_FLIGHT;
  say(inFlight);
  const startMs = performance.now();
  const isSending = () => !report.over && sender.exitCode === null;
  while (performance.now() - startMs < seconds * 1_000 && isSending()) {
    const sample = await behind();
    const sinceStart = (performance.now() - startMs) / 1_000;
    // A group that has read nothing of a log yet is reported to be behind since 1970.
    samples.push(sample.map((one) => ({ ...one, seconds: Math.min(one.seconds, sinceStart) })));
    const most = Math.max(0, ...sample.map(({ entries }) => entries));
    const wanted = Math.max(0, Math.ceil(IN_FLIGHT * (1 - most / holdAt)));
    if (isSending() && wanted !== inFlight) say(wanted);
    inFlight = wanted;
    await Bun.sleep(LOOK_EVERY_MS);
  }
  if (isSending()) say("stop");
  if (sender.exitCode) throw new Error("the sender has failed");
  await eventually(() => report.over, "the sender has its last answer", DRAIN_LIMIT_MS);
  const isDone = async () => (await behind()).every(({ entries }) => entries === 0);
  await eventually(isDone, "the last event is at its end", DRAIN_LIMIT_MS, DRAIN_LOOK_MS);
  const took = (performance.now() - startMs) / 1_000;
  await sender.exited;
  return { events: report.accepted, seconds: took, lag: lagOf(samples) };
}

function lagOf(samples: readonly Sample[]): Sustained["lag"] {
  const quarter = Math.floor(samples.length / 4);
  const early = samples.slice(quarter, 2 * quarter);
  const late = samples.slice(3 * quarter);
  return (samples[0] ?? []).map(({ group }, at) => {
    const middle = (part: readonly Sample[], field: "entries" | "seconds") =>
      median(part.map((sample) => sample[at]?.[field] ?? 0));
    const of = (part: readonly Sample[]) => ({
      group,
      entries: middle(part, "entries"),
      seconds: middle(part, "seconds"),
    });
    return { early: of(early), late: of(late) };
  });
}

/** The age of the oldest entry of the slowest group, seconds: in the first half and in the second. */
export function worstLag({ lag }: Sustained): { readonly early: number; readonly late: number } {
  const worst = (half: "early" | "late") =>
    Math.max(LAG_FLOOR_SECONDS, ...lag.map((one) => one[half].seconds));
  return { early: worst("early"), late: worst("late") };
}

export function lagText({ lag }: Sustained): string {
  const text = ({ entries, seconds }: Behind) =>
    `${Math.round(entries)} entries ${seconds.toFixed(2)} s`;
  const lines = lag.map(({ early, late }) => `${early.group} ${text(early)} -> ${text(late)}`);
  return `lag, first half -> second half: ${lines.join("; ")}`;
}

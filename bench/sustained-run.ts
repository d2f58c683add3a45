/**
 * A sustained run: a courier under back-pressure, so that what is measured is the rate of the slowest stage and the lag stays
 * bounded. It is over when the last event has got to its end. The courier is a process of its own, of this file: it keeps as many
 * signed messages in flight as it is told, and tells how many events were accepted.
 */
import { median } from "#bench/table.ts";
import { eventually } from "#test/support/eventually.ts";
import { lifeEventText, messageOf, type Population, post } from "./events.ts";

const IN_FLIGHT = 4;
const RETRY_WAIT_MS = 50;
const SENDER_START_MS = 500;
const LOOK_EVERY_MS = 200;
const DRAIN_LIMIT_MS = 120_000;
/** A look at all groups is work for Redis too. */
const DRAIN_LOOK_MS = 100;
/** Of the lag, seconds: what is below is the rhythm of the batches and no growth. */
const LAG_FLOOR_SECONDS = 1;

interface SenderOptions {
  readonly url: string;
  readonly population: Population;
  /** Index of the first event in the lives of the population. */
  readonly from: number;
  /** Events to send at most. */
  readonly limit: number;
  /** Events of a message, default 500. */
  readonly perMessage?: number;
}

export interface Behind {
  readonly group: string;
  readonly entries: number;
  /** Age of the oldest; 0 where it is not known. */
  readonly seconds: number;
}

interface SustainedOptions extends SenderOptions {
  readonly seconds: number;
  /** Entries that the slowest stage may be behind: the nearer it is, the fewer messages are in flight. */
  readonly holdAt?: number;
  readonly behind?: () => Promise<readonly Behind[]>;
}

/**
 * @returns the events, the seconds from the first message to the last event at its end, and what every group was behind meanwhile
 * @throws when the sender ends early, or the backlog is not processed in time
 */
export async function runSustained(options: SustainedOptions) {
  const { seconds, behind = async () => [], holdAt = 16_000, ...sending } = options;
  let report = { accepted: 0, over: false };
  const sender = Bun.spawn([process.execPath, import.meta.path, JSON.stringify(sending)], {
    stdio: ["ignore", "inherit", "inherit"],
    ipc: (message: typeof report) => {
      report = message;
    },
  });
  await Bun.sleep(SENDER_START_MS);
  const samples: (readonly Behind[])[] = [];
  let inFlight = IN_FLIGHT;
  sender.send(inFlight);
  const startMs = performance.now();
  const isSending = () => !report.over && sender.exitCode === null;
  while (performance.now() - startMs < seconds * 1_000 && isSending()) {
    const sample = await behind();
    const sinceStart = (performance.now() - startMs) / 1_000;
    // A group that has read nothing of a log yet is reported to be behind since 1970.
    samples.push(sample.map((one) => ({ ...one, seconds: Math.min(one.seconds, sinceStart) })));
    const most = Math.max(0, ...sample.map(({ entries }) => entries));
    const wanted = Math.max(0, Math.ceil(IN_FLIGHT * (1 - most / holdAt)));
    if (isSending() && wanted !== inFlight) sender.send(wanted);
    inFlight = wanted;
    await Bun.sleep(LOOK_EVERY_MS);
  }
  if (isSending()) sender.send("stop");
  if (sender.exitCode) throw new Error("the sender has failed");
  await eventually(() => report.over, "the sender has its last answer", DRAIN_LIMIT_MS);
  const isDone = async () => (await behind()).every(({ entries }) => entries === 0);
  await eventually(isDone, "the last event is at its end", DRAIN_LIMIT_MS, DRAIN_LOOK_MS);
  const took = (performance.now() - startMs) / 1_000;
  await sender.exited;
  return { events: report.accepted, seconds: took, samples };
}

/** The age of the oldest entry of the slowest group, seconds: medians over the second quarter of the run and the last one. */
export function worstLag(samples: readonly (readonly Behind[])[]) {
  const quarter = Math.floor(samples.length / 4);
  const worst = (part: typeof samples) => {
    const groups = (samples[0] ?? []).map((_, at) => part.map((one) => one[at]?.seconds ?? 0));
    return Math.max(LAG_FLOOR_SECONDS, ...groups.map(median));
  };
  return {
    early: worst(samples.slice(quarter, 2 * quarter)),
    late: worst(samples.slice(3 * quarter)),
  };
}

async function send({ url, population, from, limit, perMessage = 500 }: SenderOptions) {
  let woken = Promise.withResolvers<void>();
  let [inFlight, taken, accepted, over] = [0, 0, 0, false];
  const report = (isLast: boolean) => process.send?.({ accepted, over: isLast });
  process.on("message", (command: number | "stop") => {
    if (command === "stop") over = true;
    else inFlight = command;
    woken.resolve();
    woken = Promise.withResolvers();
  });
  const worker = async (_: unknown, index: number) => {
    while (!over && taken < limit) {
      if (index >= inFlight) {
        await woken.promise;
        continue;
      }
      const at = from + taken;
      taken += perMessage;
      const events = Array.from({ length: perMessage }, (_, n) =>
        lifeEventText(population, at + n),
      );
      let isTaken = false;
      while (!isTaken && !over) {
        isTaken = await post(url, messageOf(at, events));
        if (!isTaken) await Bun.sleep(RETRY_WAIT_MS);
      }
      if (isTaken) accepted += perMessage;
      report(false);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, worker));
  report(true);
}

if (import.meta.main) {
  await send(JSON.parse(process.argv[2] ?? "{}"));
  process.disconnect?.();
}

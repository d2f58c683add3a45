/** Reads one group's entries of a log over all partitions; in a burst the next batch is read while one is being handled. */
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Fields, type LogEntry, logEntry } from "./log-entry.ts";
import { type GroupName, LOGS, type LogName } from "./streams.ts";

/** Entries asked for at first, over all partitions: few until it is known how much one holds. */
const FIRST_COUNT = 64;
/** About 1 ms of Redis. */
export const ENTRIES_LIMIT = limit(
  500,
  "entries of a partition that one command reads",
  "the next command",
);
/** The same for what stands in them: about 2 MB. */
const ITEMS_LIMIT = limit(
  4_000,
  "events or changes of a partition that one command reads, about",
  "the next command",
);
const GROWTH = 4;
/** So much of a batch shows that more are on their way. */
const BURST_SHARE = 1 / 16;

export interface LogReaderOptions {
  readonly redis: Redis;
  readonly source: LogName;
  readonly group: GroupName;
  /** This consumer's name in the group. */
  readonly consumer: string;
  /** Events or changes read at once over all partitions, about: an entry is not cut. */
  readonly batch: number;
  /** A consumer that lingers reads ahead only where something is left; the others whenever a batch was full. */
  readonly lingers: boolean;
  /** Partitions that are left out: what was delivered of them is asked for first. */
  readonly isBehind: (key: string) => boolean;
  /** A partition could not be read; what was delivered of it may not have reached us. */
  readonly onFailed: (key: string, error: unknown) => void;
}

export interface LogReader {
  /** The next batch; empty when there is nothing new. */
  readonly next: () => Promise<readonly LogEntry[]>;
  /** Whether no batch is being read ahead. */
  readonly isQuiet: () => boolean;
  /** What was read ahead and not asked for yet; it is pending under our name. */
  readonly rest: () => Promise<readonly LogEntry[]>;
  /** Entries of a partition that were delivered to us and not acknowledged, batch by batch. */
  readonly pending: (key: string) => AsyncGenerator<readonly LogEntry[]>;
}

interface StreamMessage {
  readonly id: unknown;
  readonly message: Fields;
}

type StreamReply = readonly { readonly messages: readonly StreamMessage[] }[] | null;

export function entriesOf(
  source: LogName,
  key: string,
  messages: readonly (StreamMessage | null)[],
): LogEntry[] {
  const { split } = LOGS[source];
  return messages.flatMap((one) =>
    one ? [logEntry(key, String(one.id), one.message, split)] : [],
  );
}

/** A reader, and what it knows of its partitions. */
interface Reading extends LogReaderOptions {
  /** By log key, after what its entries held last. */
  readonly counts: Map<string, number>;
  /** Partitions that gave as many as they were asked for: they may have more. */
  full: Set<string>;
  ahead: Promise<LogEntry[]> | null;
}

export function openLogReader(options: LogReaderOptions): LogReader {
  const reading: Reading = { ...options, counts: new Map(), full: new Set(), ahead: null };
  return {
    next: () => readNext(reading),
    isQuiet: () => reading.ahead === null,
    rest: async () => (await reading.ahead) ?? [],
    pending: (key) => readPending(reading, key),
  };
}

async function readNext(reading: Reading): Promise<LogEntry[]> {
  const entries = await (reading.ahead ?? readAll(reading));
  const isBurst = reading.lingers
    ? reading.full.size > 0
    : itemsOf(entries) >= reading.batch * BURST_SHARE;
  reading.ahead = isBurst ? readAll(reading) : null;
  return entries;
}

async function* readPending(reading: Reading, key: string): AsyncGenerator<LogEntry[]> {
  let entries = await readFrom(reading, key, "0");
  while (entries.length > 0) {
    yield entries;
    entries = await readFrom(reading, key, entries.at(-1)?.id ?? "");
  }
}

/** Partitions that gave all they were asked for are asked again until there is a batch. */
async function readAll(reading: Reading): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  reading.full = new Set(LOGS[reading.source].keys().filter((key) => !reading.isBehind(key)));
  while (reading.full.size > 0 && itemsOf(entries) < reading.batch) {
    const keys = [...reading.full];
    reading.full.clear();
    entries.push(...(await Promise.all(keys.map((key) => readNew(reading, key)))).flat());
  }
  return entries;
}

async function readNew(reading: Reading, key: string): Promise<LogEntry[]> {
  try {
    return await readFrom(reading, key, ">");
  } catch (error) {
    reading.onFailed(key, error);
    return [];
  }
}

async function readFrom(reading: Reading, key: string, id: string): Promise<LogEntry[]> {
  const { redis, source, group, consumer, batch, counts } = reading;
  const partitions = LOGS[source].keys().length;
  const share = Math.min(Math.ceil(batch / partitions), ITEMS_LIMIT);
  const count = counts.get(key) ?? Math.min(Math.ceil(FIRST_COUNT / partitions), share);
  const reply = await redis.xReadGroup(group, consumer, { key, id }, { COUNT: count });
  const entries = ((reply as StreamReply) ?? []).flatMap(({ messages }) =>
    entriesOf(source, key, messages),
  );
  if (entries.length >= count) reading.full.add(key);
  if (entries.length > 0) counts.set(key, nextCount(entries, count, share));
  return entries;
}

/** As many entries as hold a share of a batch, if they are like these; more than now only where all that were asked for came. */
function nextCount(entries: readonly LogEntry[], count: number, share: number): number {
  const wanted = Math.ceil((share * entries.length) / itemsOf(entries));
  const most = entries.length < count ? count : GROWTH * count;
  return Math.min(wanted, most, ENTRIES_LIMIT);
}

function itemsOf(entries: readonly LogEntry[]): number {
  return entries.reduce((sum, { items }) => sum + items.length, 0);
}

/** Reads one group's entries of a log over all partitions; in a burst the next batch is read while one is being handled. */
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { type Fields, type LogEntry, logEntry } from "./log-entry.ts";
import { type GroupName, LOGS, type LogName } from "./streams.ts";

/** Entries read of a partition at once: few until it is known how much one holds. */
const FIRST_COUNT = 4;
export const ENTRIES_LIMIT = limit(100, "entries read of a partition at once", "the next read");
const GROWTH = 4;

export interface LogReaderOptions {
  readonly redis: Redis;
  readonly source: LogName;
  readonly group: GroupName;
  /** This consumer's name in the group. */
  readonly consumer: string;
  /** Events or changes read per partition at once, about: an entry is not cut. */
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
  /** A partition gave as many as it was asked for: it may have more. */
  hasMore: boolean;
  ahead: Promise<LogEntry[]> | null;
}

export function openLogReader(options: LogReaderOptions): LogReader {
  const reading: Reading = { ...options, counts: new Map(), hasMore: false, ahead: null };
  return {
    next: () => readNext(reading),
    isQuiet: () => reading.ahead === null,
    rest: async () => (await reading.ahead) ?? [],
    pending: (key) => readPending(reading, key),
  };
}

async function readNext(reading: Reading): Promise<LogEntry[]> {
  const entries = await (reading.ahead ?? readAll(reading));
  const isBurst = reading.lingers ? reading.hasMore : itemsOf(entries) >= reading.batch;
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

async function readAll(reading: Reading): Promise<LogEntry[]> {
  reading.hasMore = false;
  const keys = LOGS[reading.source].keys.filter((key) => !reading.isBehind(key));
  return (await Promise.all(keys.map((key) => readNew(reading, key)))).flat();
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
  const count = counts.get(key) ?? Math.min(FIRST_COUNT, batch);
  const reply = await redis.xReadGroup(group, consumer, { key, id }, { COUNT: count });
  const entries = ((reply as StreamReply) ?? []).flatMap(({ messages }) =>
    entriesOf(source, key, messages),
  );
  if (entries.length >= count) reading.hasMore = true;
  if (entries.length > 0) counts.set(key, nextCount(entries, count, batch));
  return entries;
}

/** As many entries as hold a batch, if they are like these; more than now only where all that were asked for came. */
function nextCount(entries: readonly LogEntry[], count: number, batch: number): number {
  const wanted = Math.ceil((batch * entries.length) / itemsOf(entries));
  const most = entries.length < count ? count : GROWTH * count;
  return Math.min(wanted, most, ENTRIES_LIMIT);
}

function itemsOf(entries: readonly LogEntry[]): number {
  return entries.reduce((sum, { items }) => sum + items.length, 0);
}

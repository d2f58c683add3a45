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

export function openLogReader(options: LogReaderOptions): LogReader {
  const { redis, source, group, consumer, batch, lingers, isBehind, onFailed } = options;
  const { keys } = LOGS[source];
  /** By log key, after what its entries held last. */
  const counts = new Map<string, number>();
  /** A partition gave as many as it was asked for: it may have more. */
  let hasMore = false;
  let ahead: Promise<LogEntry[]> | null = null;

  async function read(): Promise<LogEntry[]> {
    hasMore = false;
    const reading = keys.filter((key) => !isBehind(key)).map(readNew);
    return (await Promise.all(reading)).flat();
  }

  async function readNew(key: string): Promise<LogEntry[]> {
    try {
      return await readFrom(key, ">");
    } catch (error) {
      onFailed(key, error);
      return [];
    }
  }

  async function readFrom(key: string, id: string): Promise<LogEntry[]> {
    const count = counts.get(key) ?? Math.min(FIRST_COUNT, batch);
    const reply = await redis.xReadGroup(group, consumer, { key, id }, { COUNT: count });
    const entries = ((reply as StreamReply) ?? []).flatMap(({ messages }) =>
      entriesOf(source, key, messages),
    );
    if (entries.length >= count) hasMore = true;
    if (entries.length > 0) counts.set(key, nextCount(entries, count, batch));
    return entries;
  }

  return {
    async next() {
      const entries = await (ahead ?? read());
      const isBurst = lingers ? hasMore : itemsOf(entries) >= batch;
      ahead = isBurst ? read() : null;
      return entries;
    },
    isQuiet: () => ahead === null,
    rest: async () => (await ahead) ?? [],
    async *pending(key) {
      let entries = await readFrom(key, "0");
      while (entries.length > 0) {
        yield entries;
        entries = await readFrom(key, entries.at(-1)?.id ?? "");
      }
    },
  };
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

/**
 * A consumer of one log: reads batches over all partitions, hands them to its handler, acknowledges what was done. An entry
 * of the log holds many events or changes (`log-entry.ts`); the handler is given them one by one.
 *
 * | what happens                        | what follows                                                            |
 * |-------------------------------------|-------------------------------------------------------------------------|
 * | all of an entry is done             | acknowledged, deleted once every group has                               |
 * | a part fails (its own fault)        | acknowledged, and the part tried again after 1, 2, 4, 8 s; the fifth     |
 * |                                     | failure parks it as dead letter (`retries.ts`)                           |
 * | dead letter is driven again         | this group alone tries it once more; a failure parks it again            |
 * | the store below is away             | the whole batch waits and is tried again for ever; nothing is counted    |
 * | an answer of Redis is lost          | what was delivered to us is asked for again                              |
 * | this process dies                   | another process takes its entries over once its sign of life has expired |
 * | the log or group is gone            | created again                                                            |
 */
import { randomUUID } from "node:crypto";
import type { Log } from "#core/log.ts";
import { deadLetters } from "#core/metrics.ts";
import { isStoreAway, type Redis, run, script } from "./client.ts";
import { type Entry, type LogEntry, logEntry } from "./log-entry.ts";
import { type Failure, postpone, readDueRetries, settleRetry } from "./retries.ts";
import dropSource from "./scripts/drop-consumer.lua" with { type: "text" };
import {
  ensureGroups,
  type GroupName,
  isReplyError,
  LOGS,
  type LogName,
  trimLog,
} from "./streams.ts";

export type { Entry } from "./log-entry.ts";
export type { Failure } from "./retries.ts";

const dropScript = script(dropSource);

/** Thrown by a handler when what it writes to is away: the batch is kept and nothing is counted. */
export class Unavailable extends Error {}

export type Handler = (entries: readonly Entry[]) => Promise<readonly Failure[]>;

export interface ConsumerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly handler: Handler;
  /** Events or changes read per partition at once, about: what stands in one entry is not cut. */
  readonly batch: number;
  /** Waits this long after a read that left nothing behind, so that the next batch is larger; default 0. */
  readonly lingerMs?: number;
  /** Waits this long after a read that brought nothing; default 15. */
  readonly idleMs?: number;
}

export interface Consumer {
  /** Finishes what is in hand, acknowledges it and ends. */
  readonly stop: () => Promise<void>;
}

const IDLE_WAIT_MS = 15;
const TROUBLE_WAIT_MS = 500;
const SIGN_OF_LIFE_MS = 3_000;
const HOUSEKEEPING_MS = 1_000;
/** Entries read per partition at once: few until it is known what stands in one. */
const ENTRIES_AT_FIRST = 4;
const ENTRIES_AT_MOST = 100;

export function startConsumer(options: ConsumerOptions): Consumer {
  const {
    redis,
    log,
    source,
    group,
    handler,
    batch,
    lingerMs = 0,
    idleMs = IDLE_WAIT_MS,
  } = options;
  const { keys, split } = LOGS[source];
  const name = randomUUID();
  const alive = (consumer: string) => `alive:${group}:${consumer}`;
  /** After trouble: entries may have been delivered to us without reaching us, or reached us and not been done. */
  let hasLoose = false;
  /** The batch that follows the one in hand. */
  let ahead: Promise<LogEntry[]> | null = null;
  /** Per partition. */
  let entriesAtOnce = Math.min(ENTRIES_AT_FIRST, batch);
  /** A partition gave as many as it was asked for: it may have more. */
  let hasMore = false;
  let stopping = false;
  let housekeepingAt = 0;

  async function loop(): Promise<void> {
    while (!stopping) {
      try {
        if (hasLoose) await processLoose();
        await keepHouse();
        const entries = await next();
        if (entries.length === 0) await Bun.sleep(idleMs);
        else await process(entries);
        const isQuiet = entries.length > 0 && ahead === null;
        if (isQuiet && lingerMs > 0 && !stopping) await Bun.sleep(lingerMs);
      } catch (error) {
        // What it brings is ours and will be asked for again.
        await ahead?.catch(() => {});
        ahead = null;
        hasLoose = true;
        if (isReplyError(error, "NOGROUP")) await ensureGroups(redis).catch(() => {});
        else log.warn({ group, reason: (error as Error).message }, "consumer waits");
        await Bun.sleep(TROUBLE_WAIT_MS);
      }
    }
    await finish().catch((error: Error) => {
      log.warn({ group, reason: error.message }, "a batch is left to others");
    });
    await redis.del(alive(name)).catch(() => {});
  }

  /** What has been read ahead is ours. */
  async function finish(): Promise<void> {
    if (ahead) await process(await ahead);
  }

  /** In a burst the next batch is on its way while one is in hand. Whoever lingers reads on only where something is left. */
  async function next(): Promise<LogEntry[]> {
    const entries = await (ahead ?? read());
    const items = entries.reduce((sum, one) => sum + one.items.length, 0);
    const isBurst = lingerMs > 0 ? hasMore : items >= batch;
    ahead = isBurst ? read() : null;
    // Whoever awaits it hears of its failure.
    ahead?.catch(() => {});
    return entries;
  }

  async function read(): Promise<LogEntry[]> {
    const replies = await Promise.all(keys.map((key) => readFrom(key, ">")));
    hasMore = replies.some(({ length }) => length >= entriesAtOnce);
    const entries = replies.flat();
    const most = entries.reduce((largest, { items }) => Math.max(largest, items.length), 0);
    if (most > 0) {
      const wanted = Math.ceil(batch / most);
      entriesAtOnce = Math.min(wanted, ENTRIES_AT_MOST, ENTRIES_AT_FIRST * entriesAtOnce);
    }
    return entries;
  }

  async function readFrom(key: string, id: string): Promise<LogEntry[]> {
    const reply = await redis.xReadGroup(group, name, { key, id }, { COUNT: entriesAtOnce });
    return ((reply as StreamReply) ?? []).flatMap(({ messages }) => messages.map(entryOf(key)));
  }

  function entryOf(key: string) {
    return ({ id, message }: StreamMessage) => logEntry(key, String(id), message, split);
  }

  async function processLoose(): Promise<void> {
    for (const key of keys) {
      let entries = await readFrom(key, "0");
      while (entries.length > 0) {
        await process(entries);
        entries = await readFrom(key, entries.at(-1)?.id ?? "");
      }
    }
    hasLoose = false;
  }

  async function process(entries: readonly LogEntry[]): Promise<void> {
    if (entries.length === 0) return;
    const failures = await handleInSteps(entries.flatMap(({ items }) => items));
    await acknowledge(entries, failures);
  }

  /** A handler that throws is tried entry by entry, so that one poisonous entry does not hold up the others. */
  async function handleInSteps(entries: readonly Entry[]): Promise<readonly Failure[]> {
    try {
      return await handleUntilAvailable(entries);
    } catch (error) {
      if (isAway(error)) throw error;
      const [only] = entries;
      if (entries.length === 1 && only) return [{ entry: only, reason: String(error) }];
      const failures: Failure[] = [];
      for (const entry of entries) failures.push(...(await handleInSteps([entry])));
      return failures;
    }
  }

  async function handleUntilAvailable(entries: readonly Entry[]): Promise<readonly Failure[]> {
    for (;;) {
      try {
        return await handler(entries);
      } catch (error) {
        if (!isAway(error)) throw error;
        if (stopping) throw error;
        log.warn({ group, reason: (error as Error).message }, "batch waits for its store");
        await Bun.sleep(TROUBLE_WAIT_MS);
        await giveSignOfLife().catch(() => {});
      }
    }
  }

  function isAway(error: unknown): boolean {
    return error instanceof Unavailable || isStoreAway(error) || !redis.isReady;
  }

  async function acknowledge(
    entries: readonly LogEntry[],
    failures: readonly Failure[],
  ): Promise<void> {
    for (const { entry, reason } of failures) {
      log.warn({ group, entry: entry.id, tries: 1, reason }, "entry failed and is tried again");
    }
    const failed = Map.groupBy(failures, ({ entry }) => entry.key);
    await Promise.all(
      [...Map.groupBy(entries, ({ key }) => key)].map(([key, own]) => {
        const ids = own.map(({ id }) => id);
        const ownFailures = failed.get(key);
        return ownFailures
          ? postpone(redis, group, key, ids, ownFailures)
          : redis.xAck(key, group, ids);
      }),
    );
  }

  async function keepHouse(): Promise<void> {
    if (Date.now() < housekeepingAt) return;
    housekeepingAt = Date.now() + HOUSEKEEPING_MS;
    await giveSignOfLife();
    await tryAgain();
    await process((await Promise.all(keys.map(takeOver))).flat());
    await Promise.all(keys.map((key) => trimLog(redis, key)));
  }

  /** Two processes may take one at the same time; handlers bear repetition, and it is settled once. */
  async function tryAgain(): Promise<void> {
    const due = await readDueRetries(redis, keys, group, batch);
    if (due.length === 0) return;
    const failures = await handleInSteps(due);
    const reasons = new Map(failures.map(({ entry, reason }) => [entry, reason]));
    for (const retry of due) {
      const reason = reasons.get(retry) ?? null;
      const settled = await settleRetry(redis, group, retry, reason);
      if (settled === "waiting") {
        const about = { group, entry: retry.id, tries: retry.tries + 1, reason };
        log.warn(about, "entry failed and is tried again");
      }
      if (settled !== "parked") continue;
      deadLetters.inc({ group });
      log.error({ group, entry: retry.id, reason }, "entry parked as dead letter");
    }
  }

  async function giveSignOfLife(): Promise<void> {
    await redis.set(alive(name), "1", { PX: SIGN_OF_LIFE_MS });
  }

  /** Entries held by consumers whose sign of life has expired. Their names go once they hold nothing. */
  async function takeOver(key: string): Promise<LogEntry[]> {
    const consumers = await redis.xInfoConsumers(key, group);
    const taken: LogEntry[] = [];
    for (const consumer of consumers) {
      const other = String(consumer.name);
      if (other === name || (await redis.exists(alive(other))) === 1) continue;
      if (consumer.pending === 0) {
        await run(redis, dropScript, [key], [group, other]);
        continue;
      }
      const held = await redis.xPendingRange(key, group, "-", "+", entriesAtOnce, {
        consumer: other,
      });
      const ids = held.map(({ id }) => String(id));
      const claimed = ids.length === 0 ? [] : await redis.xClaim(key, group, name, 0, ids);
      taken.push(...claimed.flatMap((message) => (message ? [entryOf(key)(message)] : [])));
    }
    return taken;
  }

  const running = giveSignOfLife()
    .catch(() => {})
    .then(loop);
  return {
    async stop() {
      stopping = true;
      await running;
    },
  };
}

interface StreamMessage {
  readonly id: unknown;
  readonly message: Entry["fields"];
}

type StreamReply = readonly { readonly messages: readonly StreamMessage[] }[] | null;

/**
 * A consumer of one log: reads batches over all partitions, hands them to its handler, acknowledges what was done. An entry
 * of the log holds many events or changes (`log-entry.ts`); the handler is given them one by one.
 *
 * | what happens                        | what follows                                                            |
 * |-------------------------------------|-------------------------------------------------------------------------|
 * | all of an entry is done             | acknowledged, deleted once every group has                               |
 * | a part fails (its own fault)        | acknowledged, and the part tried again after 1, 2, 4, 8 s; the fifth     |
 * |                                     | failure parks it as dead letter (`retries.ts`)                           |
 * | the log is full of dead letters     | the part is retried every minute, and a metric reports it                |
 * | a dead letter is redriven           | only this group tries it once more; a failure parks it again             |
 * | a store is unavailable              | the whole batch waits and is retried without end; nothing is counted     |
 * | an answer of Redis is lost          | what was delivered to us is asked for again                              |
 * | this process dies                   | another process takes its entries over once its sign of life has expired |
 * | the log or group is gone            | created again                                                            |
 */
import { randomUUID } from "node:crypto";
import { chunksBySize } from "#core/chunks.ts";
import type { Log } from "#core/log.ts";
import { deadLetters, deadLettersAtLimit } from "#core/metrics.ts";
import { startTicking } from "#core/tick.ts";
import { type Redis, run, script } from "./client.ts";
import { type Entry, type LogEntry, logEntry } from "./log-entry.ts";
import { followOutage } from "./outage.ts";
import { acknowledge, type Failure, isLastTry, readDueRetries, settleRetries } from "./retries.ts";
import dropSource from "./scripts/drop-consumer.lua" with { type: "text" };
import { isStoreUnavailable } from "./store-unavailable.ts";
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

/** An error caused by an unavailable store is not counted: the batch is kept. */
export type Handler = (entries: readonly Entry[]) => Promise<readonly Failure[]>;

export interface ConsumerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly handler: Handler;
  /** Events or changes read per partition at once, about: what stands in one entry is not cut. The handler is given those of
   * 16 partitions at most. */
  readonly batch: number;
  /** Waits this long after a read that left nothing behind, so that the next batch is larger; default 0. */
  readonly lingerMs?: number;
  /** Waits this long after a read that brought nothing; default 15. */
  readonly idleMs?: number;
}

export interface Consumer {
  /** Whether it is reading and not stuck in a batch; it also counts as running while it waits for an unavailable store. */
  readonly isRunning: () => boolean;
  /** Finishes what is in hand, acknowledges it and ends. */
  readonly stop: () => Promise<void>;
}

const IDLE_WAIT_MS = 15;
const GONE_WAIT_MS = 500;
const SIGN_OF_LIFE_MS = 3_000;
const HOUSEKEEPING_MS = 1_000;
/** A process whose batch takes longer than this gives no more sign of life: others may do better. */
const STUCK_MS = 60_000;
/** Entries read of a partition at once: few until it is known what stands in one, never more than the last. */
const ENTRIES_AT_FIRST = 4;
const ENTRIES_AT_MOST = 100;
const GROWTH = 4;

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
  const { keys, groups, split } = LOGS[source];
  /** One group trims for all: while it is away nothing can go, since it has acknowledged nothing. */
  const trims = group === groups[0];
  const name = randomUUID();
  const alive = (consumer: string) => `alive:${group}:${consumer}`;
  /** After trouble: entries may have been delivered to us without reaching us, or reached us and not been done. */
  let hasLoose = false;
  /** The batch that follows the one in hand. */
  let ahead: Promise<LogEntry[]> | null = null;
  /** By log key, after what stood in its entries last. */
  const entriesAtOnce = new Map<string, number>();
  /** A partition gave as many as it was asked for: it may have more. */
  let hasMore = false;
  let stopping = false;
  let housekeepingAtMs = 0;
  let begunAtMs = performance.now();
  const outage = followOutage(log, group);

  async function loop(): Promise<void> {
    while (!stopping) {
      try {
        if (hasLoose) await processLoose();
        await keepHouse();
        begunAtMs = performance.now();
        const entries = await next();
        if (entries.length > 0) await process(entries);
        outage.succeeded();
        if (entries.length === 0) await Bun.sleep(idleMs);
        const isQuiet = entries.length > 0 && ahead === null;
        if (isQuiet && lingerMs > 0 && !stopping) await Bun.sleep(lingerMs);
      } catch (error) {
        // What it brings is ours and will be asked for again.
        await ahead?.catch(() => {});
        ahead = null;
        hasLoose = true;
        const isGone = isReplyError(error, "NOGROUP");
        if (isGone) await ensureGroups(redis).catch(() => {});
        if (!stopping) await Bun.sleep(isGone ? GONE_WAIT_MS : outage.failed(error));
      }
    }
    await finish().catch((error: Error) => {
      log.warn({ group, reason: error.message }, "a batch is left to others");
    });
    clearInterval(beating);
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
    hasMore = false;
    const replies = await Promise.all(keys.map((key) => readFrom(key, ">")));
    return replies.flat();
  }

  async function readFrom(key: string, id: string): Promise<LogEntry[]> {
    const count = entriesAtOnce.get(key) ?? Math.min(ENTRIES_AT_FIRST, batch);
    const reply = await redis.xReadGroup(group, name, { key, id }, { COUNT: count });
    const entries = ((reply as StreamReply) ?? []).flatMap(({ messages }) =>
      messages.map(entryOf(key)),
    );
    if (entries.length >= count) hasMore = true;
    if (entries.length > 0) entriesAtOnce.set(key, nextCount(entries, count));
    return entries;
  }

  /** As many entries as hold a batch, when they are like these; more than now only where all that were asked for came. */
  function nextCount(entries: readonly LogEntry[], count: number): number {
    const items = entries.reduce((sum, one) => sum + one.items.length, 0);
    const wanted = Math.ceil((batch * entries.length) / items);
    const most = entries.length < count ? count : GROWTH * count;
    return Math.min(wanted, most, ENTRIES_AT_MOST);
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
    for (const part of chunksBySize(entries, batch * keys.length, ({ items }) => items.length)) {
      begunAtMs = performance.now();
      const failures = await handleInSteps(part.flatMap(({ items }) => items));
      await acknowledgeAll(part, failures);
    }
  }

  /** A handler that throws is tried entry by entry, so that one poisonous entry does not hold up the others. */
  async function handleInSteps(entries: readonly Entry[]): Promise<readonly Failure[]> {
    try {
      return await handleUntilAvailable(entries);
    } catch (error) {
      if (isStoreUnavailable(error, redis)) throw error;
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
        if (!isStoreUnavailable(error, redis)) throw error;
        if (stopping) throw error;
        await Bun.sleep(outage.failed(error));
        begunAtMs = performance.now();
      }
    }
  }

  async function acknowledgeAll(
    entries: readonly LogEntry[],
    failures: readonly Failure[],
  ): Promise<void> {
    for (const { entry, reason } of failures) tellAgain(entry, 1, reason);
    const failed = Map.groupBy(failures, ({ entry }) => entry.key);
    await Promise.all(
      [...Map.groupBy(entries, ({ key }) => key)].map(([key, own]) =>
        acknowledge(redis, group, key, own, failed.get(key)),
      ),
    );
  }

  function tellAgain({ id }: Entry, tries: number, reason: string): void {
    log.warn({ group, entry: id, tries, reason }, "entry failed and is tried again");
  }

  async function keepHouse(): Promise<void> {
    if (performance.now() < housekeepingAtMs) return;
    housekeepingAtMs = performance.now() + HOUSEKEEPING_MS;
    await tryAgain();
    await takeOver();
  }

  /** Two processes may take one at the same time; handlers bear repetition, and it is settled once. */
  async function tryAgain(): Promise<void> {
    const due = await readDueRetries(redis, keys, group, batch);
    if (due.length === 0) return;
    begunAtMs = performance.now();
    const failures = await handleInSteps(due);
    const reasons = new Map(failures.map(({ entry, reason }) => [placeOf(entry), reason]));
    const tried = due.map((retry) => ({ retry, reason: reasons.get(placeOf(retry)) ?? null }));
    for (const one of await settleRetries(redis, group, tried)) {
      const { retry, reason } = one;
      if (reason === null) continue;
      if (one.isKept) {
        deadLettersAtLimit.inc({ group });
        const about = { group, log: retry.key, entry: retry.id, reason };
        log.error(about, "the log keeps no more dead letters: the entry stays in retry");
      } else if (isLastTry(one)) {
        deadLetters.inc({ group });
        log.error({ group, entry: retry.id, reason }, "entry parked as dead letter");
      } else tellAgain(retry, retry.tries + 1, reason);
    }
  }

  /** Extends an existing key, which Redis allows even when its memory is full. */
  async function giveSignOfLife(): Promise<void> {
    const isThere = await redis.pExpire(alive(name), SIGN_OF_LIFE_MS);
    if (isThere === 0) await redis.set(alive(name), "1", { PX: SIGN_OF_LIFE_MS });
  }

  /** Does what consumers hold whose sign of life has expired. Their names go once they hold nothing. */
  async function takeOver(): Promise<void> {
    const dead = (await Promise.all(keys.map(deadConsumersOf))).flat();
    for (const { key, consumer } of dead) {
      for (;;) {
        const range = [key, group, "-", "+", ENTRIES_AT_MOST] as const;
        const held = await redis.xPendingRange(...range, { consumer });
        if (held.length === 0) break;
        const ids = held.map(({ id }) => String(id));
        const claimed = await redis.xClaim(key, group, name, 0, ids);
        await process(claimed.flatMap((message) => (message ? [entryOf(key)(message)] : [])));
      }
      await run(redis, dropScript, [key], [group, consumer]);
    }
  }

  async function deadConsumersOf(key: string) {
    const dead: { key: string; consumer: string }[] = [];
    for (const one of await redis.xInfoConsumers(key, group)) {
      const consumer = String(one.name);
      if (consumer === name || (await redis.exists(alive(consumer))) === 1) continue;
      dead.push({ key, consumer });
    }
    return dead;
  }

  const isRunning = () => !stopping && performance.now() < begunAtMs + STUCK_MS;
  const beating = setInterval(() => {
    if (performance.now() < begunAtMs + STUCK_MS) giveSignOfLife().catch(() => {});
  }, HOUSEKEEPING_MS);

  /** Runs on its own timer: while a batch waits for a store, other groups acknowledge, and only trimming frees memory. */
  const trimming = trims
    ? startTicking(
        HOUSEKEEPING_MS,
        async () => void (await Promise.all(keys.map((key) => trimLog(redis, source, key)))),
        () => {},
      )
    : null;

  const running = giveSignOfLife()
    .catch(() => {})
    .then(loop);
  return {
    isRunning,
    async stop() {
      stopping = true;
      await Promise.all([running, trimming?.stop()]);
    },
  };
}

function placeOf({ key, id }: Entry): string {
  return `${key} ${id}`;
}

interface StreamMessage {
  readonly id: unknown;
  readonly message: Entry["fields"];
}

type StreamReply = readonly { readonly messages: readonly StreamMessage[] }[] | null;

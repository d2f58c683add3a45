/**
 * A consumer of one log: reads batches over all partitions, hands them to its handler, acknowledges what was done.
 *
 * | what happens                        | what follows                                                            |
 * |-------------------------------------|-------------------------------------------------------------------------|
 * | entry done                          | acknowledged, deleted once every group has                               |
 * | entry fails (its own fault)         | tried again after 1, 2, 4, 8 s; the fifth failure parks it as dead letter |
 * | dead letter is driven again         | this group alone tries it once more; a failure parks it again           |
 * | the store below is away             | the whole batch waits and is tried again for ever; nothing is counted    |
 * | an answer of Redis is lost          | what was delivered to us is asked for again                              |
| this process dies                   | another process takes its entries over once its sign of life has expired |
 * | the log or group is gone            | created again                                                           |
 */
import { randomUUID } from "node:crypto";
import type { Log } from "#core/log.ts";
import { deadLetters } from "#core/metrics.ts";
import { isStoreAway, type Redis, run, script } from "./client.ts";
import { readRedriven, settleRedriven } from "./dead-letters.ts";
import { deadLetterKey } from "./keys.ts";
import dropSource from "./scripts/drop-consumer.lua" with { type: "text" };
import {
  ensureGroups,
  type GroupName,
  isReplyError,
  LOGS,
  type LogName,
  trimLog,
} from "./streams.ts";

const dropScript = script(dropSource);

export interface Entry {
  /** Key of the log it stands in. */
  readonly key: string;
  readonly id: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** An entry that failed by its own fault; entries not named are done. */
export interface Failure {
  readonly entry: Entry;
  readonly reason: string;
}

/** Thrown by a handler when what it writes to is away: the batch is kept and nothing is counted. */
export class Unavailable extends Error {}

export type Handler = (entries: readonly Entry[]) => Promise<readonly Failure[]>;

export interface ConsumerOptions {
  readonly redis: Redis;
  readonly log: Log;
  readonly source: LogName;
  readonly group: GroupName;
  readonly handler: Handler;
  /** Entries read per partition at once. */
  readonly batch: number;
  /** Waits this long after a read that was not full, so that the next batch is larger; default 0. */
  readonly lingerMs?: number;
  /** Waits this long after a read that brought nothing; default 15. */
  readonly idleMs?: number;
}

export interface Consumer {
  /** Finishes what is in hand, acknowledges it and ends. */
  readonly stop: () => Promise<void>;
}

export const MAX_TRIES = 5;
const FIRST_RETRY_MS = 1_000;
const IDLE_WAIT_MS = 15;
const TROUBLE_WAIT_MS = 500;
const SIGN_OF_LIFE_MS = 3_000;
const HOUSEKEEPING_MS = 1_000;
/** Characters of a failure that its dead letter tells. */
const REASON_LENGTH = 1_000;

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
  const { keys } = LOGS[source];
  const name = randomUUID();
  const alive = (consumer: string) => `alive:${group}:${consumer}`;
  /** Own failures waiting for their next try, by `key id`. */
  const retries = new Map<string, { key: string; id: string; dueMs: number }>();
  /** After trouble: entries may have been delivered to us without reaching us, or reached us and not been done. */
  let hasLoose = false;
  /** The batch that follows the one in hand. */
  let ahead: Promise<Entry[]> | null = null;
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
        const quiet = entries.length > 0 && entries.length < batch;
        if (quiet && lingerMs > 0 && !stopping) await Bun.sleep(lingerMs);
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

  /** In a burst the next batch is on its way while one is in hand. */
  async function next(): Promise<Entry[]> {
    const entries = await (ahead ?? read());
    ahead = entries.length >= batch ? read() : null;
    // Whoever awaits it hears of its failure.
    ahead?.catch(() => {});
    return entries;
  }

  async function read(): Promise<Entry[]> {
    const replies = await Promise.all(keys.map((key) => readFrom(key, ">")));
    return replies.flat();
  }

  async function readFrom(key: string, id: string): Promise<Entry[]> {
    const reply = await redis.xReadGroup(group, name, { key, id }, { COUNT: batch });
    return entriesOf(reply as StreamReply);
  }

  /** Entries that are ours and wait for no next try. */
  async function processLoose(): Promise<void> {
    for (const key of keys) {
      let entries = await readFrom(key, "0");
      while (entries.length > 0) {
        await process(entries.filter(({ id }) => !retries.has(`${key} ${id}`)));
        entries = await readFrom(key, entries.at(-1)?.id ?? "");
      }
    }
    hasLoose = false;
  }

  async function process(entries: readonly Entry[]): Promise<void> {
    if (entries.length === 0) return;
    const failures = await handleInSteps(entries);
    const failed = new Set(failures.map(({ entry }) => `${entry.key} ${entry.id}`));
    await acknowledge(entries.filter(({ key, id }) => !failed.has(`${key} ${id}`)));
    for (const failure of failures) await postpone(failure);
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

  async function acknowledge(entries: readonly Entry[]): Promise<void> {
    const byKey = Map.groupBy(entries, ({ key }) => key);
    await Promise.all(
      [...byKey].map(([key, own]) =>
        redis.xAck(
          key,
          group,
          own.map(({ id }) => id),
        ),
      ),
    );
    for (const { key, id } of entries) retries.delete(`${key} ${id}`);
  }

  async function postpone({ entry, reason }: Failure): Promise<void> {
    const { key, id } = entry;
    const [pending] = await redis.xPendingRange(key, group, id, id, 1);
    const tries = pending?.deliveriesCounter ?? 1;
    if (tries < MAX_TRIES) {
      const dueMs = Date.now() + FIRST_RETRY_MS * 2 ** (tries - 1);
      retries.set(`${key} ${id}`, { key, id, dueMs });
      log.warn({ group, entry: id, tries, reason }, "entry failed and is tried again");
      return;
    }
    await park(entry, reason);
  }

  /** The dead letter keeps the whole entry, so that it can be driven again. */
  async function park(entry: Entry, reason: string): Promise<void> {
    const fields = { log: entry.key, group, id: entry.id, reason: reason.slice(0, REASON_LENGTH) };
    await redis
      .multi()
      .xAdd(deadLetterKey(entry.key), "*", { ...fields, entry: JSON.stringify(entry.fields) })
      .xAck(entry.key, group, entry.id)
      .exec();
    retries.delete(`${entry.key} ${entry.id}`);
    deadLetters.inc({ group });
    log.error({ group, entry: entry.id, reason }, "entry parked as dead letter");
  }

  async function keepHouse(): Promise<void> {
    if (Date.now() < housekeepingAt) return;
    housekeepingAt = Date.now() + HOUSEKEEPING_MS;
    await giveSignOfLife();
    await process(await takeDueRetries());
    await processRedriven();
    await process((await Promise.all(keys.map(takeOver))).flat());
    await Promise.all(keys.map((key) => trimLog(redis, key)));
  }

  /**
   * Dead letters that an operator has driven again: tried once, and parked again when they fail. Two processes may take one
   * at the same time; handlers bear repetition, and it is settled once.
   */
  async function processRedriven(): Promise<void> {
    const entries = await readRedriven(redis, keys, group, batch);
    if (entries.length === 0) return;
    const failures = await handleInSteps(entries);
    for (const entry of entries) {
      const failure = failures.find((one) => one.entry === entry);
      const reason = failure ? failure.reason.slice(0, REASON_LENGTH) || "failed" : null;
      const settled = await settleRedriven(redis, group, entry, reason);
      if (settled === "parked") deadLetters.inc({ group });
    }
  }

  async function giveSignOfLife(): Promise<void> {
    await redis.set(alive(name), "1", { PX: SIGN_OF_LIFE_MS });
  }

  async function takeDueRetries(): Promise<Entry[]> {
    const due = [...retries.values()].filter(({ dueMs }) => dueMs <= Date.now());
    const taken: Entry[] = [];
    for (const { key, id } of due) taken.push(...(await claim(key, [id])));
    return taken;
  }

  /** Entries held by consumers whose sign of life has expired. Their names go once they hold nothing. */
  async function takeOver(key: string): Promise<Entry[]> {
    const consumers = await redis.xInfoConsumers(key, group);
    const taken: Entry[] = [];
    for (const consumer of consumers) {
      const other = String(consumer.name);
      if (other === name || (await redis.exists(alive(other))) === 1) continue;
      if (consumer.pending === 0) {
        await run(redis, dropScript, [key], [group, other]);
        continue;
      }
      const held = await redis.xPendingRange(key, group, "-", "+", batch, { consumer: other });
      taken.push(
        ...(await claim(
          key,
          held.map(({ id }) => String(id)),
        )),
      );
    }
    return taken;
  }

  async function claim(key: string, ids: string[]): Promise<Entry[]> {
    if (ids.length === 0) return [];
    const claimed = await redis.xClaim(key, group, name, 0, ids);
    return claimed.flatMap((message) =>
      message ? [{ key, id: String(message.id), fields: message.message as Entry["fields"] }] : [],
    );
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

type StreamReply = Array<{
  name: string;
  messages: Array<{ id: string; message: Record<string, string> }>;
}> | null;

function entriesOf(reply: StreamReply): Entry[] {
  return (reply ?? []).flatMap(({ name: key, messages }) =>
    messages.map(({ id, message }) => ({ key, id, fields: message })),
  );
}

/** Erases a recipient from events that track could not apply: what waits for its next try, and dead letters. */

import type { Fields } from "#core/platform/log/log-entry.ts";
import replaceLetterSource from "#core/platform/log/replace-letter.lua" with { type: "text" };
import replaceRetrySource from "#core/platform/log/replace-retry.lua" with { type: "text" };
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { deadLetterKey, eventLogs, retriesKey, retryAgesKey } from "#core/platform/redis/keys.ts";
import { erasedEvent } from "#core/shipments/rules/erase.ts";
import { decodeLoggedEvent, encodeLoggedEvent } from "./event-log.ts";

const replaceLetterScript = script(replaceLetterSource);
const replaceRetryScript = script(replaceRetrySource);

/** The group that reads the event log. */
const GROUP = "track";
/** Read in one call: about 200 KB. */
const AT_ONCE = 100;

/** Retries before dead letters: a retry becomes a letter, and a letter that is redriven is found by the next repetition. */
export async function eraseWaitingEvents(redis: Redis, shipmentId: number): Promise<void> {
  for (const key of eventLogs()) {
    await eraseRetries(redis, key, shipmentId);
    await eraseLetters(redis, key, shipmentId);
  }
}

async function eraseRetries(redis: Redis, key: string, shipmentId: number): Promise<void> {
  const keys = [retriesKey(key, GROUP), retryAgesKey(key, GROUP)];
  for await (const members of redis.zScanIterator(keys[0] ?? "", { COUNT: AT_ONCE })) {
    for (const { value: text } of members) {
      const retry: { readonly entry: string } = JSON.parse(text);
      const entry = erasedEntry(retry.entry, shipmentId);
      if (entry === null) continue;
      await run(redis, replaceRetryScript, keys, [text, JSON.stringify({ ...retry, entry })]);
    }
  }
}

async function eraseLetters(redis: Redis, key: string, shipmentId: number): Promise<void> {
  const letters = deadLetterKey(key);
  // Letters that take the place of others come after the last one of now.
  const [newest] = (await redis.xRevRange(letters, "+", "-", { COUNT: 1 })) ?? [];
  if (!newest) return;
  let start = "-";
  for (;;) {
    const rows = await redis.xRange(letters, start, String(newest.id), { COUNT: AT_ONCE });
    const last = rows?.at(-1);
    if (!rows || !last) return;
    start = `(${String(last.id)}`;
    for (const { id, message } of rows) {
      const entry = erasedEntry(message["entry"] ?? "{}", shipmentId);
      if (entry !== null) await run(redis, replaceLetterScript, [letters], [String(id), entry]);
    }
  }
}

/** @returns null if it is about another shipment, cannot be read, or holds nothing of the recipient */
function erasedEntry(text: string, shipmentId: number): string | null {
  const fields: Fields = JSON.parse(text);
  const line = fields["e"];
  // The line begins with the shipment's id.
  if (!line?.startsWith(`[${shipmentId},`)) return null;
  const logged = decodeLoggedEvent(line);
  const erased = JSON.stringify({
    ...fields,
    e: encodeLoggedEvent({ ...logged, event: erasedEvent(logged.event) }),
  });
  return erased === text ? null : erased;
}

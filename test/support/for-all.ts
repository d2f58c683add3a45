/** What all tests of a file, or of a `describe`, share. */
import { afterAll, beforeAll } from "bun:test";

type Ending = { readonly end: () => Promise<unknown> } | { readonly stop: () => Promise<unknown> };

/** A cluster or a whole product starts, or ends, on a busy machine. */
const LIMIT_MS = 300_000;

/** Opened and not yet ended, in this order. */
const open: Ending[] = [];

/**
 * Opened before the first test and ended after the last one, what was opened last first.
 * @returns what `start` returns, as soon as a test or a hook after this one runs
 */
export function forAll<T extends Ending>(start: () => T | Promise<T>): T {
  const shared = {} as T;
  beforeAll(async () => {
    const started = await start();
    open.push(started);
    Object.defineProperties(shared, Object.getOwnPropertyDescriptors(started));
  }, LIMIT_MS);
  afterAll(async () => {
    const last = open.pop();
    if (last) await ("end" in last ? last.end() : last.stop());
  }, LIMIT_MS);
  return shared;
}

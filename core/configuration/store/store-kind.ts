/**
 * Whether a store is the demo's or holds real data: the two never share one, since the demo's keys and accounts are public and its
 * deliveries are invented. The first start on an empty store says which it is.
 *
 * | Field of the system's hash | Holds                                                                    |
 * |----------------------------|--------------------------------------------------------------------------|
 * | `kind`                     | `demo`, `real`, or `emptying` from the first to the last step of a reset |
 */

import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { SYSTEM_KEY } from "#core/platform/redis/keys.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import { DEMO_API_KEYS, DEMO_COMPANIES } from "./demo-identity.ts";
import { allEntities, entityIds } from "./entities.ts";

export type StoreKind = "demo" | "real";

/** The store is of the other kind, or was being emptied: the message says what to do. */
export class WrongStore extends Error {}

const FIELD = "kind";
const EMPTYING = "emptying";

export interface Claim {
  readonly isDemo: boolean;
  /** The store in the words of a message. */
  readonly place: string;
}

/**
 * Called before anything else is written to the store.
 * @returns whether the store was empty
 * @throws {WrongStore}
 */
export async function claimStore(
  redis: Redis,
  { isDemo, place }: Claim,
  log: Log,
): Promise<boolean> {
  const wanted: StoreKind = isDemo ? "demo" : "real";
  const found = await kindOf(redis);
  if (found === EMPTYING) {
    throw new WrongStore(
      `${place} was being emptied when that was interrupted: run npm start -- --reset-demo again.`,
    );
  }
  if (found !== null && found !== wanted) throw wrongStore(wanted, place);
  await redis.hSet(SYSTEM_KEY, FIELD, wanted);
  if (wanted === "real") await warnAboutDemo(redis, log);
  return found === null;
}

export function wrongStore(wanted: StoreKind, place: string): WrongStore {
  if (wanted === "real") {
    return new WrongStore(
      `${place} holds the demo's data, which is never mixed with real data: name another store (DATA_DIR, or the URLs of its servers), ` +
        "or empty the demo's by npm start -- --reset-demo.",
    );
  }
  return new WrongStore(
    `${place} holds real data, which the demo never writes to: for the demo, set DATA_DIR to another folder ` +
      "(without it, the demo uses .data/demo), and for a start without the demo, set SETUP_FILE or run npm start -- --quiet.",
  );
}

/** @returns null for a store that either kind of start may take */
async function kindOf(redis: Redis): Promise<StoreKind | typeof EMPTYING | null> {
  const marked = await redis.hGet(SYSTEM_KEY, FIELD);
  if (marked === EMPTYING) return EMPTYING;
  // A start that was refused, or ended before it had written anything, has taken nothing.
  if (await isEmpty(redis)) return null;
  if (marked === "demo" || marked === "real") return marked;
  return (await isDemos(redis)) ? "demo" : "real";
}

async function isEmpty(redis: Redis): Promise<boolean> {
  for (const kind of ["company", "courier", "account"] as const) {
    if ((await entityIds(redis, kind)).length > 0) return false;
  }
  return true;
}

/** Of a store without a mark, which an earlier version has written: the demo's if it has the demo's companies and no others. */
async function isDemos(redis: Redis): Promise<boolean> {
  const { companies, hasDemoKey } = await demoParts(redis);
  return hasDemoKey && companies.every((code) => isDemoCompany(code));
}

const isDemoCompany = (code: string) => DEMO_COMPANIES.some((one) => one === code);

async function demoParts(redis: Redis) {
  const companies = (await allEntities(redis, "company")).map(({ code }) => code);
  const hashes = new Set(Object.values(DEMO_API_KEYS).map(hashToken));
  const keys = await allEntities(redis, "apiKey");
  return { companies, hasDemoKey: keys.some(({ hash }) => hashes.has(hash)) };
}

/** An earlier version may have run the demo on real data. */
async function warnAboutDemo(redis: Redis, log: Log): Promise<void> {
  const { companies, hasDemoKey } = await demoParts(redis);
  const demos = companies.filter(isDemoCompany);
  if (!hasDemoKey || demos.length === 0) return;
  log.warn(
    { companies: demos },
    "companies of the demo, whose keys are public, stand among the real ones: delete them",
  );
}

/**
 * Before the first step of a reset: until its last one, no start is taken.
 * @returns false for an empty store, which needs none
 * @throws {WrongStore} for real data
 */
export async function beginEmptying(redis: Redis, place: string): Promise<boolean> {
  const found = await kindOf(redis);
  if (found === null) return false;
  if (found === "real") {
    throw new WrongStore(`${place} holds real data, which --reset-demo never removes.`);
  }
  await redis.hSet(SYSTEM_KEY, FIELD, EMPTYING);
  return true;
}

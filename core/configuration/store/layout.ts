/**
 * The version of the store's layout: how keys are named and values are written. Whichever process starts first with a newer
 * version migrates the store forward, under a lock, in small steps whose progress is stored: another process continues
 * where a killed one stopped. Processes of the version before may keep running, unless a migration says otherwise.
 *
 * | Field      | Holds                                                                                              |
 * |------------|----------------------------------------------------------------------------------------------------|
 * | `layout`   | the layout that the store has (JSON: see `Layout`)                                                 |
 * | `partitions` | how many partitions it has, and the stride of its ids (`partitioning.ts`)                        |
 */
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { KEYRING_KEY, LAYOUT_KEY, LAYOUT_LOCK_KEY } from "#core/platform/redis/keys.ts";
import { type Lock, type LockTerms, takeLock } from "#core/platform/redis/lock.ts";
import { swapField } from "#core/platform/redis/swap-field.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { KEY_USER_LIFE_MS, keyUsers } from "./keyring.ts";
import { LayoutRefused } from "./layout-refused.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";

const FIELD = "layout";
const LOCK: LockTerms = { leaseMs: 10_000, waitLimitMs: 1_000 };
const LOOK_EVERY_MS = 500;
/** A process that was killed still counts as alive for a while. */
export const OLD_PROCESSES_LIMIT_MS = limit(
  KEY_USER_LIFE_MS + 5_000,
  "wait of a migration for processes that are too old",
  "refused, listing those processes",
);

interface Layout {
  readonly version: number;
  readonly oldest: number;
  /** Where the migration to the next version continues; "" = it has not begun. */
  readonly cursor: string;
}

/** From this layout on processes ask the store how many partitions it has. */
const PARTITIONS_CHOSEN = 3;

/** The layout of stores from before they were numbered. */
const FIRST: Layout = { version: 1, oldest: 1, cursor: "" };

/** The layout that this version of Waybill reads and writes. */
export const LAYOUT = newestOf(MIGRATIONS).version;

/**
 * Brings the store to the layout of this version, or waits until another process has.
 * @param migrations in the order of their versions, without gaps
 * @throws {LayoutRefused} for a store that is too new, or in use by processes that are too old
 */
export async function migrateStore(
  redis: Redis,
  log: Log,
  migrations: readonly Migration[] = MIGRATIONS,
  waitLimitMs = OLD_PROCESSES_LIMIT_MS,
): Promise<void> {
  const wanted = newestOf(migrations).version;
  let isWaiting = false;
  for (;;) {
    const layout = await checkLayout(redis, migrations);
    if (layout.version >= wanted) return;
    const lock = await takeLock(redis, LAYOUT_LOCK_KEY, LOCK);
    if (lock === null) {
      if (!isWaiting) log.info({ to: wanted }, "another process migrates the store; waiting");
      isWaiting = true;
      continue;
    }
    try {
      const current = await checkLayout(redis, migrations);
      const next = migrations.find(({ version }) => version === current.version + 1);
      if (next !== undefined) await migrate(redis, log, current, next, { waitLimitMs, ...lock });
    } finally {
      await lock.release();
    }
  }
}

/**
 * Read again once other processes can see this one: a migration that begins in between refuses one of the two.
 * @throws {LayoutRefused}
 */
export async function checkLayout(redis: Redis, migrations = MIGRATIONS): Promise<Layout> {
  const newest = newestOf(migrations);
  const layout = await readLayout(redis, newest);
  if (newest.version >= layout.oldest) return layout;
  throw new LayoutRefused(
    `The store belongs to a newer version of Waybill: it needs layout ${layout.oldest} or newer, and this version has layout ${newest.version}. ` +
      "Start the newer version, or restore a backup from before the upgrade.",
  );
}

interface Terms extends Pick<Lock, "assertHeld"> {
  readonly waitLimitMs: number;
}

async function migrate(
  redis: Redis,
  log: Log,
  from: Layout,
  { version, oldest, step }: Migration,
  { assertHeld, waitLimitMs }: Terms,
): Promise<void> {
  let at: Layout = { ...from, oldest: Math.max(from.oldest, oldest) };
  // From now on a process that is too old does not start.
  if (!(await replaceLayout(redis, from, at))) return;
  try {
    await oldProcessesEnd(redis, oldest, waitLimitMs);
  } catch (error) {
    await replaceLayout(redis, at, from);
    throw error;
  }
  log.info({ from: from.version, to: version, cursor: from.cursor }, "migrating the store");
  for (;;) {
    await assertHeld();
    const cursor = await step(redis, at.cursor);
    const next = cursor === null ? { ...at, version, cursor: "" } : { ...at, cursor };
    // Otherwise another process has taken over: it continues, and this one looks again.
    if (!(await replaceLayout(redis, at, next))) return;
    at = next;
    if (cursor === null) break;
  }
  log.info({ from: from.version, to: version }, "the store is migrated");
}

function replaceLayout(redis: Redis, from: Layout, to: Layout): Promise<boolean> {
  const change = { from: JSON.stringify(from), to: JSON.stringify(to) };
  return swapField(redis, LAYOUT_KEY, FIELD, change);
}

function newestOf(migrations: readonly Migration[]): Layout {
  const { version, oldest } = migrations.at(-1) ?? FIRST;
  return { version, oldest, cursor: "" };
}

/**
 * An empty store begins with the layout of whoever starts first. Its number of partitions is chosen then: processes that do not ask
 * for it may not join.
 */
async function readLayout(redis: Redis, newest: Layout): Promise<Layout> {
  const known = await redis.hGet(LAYOUT_KEY, FIELD);
  if (known) return JSON.parse(known);
  const isEmpty = (await redis.exists(KEYRING_KEY)) === 0;
  const oldest = Math.min(newest.version, Math.max(newest.oldest, PARTITIONS_CHOSEN));
  const own = isEmpty ? { ...newest, oldest } : FIRST;
  await redis.hSetNX(LAYOUT_KEY, FIELD, JSON.stringify(own));
  return readLayout(redis, newest);
}

/** @throws {LayoutRefused} if they are still alive after the wait */
async function oldProcessesEnd(redis: Redis, oldest: number, waitLimitMs: number): Promise<void> {
  const untilMs = Date.now() + waitLimitMs;
  for (;;) {
    const users = await keyUsers(redis, "list");
    const old = users.filter(({ layout = FIRST.version }) => layout < oldest);
    if (old.length === 0) return;
    if (Date.now() > untilMs) {
      const names = old.map((one) => one.process).join(", ");
      throw new LayoutRefused(
        `This version changes the store in a way that running processes of an older version cannot follow: stop ${names}, then start again.`,
      );
    }
    await Bun.sleep(LOOK_EVERY_MS);
  }
}

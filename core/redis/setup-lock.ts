/** One writer of the configuration at a time: setup files and panel calls of all processes. */
import { newToken } from "#core/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import { SETUP_LOCK_KEY } from "./keys.ts";
import lockSource from "./scripts/lock.lua" with { type: "text" };

const lockScript = script(lockSource);

/** A holder that dies is waited for this long; one that lives renews in time. */
const LOCK_MS = 5_000;
const RENEW_EVERY_MS = 1_500;
const LOCK_RETRY_MS = 100;

/** Reading, changing and saving an entity inside `work` loses no other writer's change. */
export async function underSetupLock<T>(redis: Redis, work: () => Promise<T>): Promise<T> {
  const owner = newToken("");
  while ((await redis.set(SETUP_LOCK_KEY, owner, { NX: true, PX: LOCK_MS })) === null) {
    await Bun.sleep(LOCK_RETRY_MS);
  }
  const change = (what: "renew" | "release") =>
    run(redis, lockScript, [SETUP_LOCK_KEY], [owner, what, String(LOCK_MS)]);
  const timer = setInterval(() => void change("renew").catch(() => {}), RENEW_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    await change("release").catch(() => {});
  }
}

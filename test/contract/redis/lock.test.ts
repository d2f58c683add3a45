/** Locks: one holder at a time, who never releases another's and notices before it writes that its lease has ended. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { CompanyEntity } from "#core/configuration/rules/entities.ts";
import {
  bumpVersion,
  readEntity,
  removeEntity,
  saveEntity,
} from "#core/configuration/store/entities.ts";
import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
import { lockConfirmation } from "#core/merchants/store/labels.ts";
import { createLog } from "#core/platform/process/log.ts";
import { connectRedis, type Redis } from "#core/platform/redis/client.ts";
import {
  companyKeys,
  companyPartition,
  lockQueueKeys,
  REMAP_KEYS,
  SETUP_LOCK_KEY,
  webhookKeys,
} from "#core/platform/redis/keys.ts";
import {
  LOCK_WAITERS,
  type Lock,
  LockLost,
  PARTY_WAITERS,
  takeLock,
  WAITER_LOST_MS,
} from "#core/platform/redis/lock.ts";
import {
  announceRemap,
  finishRemap,
  NO_PROGRESS,
  readRemap,
  saveProgress,
  takeRemapLease,
} from "#core/statuses/store/remaps.ts";
import { type Alert, claimAlert, readAlerts } from "#core/webhooks/store/alerts.ts";
import { eventually } from "#test/support/eventually.ts";
import { startTestRedis, type TestServer } from "#test/support/servers/servers.ts";

const KEY = "waybill:test-lock";
const TERMS = { leaseMs: 400, waitLimitMs: 0 };
const OTHER = "another process";
const COMPANY: CompanyEntity = {
  id: 7,
  code: "acme",
  name: "Acme",
  language: "it",
  seatPostcode: null,
  products: [],
  setupSaid: {},
  closedAtMs: 0,
};
/** Works under the set-up lock and is held up in the middle until a line comes. */
const HELD_UP = `
  import { createLog } from "#core/platform/process/log.ts";
  import { connectRedis } from "#core/platform/redis/client.ts";
  import { saveEntity } from "#core/configuration/store/entities.ts";
  import { underSetupLock } from "#core/configuration/store/setup-lock.ts";
  const redis = await connectRedis(process.argv[1], createLog("silent"));
  const outcome = await underSetupLock(redis, async () => {
    process.stdout.write("holds it\\n");
    for await (const _ of console) break;
    await saveEntity(redis, "company", "held-up", JSON.parse(process.argv[2]));
  }).then(() => "saved", (error) => error.code);
  process.stdout.write(outcome + "\\n");
  process.exit(0);
`;

let server: TestServer & { readonly address: string };
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = await connectRedis(server.address, createLog("silent"));
});

afterEach(() => redis.flushAll());

afterAll(async () => {
  redis.destroy();
  await server.stop();
});

async function taken(promise: Promise<Lock | null>): Promise<Lock> {
  const lock = await promise;
  if (lock === null) throw new Error("the lock is held");
  return lock;
}

describe("a lock", () => {
  test("has one holder at a time, however many want it at once", async () => {
    const locks = await Promise.all(Array.from({ length: 20 }, () => takeLock(redis, KEY, TERMS)));
    expect(locks.filter((lock) => lock !== null)).toHaveLength(1);
    await Promise.all(locks.map((lock) => lock?.release()));
    await (await taken(takeLock(redis, KEY, TERMS))).release();
  });

  test("lasts as long as its holder lives, whatever its lease", async () => {
    // Long enough for a machine that is busy with something else for some seconds.
    const leaseMs = 6_000;
    const lock = await taken(takeLock(redis, KEY, { ...TERMS, leaseMs }));
    const from = performance.now();
    while (performance.now() - from < 1.5 * leaseMs) {
      expect(await takeLock(redis, KEY, TERMS)).toBeNull();
      await lock.assertHeld();
    }
    await lock.release();
  });

  test("of a process that was killed is free once its lease has ended", async () => {
    await redis.set(KEY, OTHER, { PX: 60_000 });
    expect(await takeLock(redis, KEY, TERMS)).toBeNull();
    await redis.pExpire(KEY, TERMS.leaseMs);
    const lock = await taken(takeLock(redis, KEY, { ...TERMS, waitLimitMs: 10_000 }));
    await lock.release();
  });

  test("is waited for until the limit and no longer", async () => {
    const waitLimitMs = 300;
    const lock = await taken(takeLock(redis, KEY, { ...TERMS, leaseMs: 10_000 }));
    const from = performance.now();
    expect(await takeLock(redis, KEY, { ...TERMS, waitLimitMs })).toBeNull();
    expect(performance.now() - from).toBeGreaterThanOrEqual(waitLimitMs);
    const waiting = takeLock(redis, KEY, { ...TERMS, waitLimitMs: 10_000 });
    await lock.release();
    await (await taken(waiting)).release();
  });

  test("that was lost is noticed by its former holder, even if it is free again", async () => {
    for (const next of [OTHER, null]) {
      const lock = await taken(takeLock(redis, KEY, TERMS));
      await (next === null ? redis.del(KEY) : redis.set(KEY, next));
      await eventually(() => isLost(lock), "its holder notices");
      await lock.release();
      expect(await redis.getDel(KEY)).toBe(next);
    }
  });

  test("may be kept for a while when it is released", async () => {
    const lock = await taken(takeLock(redis, KEY, { ...TERMS, leaseMs: 10_000 }));
    await lock.releaseAfter(60_000);
    await lock.release();
    expect(await redis.pTTL(KEY)).toBeGreaterThan(50_000);
  });
});

describe("those who wait for a lock", () => {
  const WAITING = { leaseMs: 60_000, waitLimitMs: 120_000 };
  const { waiting, alive } = lockQueueKeys(KEY);
  const waitUntil = (count: number) =>
    eventually(async () => (await redis.zCard(waiting)) === count, `${count} wait`);

  test("are served in the order in which they came", async () => {
    const first = await taken(takeLock(redis, KEY, WAITING));
    const served: number[] = [];
    const waiters: Promise<void>[] = [];
    for (let turn = 0; turn < 12; turn += 1) {
      waiters.push(
        taken(takeLock(redis, KEY, WAITING)).then(async (lock) => {
          served.push(turn);
          await lock.release();
        }),
      );
      await waitUntil(turn + 1);
    }
    await first.release();
    await Promise.all(waiters);
    expect(served).toEqual(Array.from({ length: 12 }, (_, turn) => turn));
    expect(await redis.exists([waiting, alive])).toBe(0);
  });

  test("are ahead of whoever comes later, even if the lock is free at that moment", async () => {
    await redis.zAdd(waiting, { score: 1, value: "first" });
    await redis.zAdd(alive, { score: Date.now() + 600_000, value: "first" });
    expect(await takeLock(redis, KEY, TERMS)).toBeNull();
    const second = takeLock(redis, KEY, WAITING);
    await waitUntil(2);
    expect(await redis.exists(KEY)).toBe(0);
    await redis.zRem(waiting, "first");
    await (await taken(second)).release();
  });

  test("are not held up by one ahead of them that has died", async () => {
    const lock = await taken(takeLock(redis, KEY, WAITING));
    const nowMs = Date.now();
    await redis.zAdd(waiting, { score: 1, value: "dead" });
    await redis.zAdd(alive, { score: nowMs + WAITER_LOST_MS, value: "dead" });
    const next = takeLock(redis, KEY, WAITING);
    await waitUntil(2);
    await lock.release();
    await (await taken(next)).release();
    expect(await redis.zScore(waiting, "dead")).toBeNull();
  });

  test("are out of the queue once they have given up", async () => {
    const lock = await taken(takeLock(redis, KEY, WAITING));
    expect(await takeLock(redis, KEY, { ...WAITING, waitLimitMs: 100 })).toBeNull();
    expect(await redis.exists([waiting, alive])).toBe(0);
    await lock.release();
  });

  test(`are ${PARTY_WAITERS} at most of one party; one more is told at once that others are at it`, async () => {
    const lock = await taken(takeLock(redis, KEY, WAITING));
    const members = Array.from({ length: PARTY_WAITERS - 1 }, (_, at) => `company acme:${at}`);
    const untilMs = Date.now() + 600_000;
    for (const [at, value] of members.entries()) {
      await redis.zAdd(waiting, { score: at + 1, value });
      await redis.zAdd(alive, { score: untilMs, value });
    }
    const ofCompany = { ...WAITING, party: "company acme" };
    const last = takeLock(redis, KEY, ofCompany);
    await waitUntil(PARTY_WAITERS);
    expect(await takeLock(redis, KEY, ofCompany)).toBeNull();
    const other = takeLock(redis, KEY, { ...WAITING, party: "company beta" });
    await waitUntil(PARTY_WAITERS + 1);
    await redis.zRem(waiting, members);
    await lock.release();
    const first = await taken(Promise.race([last, other]));
    await first.release();
    for (const one of [last, other]) await (await taken(one)).release();
  });

  test(`are ${LOCK_WAITERS} at most; one more is told at once that others are at it`, async () => {
    const lock = await taken(takeLock(redis, KEY, WAITING));
    const others = Array.from({ length: LOCK_WAITERS - 1 }, (_, at) => `waiter ${at}`);
    const untilMs = Date.now() + 600_000;
    await redis.zAdd(
      waiting,
      others.map((value, at) => ({ score: at + 1, value })),
    );
    await redis.zAdd(
      alive,
      others.map((value) => ({ score: untilMs, value })),
    );
    const last = takeLock(redis, KEY, WAITING);
    await waitUntil(LOCK_WAITERS);
    expect(await takeLock(redis, KEY, WAITING)).toBeNull();
    await redis.zRem(waiting, others);
    await lock.release();
    await (await taken(last)).release();
  });
});

async function isLost(lock: Lock): Promise<boolean> {
  const error = await lock.assertHeld().catch((reason: unknown) => reason);
  return error instanceof LockLost;
}

/** As `redis`, but another process takes the lock over right after it was read, as it may at any moment. */
function takenOverAfterReading(key: string) {
  let isTakenOver = false;
  const client: Redis = new Proxy(redis, {
    get(target, name) {
      const value = Reflect.get(target, name);
      if (name !== "get") return typeof value === "function" ? value.bind(target) : value;
      return async (asked: string) => {
        const read = await target.get(asked);
        if (asked === key) await target.set(key, OTHER);
        isTakenOver = true;
        return read;
      };
    },
  });
  return { client, isTakenOver: () => isTakenOver };
}

async function anAlert(): Promise<Alert> {
  const entry = { endpointId: "ep_1", kind: "warning", sinceMs: "0", atMs: "0" };
  await redis.xAdd(webhookKeys(0).alerts, "*", entry);
  const [alert] = await readAlerts(redis, 1);
  if (!alert) throw new Error("no alert");
  return alert;
}

describe("nobody releases a lock that is another's by now", () => {
  const owner = { companyId: 7, channelId: 3 };
  const confirmKey = companyKeys(companyPartition(7)).confirmLock(3, "GLS_ITA");

  test("of a confirmation of labels", async () => {
    const { client, isTakenOver } = takenOverAfterReading(confirmKey);
    const lock = await taken(lockConfirmation(client, owner, "GLS_ITA", TERMS));
    await lock.release();
    expect(await redis.get(confirmKey)).toBe(isTakenOver() ? OTHER : null);
    const late = await taken(lockConfirmation(redis, owner, "GLS_ITA", TERMS));
    await redis.set(confirmKey, OTHER);
    await late.release();
    expect(await redis.get(confirmKey)).toBe(OTHER);
  });

  test("of the remaps", async () => {
    const lock = await taken(takeRemapLease(redis));
    await redis.set(REMAP_KEYS.lease, OTHER);
    await lock.release();
    expect(await redis.get(REMAP_KEYS.lease)).toBe(OTHER);
  });

  test("of an alert, nor puts it off", async () => {
    const alert = await anAlert();
    const key = webhookKeys(0).alertClaim(alert.id);
    for (const end of ["release", "releaseAfter"] as const) {
      await redis.del(key);
      const claim = await taken(claimAlert(redis, alert));
      await redis.set(key, OTHER, { PX: 60_000 });
      await claim[end](1);
      expect(await redis.get(key)).toBe(OTHER);
      expect(await redis.pTTL(key)).toBeGreaterThan(50_000);
    }
  });
});

const yes = () => true;
const no = () => false;

describe("a holder whose lease has ended writes nothing more", () => {
  test("of the configuration, though it was only held up", async () => {
    const child = Bun.spawn(
      [process.execPath, "-e", HELD_UP, server.address, JSON.stringify(COMPANY)],
      {
        stdin: "pipe",
        stdout: "pipe",
        stderr: "inherit",
      },
    );
    const output = child.stdout.getReader();
    await output.read();
    child.kill("SIGSTOP");
    await underSetupLock(redis, async () => {
      await saveEntity(redis, "company", "next", { ...COMPANY, id: 8 });
      child.kill("SIGCONT");
      child.stdin.write("\n");
      child.stdin.end();
      const { value } = await output.read();
      expect(new TextDecoder().decode(value).trim()).toBe("CONFIGURATION_BUSY");
    });
    await child.exited;
    expect(await readEntity(redis, "company", "held-up")).toBeNull();
    expect(await readEntity(redis, "company", "next")).toMatchObject({ id: 8 });
  }, 300_000);

  test.each([
    ["an entity", () => saveEntity(redis, "company", "late", COMPANY)],
    ["a removal", () => removeEntity(redis, "company", "early")],
    ["a version", () => bumpVersion(redis)],
    [
      "a remap",
      () => announceRemap(redis, { courier: "GLS_ITA", by: "x", entries: [], reverts: null }, 0),
    ],
  ])("%s", async (_, write) => {
    await saveEntity(redis, "company", "early", COMPANY);
    const work = underSetupLock(redis, async () => {
      await redis.set(SETUP_LOCK_KEY, OTHER, { PX: 60_000 });
      await eventually(() => write().then(no, yes), "its holder notices");
      const size = await redis.dbSize();
      await write().catch(() => {});
      expect(await redis.dbSize()).toBe(size);
      await write();
    });
    await expect(work).rejects.toMatchObject({ status: 503, code: "CONFIGURATION_BUSY" });
    expect(await redis.get(SETUP_LOCK_KEY)).toBe(OTHER);
  });

  test("of a remap: neither its progress nor its end", async () => {
    const order = { courier: "GLS_ITA", by: "operator", entries: [], reverts: null };
    const id = await announceRemap(redis, order, 0);
    const lease = await taken(takeRemapLease(redis));
    await saveProgress(redis, lease, id, { ...NO_PROGRESS, examined: 1 });
    await redis.set(REMAP_KEYS.lease, OTHER);
    const late = saveProgress(redis, lease, id, { ...NO_PROGRESS, examined: 2 });
    await expect(late).rejects.toBeInstanceOf(LockLost);
    await expect(finishRemap(redis, lease, id, 1)).rejects.toBeInstanceOf(LockLost);
    const remap = await readRemap(redis, id);
    expect(remap).toMatchObject({ state: "announced", progress: { examined: 1 } });
    await lease.release();
  });

  test("a change of the configuration gets 503 with Retry-After while others keep the lock", async () => {
    await redis.set(SETUP_LOCK_KEY, OTHER);
    const refused = await underSetupLock(redis, async () => {}, TERMS).catch(
      (error: unknown) => error,
    );
    expect(refused).toMatchObject({ status: 503, headers: { "retry-after": "5" } });
  });
});

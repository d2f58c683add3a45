/**
 * Browser sessions of the control panel. Each is a record, so that logging out also ends it for anyone who copied the cookie. Only
 * the cookie contains the id: the key is a hash of it.
 */
import { randomBytes } from "node:crypto";
import { type Redis, run, script } from "#core/platform/redis/client.ts";
import { sessionKey } from "#core/platform/redis/keys.ts";
import { isShardUnavailable } from "#core/platform/redis/unavailable-shard.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { hashToken } from "#core/platform/secrets/secrets.ts";
import endSource from "./end-session.lua" with { type: "text" };
import openSource from "./open-session.lua" with { type: "text" };

const openScript = script(openSource);
const endScript = script(endSource);

/** A working day. */
export const SESSION_MS = limit(12 * 3_600_000, "session of the panel", "log in again");
const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

export interface Session {
  /** What the session is bound to: if it changes, the session is over. */
  readonly credential: string;
  /** Null = the operator of `PANEL_TOKEN`. */
  readonly accountId: string | null;
}

/** Ids tried while a shard is unavailable: among this many, some belong to another shard. */
const IDS_TRIED = 16;

/** @returns the id */
export async function openSession(redis: Redis, session: Session, nowMs: number): Promise<string> {
  const record = JSON.stringify({ ...session, untilMs: nowMs + SESSION_MS });
  for (let tries = 1; ; tries += 1) {
    const id = randomBytes(ID_BYTES).toString("base64url");
    try {
      await run(redis, openScript, [sessionKey(hashToken(id))], [record, String(SESSION_MS)]);
      return id;
    } catch (error) {
      if (tries === IDS_TRIED || !isShardUnavailable(error, redis)) throw error;
    }
  }
}

/**
 * @param id the value of the cookie, valid or not
 * @returns null if it is over; its credential has yet to be compared
 */
export async function readSession(
  redis: Redis,
  id: string,
  nowMs: number,
): Promise<Session | null> {
  if (!ID.test(id)) return null;
  const text = await redis.get(sessionKey(hashToken(id)));
  if (text === null) return null;
  const { credential, accountId = null, untilMs } = JSON.parse(text);
  return nowMs < untilMs ? { credential, accountId } : null;
}

/** Ending an expired or unknown session does nothing. */
export async function endSession(redis: Redis, id: string): Promise<void> {
  if (ID.test(id)) await run(redis, endScript, [sessionKey(hashToken(id))], []);
}

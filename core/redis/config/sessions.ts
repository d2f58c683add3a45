/**
 * Operators' browser sessions. Each is a record, so that logging out also ends it for anyone who copied the cookie. Only
 * the cookie contains the id: the key is a hash of it.
 */
import { randomBytes } from "node:crypto";
import { type Redis, run, script } from "#core/redis/client/client.ts";
import { sessionKey } from "#core/redis/client/keys.ts";
import { hashToken } from "#core/secrets.ts";
import endSource from "./end-session.lua" with { type: "text" };
import openSource from "./open-session.lua" with { type: "text" };

const openScript = script(openSource);
const endScript = script(endSource);

/** A working day. */
export const SESSION_MS = 12 * 3_600_000;
const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

/** The credential that the session is bound to: if it changes, the session is over. */
type Credential = string;

/** @returns the id */
export async function openSession(
  redis: Redis,
  credential: Credential,
  nowMs: number,
): Promise<string> {
  const id = randomBytes(ID_BYTES).toString("base64url");
  const record = JSON.stringify({ credential, untilMs: nowMs + SESSION_MS });
  await run(redis, openScript, [sessionKey(hashToken(id))], [record, String(SESSION_MS)]);
  return id;
}

/** @param id the value of the cookie, valid or not */
export async function isSessionOpen(
  redis: Redis,
  id: string,
  credential: Credential,
  nowMs: number,
): Promise<boolean> {
  if (!ID.test(id)) return false;
  const text = await redis.get(sessionKey(hashToken(id)));
  if (text === null) return false;
  const record = JSON.parse(text);
  return record.credential === credential && nowMs < record.untilMs;
}

/** Ending an expired or unknown session does nothing. */
export async function endSession(redis: Redis, id: string): Promise<void> {
  if (ID.test(id)) await run(redis, endScript, [sessionKey(hashToken(id))], []);
}

/**
 * Sessions of operators in a browser. Each is a record, so that logging out ends it also for whoever has copied the cookie.
 * The id is known to the cookie alone: the key holds its hash.
 */
import { randomBytes } from "node:crypto";
import { hashToken } from "#core/secrets.ts";
import { type Redis, run, script } from "./client.ts";
import { sessionKey } from "./keys.ts";
import endSource from "./scripts/end-session.lua" with { type: "text" };
import openSource from "./scripts/open-session.lua" with { type: "text" };

const openScript = script(openSource);
const endScript = script(endSource);

/** A working day. */
export const SESSION_MS = 12 * 3_600_000;
const ID_BYTES = 32;
const ID = /^[\w-]{43}$/;

/** What a session stands on: when this changes, the session is over. */
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

/** @param id whatever the cookie holds */
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

/** Ending one that is over, or none, changes nothing. */
export async function endSession(redis: Redis, id: string): Promise<void> {
  if (ID.test(id)) await run(redis, endScript, [sessionKey(hashToken(id))], []);
}

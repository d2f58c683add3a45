/** Passwords of the control panel's accounts: argon2id, computed off the event loop, a few at a time. */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";

/** OWASP's first choice: 19 MiB and two passes, about 30 ms of one core. */
const ARGON = { algorithm: "argon2id", memoryCost: 19_456, timeCost: 2 } as const;
/** Code points. */
const PASSWORD_LEAST = limit(12, "characters of a password, at least", "422");
/** More are no safer, and have to be hashed. */
const PASSWORD_MOST = limit(200, "characters of a password, at most", "422");
/** Computed at the same time by a process, so that log-ins take neither all cores nor much memory. */
const HASHES_AT_ONCE = limit(2, "passwords computed by a process at the same time", "they wait");
const HASHES_WAITING = limit(
  100,
  "passwords that wait for their turn to be computed",
  "503 with `Retry-After`",
);

/** A new password; one that is shown to log in may be any text. */
export const NewPassword = Type.String({
  maxLength: PASSWORD_MOST,
  pattern: `^(?:[^\\ud800-\\udfff]|[\\ud800-\\udbff][\\udc00-\\udfff]){${PASSWORD_LEAST},}$`,
  description: `${PASSWORD_LEAST} to ${PASSWORD_MOST} characters`,
});

let running = 0;
const waiting: Array<() => void> = [];

export function hashPassword(password: string): Promise<string> {
  return inTurn(() => Bun.password.hash(typed(password), ARGON));
}

let nobodys: Promise<string> | null = null;

/**
 * @param hash empty = there is no such account, or it has no password: takes as long as a wrong password
 * @throws {Problem} 503
 */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  nobodys ??= Bun.password.hash("a password that nobody has", ARGON);
  const known = hash === "" ? await nobodys : hash;
  const isRight = await inTurn(() => Bun.password.verify(typed(password), known));
  return isRight && hash !== "";
}

/** Keyboards write the same letter in several ways. */
function typed(password: string): string {
  return password.normalize("NFKC");
}

/** @throws {Problem} 503 when too many wait already */
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (running >= HASHES_AT_ONCE) {
    if (waiting.length >= HASHES_WAITING) throw busy();
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else {
    running += 1;
  }
  try {
    return await work();
  } finally {
    const next = waiting.shift();
    if (next) next();
    else running -= 1;
  }
}

function busy(): Problem {
  return new Problem(503, "LOGINS_BUSY", "Too many log-ins at the same time. Send it again.", {
    headers: { "retry-after": "5" },
  });
}

/**
 * A loopback port that nobody listens on at this moment, another one with every call. Below those that the system gives to
 * outgoing connections (from 32,768 on): one of these could take it before its server does, or while that is started again.
 * It is kept for this process until its end, so that test processes side by side do not take each other's.
 */
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { tryLock } from "#core/platform/process/file-lock.ts";

const [LOWEST, HIGHEST] = [20_000, 32_000];
const LOCKS = join(tmpdir(), `waybill-ports-${userInfo().uid}`);

let next = LOWEST + Math.floor(Math.random() * (HIGHEST - LOWEST));

export async function freePort(): Promise<number> {
  mkdirSync(LOCKS, { recursive: true });
  for (;;) {
    const port = next;
    next = port < HIGHEST ? port + 1 : LOWEST;
    const lock = tryLock(join(LOCKS, String(port)), "a");
    if (lock === null) continue;
    if (await isFree(port)) return port;
    lock.release();
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

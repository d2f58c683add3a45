/**
 * A loopback port that nobody listens on at this moment, another one with every call. Below those that the system gives to
 * outgoing connections (from 32,768 on): one of these could take it before its server does, or while that is started again.
 * Each test process has a block of its own, so that suites which run side by side do not take each other's.
 */
import { mkdirSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { tryLock } from "#core/file-lock.ts";

const LOWEST = 20_000;
/** Many more than a process has in use at once: one that is free for a moment is not soon given to another. */
const BLOCK = 600;
const BLOCKS = 20;

const lowest = LOWEST + takeBlock() * BLOCK;
let next = lowest;

export async function freePort(): Promise<number> {
  for (;;) {
    const port = next;
    next = port + 1 < lowest + BLOCK ? port + 1 : lowest;
    if (await isFree(port)) return port;
  }
}

/** Locked until this process ends. */
function takeBlock(): number {
  const folder = join(tmpdir(), `waybill-ports-${userInfo().uid}`);
  mkdirSync(folder, { recursive: true });
  const first = Math.floor(Math.random() * BLOCKS);
  for (let tried = 0; tried < BLOCKS; tried += 1) {
    const block = (first + tried) % BLOCKS;
    if (tryLock(join(folder, String(block)), "a")) return block;
  }
  throw new Error(`${BLOCKS} test processes run already: no block of ports is left`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

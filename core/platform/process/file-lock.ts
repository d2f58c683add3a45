/**
 * Advisory kernel locks on files and folders (`flock`). A lock is held as long as any process, such as a child that
 * inherited it, has its descriptor open; it is released when the last of them closes it or exits, for whatever reason.
 */
import { dlopen } from "bun:ffi";
import { closeSync, fstatSync, openSync, statSync } from "node:fs";

/** musl can be loaded under the first name too. */
const C_LIBRARY = process.platform === "darwin" ? "libSystem.B.dylib" : "libc.so.6";
/** `LOCK_EX | LOCK_NB`. */
const EXCLUSIVE_WITHOUT_WAITING = 2 | 4;
const POLL_MS = 20;

let flock: ((fd: number, operation: number) => number) | null = null;

function loadFlock() {
  const { symbols } = dlopen(C_LIBRARY, { flock: { args: ["i32", "i32"], returns: "i32" } });
  return symbols.flock;
}

export interface FileLock {
  /** A child process that inherits it keeps the lock after `release`. */
  readonly fd: number;
  readonly release: () => void;
}

/**
 * @param flags as for `open`: "a" creates a missing file, "r" opens an existing file or folder
 * @returns null if the lock is held elsewhere
 * @throws what opening it throws
 */
export function tryLock(path: string, flags: "a" | "r"): FileLock | null {
  flock ??= loadFlock();
  for (;;) {
    const fd = openSync(path, flags, 0o600);
    if (flock(fd, EXCLUSIVE_WITHOUT_WAITING) !== 0) {
      closeSync(fd);
      return null;
    }
    // A file that was deleted or replaced between opening and locking would be locked invisibly to everyone else.
    if (isAt(path, fd)) return { fd, release: () => closeSync(fd) };
    closeSync(fd);
  }
}

function isAt(path: string, fd: number): boolean {
  const [held, found] = [fstatSync(fd), statSync(path, { throwIfNoEntry: false })];
  return found?.ino === held.ino && found.dev === held.dev;
}

/** @returns null if the lock is held elsewhere for `limitMs` */
export async function waitForLock(path: string, limitMs: number): Promise<FileLock | null> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const lock = tryLock(path, "a");
    if (lock !== null || performance.now() > deadline) return lock;
    await Bun.sleep(POLL_MS);
  }
}

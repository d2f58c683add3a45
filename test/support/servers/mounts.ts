/** Disks of their own under folders of the product, where the machine lets this process mount. */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A file grows by so much at a time, until it cannot. */
const PIECE_BYTES = 64 * 1024;

export interface TestDisk {
  /** Whatever is opened from now on is read-only. */
  readonly protect: () => void;
  readonly unprotect: () => void;
  /** Leaves no room. */
  readonly fill: () => Promise<void>;
  readonly empty: () => Promise<void>;
  readonly unmount: () => void;
}

function run(...command: string[]): boolean {
  return Bun.spawnSync(command, { stdout: "ignore", stderr: "ignore" }).exitCode === 0;
}

function must(...command: string[]): void {
  if (!run(...command)) throw new Error(`${command.join(" ")} failed`);
}

/** In namespaces of its own, so that asking leaves no trace. */
export function mayMount(): boolean {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return false;
  return (
    Bun.which("unshare") !== null && run("unshare", "-m", "mount", "-t", "tmpfs", "none", "/mnt")
  );
}

/** @param folder is made; nothing may be in it */
export async function mountDisk(folder: string, sizeMib: number): Promise<TestDisk> {
  await mkdir(folder, { recursive: true });
  must("mount", "-t", "tmpfs", "-o", `size=${sizeMib}m,mode=700`, "none", folder);
  const ballast = join(folder, "ballast");
  return {
    // A second mount in front of the first: one with open files cannot be turned read-only.
    protect() {
      must("mount", "--bind", folder, folder);
      must("mount", "-o", "remount,bind,ro", folder);
    },
    unprotect: () => must("umount", "-l", folder),
    async fill() {
      const piece = new Uint8Array(PIECE_BYTES);
      const fits = () =>
        writeFile(ballast, piece, { flag: "a" }).then(
          () => true,
          () => false,
        );
      while (await fits());
    },
    empty: () => rm(ballast),
    unmount: () => must("umount", "-l", folder),
  };
}

/**
 * The application in `panel/web` as files for browsers. Bun bundles it when the panel starts, and the result is kept under
 * `DATA_DIR`, named by everything that it is made of, so that a second start only reads it.
 */
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { Glob } from "bun";

const SOURCES = join(import.meta.dir, "web");
const LOCK_FILE = join(import.meta.dir, "..", "package-lock.json");
/** In an image and beside a binary the application is there already, and its sources are not. */
export const BUILT = "panel/web-built";
const ENTRY = "main.tsx";

export interface WebAsset {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  readonly type: string;
}

export interface WebBundle {
  /** By file name; names carry a hash of their content. */
  readonly assets: ReadonlyMap<string, WebAsset>;
  readonly script: string;
  readonly style: string;
}

let bundle: Promise<WebBundle> | null = null;

/** The roles of a process share one bundle. A failed one is tried again at the next call. */
export function webBundle(dataDir: string): Promise<WebBundle> {
  bundle ??= readOrBuild(join(dataDir, "panel-web")).catch((error: unknown) => {
    bundle = null;
    throw error;
  });
  return bundle;
}

async function readOrBuild(folder: string): Promise<WebBundle> {
  const built = join(import.meta.dir, basename(BUILT));
  if ((await readdir(built).catch(() => [])).length > 0) return read(built);
  const kept = join(folder, await keyOf());
  const files = await readdir(kept).catch(() => []);
  if (files.length === 0) {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await buildInto(folder, kept);
  }
  return read(kept);
}

/** Everything that the bundle is made of: the sources, the packages and the bundler. */
async function keyOf(): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256").update(Bun.version);
  hasher.update(await Bun.file(LOCK_FILE).bytes());
  const files = await Array.fromAsync(new Glob("**/*.{ts,tsx,css}").scan(SOURCES));
  for (const file of files.sort()) {
    hasher.update(file).update(await Bun.file(join(SOURCES, file)).bytes());
  }
  return hasher.digest("hex").slice(0, 16);
}

/** Built beside its place and moved there whole, so that nobody reads a half. */
async function buildInto(folder: string, kept: string): Promise<void> {
  const outdir = await mkdtemp(join(folder, "build-"));
  try {
    await buildWeb(outdir);
    // Somebody else may have been faster: theirs is the same.
    await rename(outdir, kept).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(outdir, { recursive: true, force: true });
  }
  for (const other of await readdir(folder)) {
    if (other !== basename(kept)) await rm(join(folder, other), { recursive: true, force: true });
  }
}

export async function buildWeb(outdir: string): Promise<void> {
  await Bun.build({
    entrypoints: [join(SOURCES, ENTRY)],
    outdir,
    target: "browser",
    splitting: true,
    minify: true,
    naming: {
      entry: "entry-[name]-[hash].[ext]",
      chunk: "[name]-[hash].[ext]",
      asset: "[name]-[hash].[ext]",
    },
    publicPath: "/assets/",
    define: { "process.env.NODE_ENV": '"production"' },
  });
}

async function read(folder: string): Promise<WebBundle> {
  const names = await readdir(folder);
  const assets = new Map<string, WebAsset>();
  for (const name of names) {
    const file = Bun.file(join(folder, name));
    const body = await file.bytes();
    assets.set(name, { body, gzip: Bun.gzipSync(body), type: file.type });
  }
  const entry = (ending: string) =>
    names.find((name) => name.startsWith("entry-main-") && name.endsWith(ending)) ?? "";
  return { assets, script: entry(".js"), style: entry(".css") };
}

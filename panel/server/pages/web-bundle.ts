/**
 * The application in `panel/web` as files for browsers. Bun bundles it when the panel starts, and the result is kept under
 * `DATA_DIR`, named by everything that it is made of, so that a second start only reads it.
 */
import { mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type BunPlugin, Glob } from "bun";
import { waitForLock } from "#core/platform/process/file-lock.ts";
import { ownFile } from "#core/platform/process/own-files.ts";
import { limit } from "#core/platform/schema/limit.ts";

const SOURCES = join(import.meta.dir, "../../web");
/** What the application uses of core, and what the bundler calls there. */
const SHARED = join(import.meta.dir, "../../../core");
const LOCK_FILE = join(import.meta.dir, "../../../package-lock.json");
/** In an image and beside a binary the application is there already, and its sources are not. */
export const BUILT = "panel/web-built";
const ENTRY = "main.tsx";
/** The styles of these come as their makers wrote them, those of the application's own files through the bundler. */
const STYLED = ["core", "dates", "charts", "notifications"] as const;
/** Of 11. The best takes two per cent off the size, and more than twice the time at the first start. */
const BROTLI_QUALITY = 5;
const TURN_LIMIT_MS = limit(
  60_000,
  "wait for another process that bundles the panel's web application",
  "the next visitor's request tries again",
);
const packed = { brotli: promisify(brotliCompress), gzip: promisify(gzip) };
const ENDINGS = { br: ".br", gzip: ".gz" } as const;
export type Coding = keyof typeof ENDINGS;

export interface WebAsset {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly coded: Readonly<Record<Coding, Uint8Array<ArrayBuffer>>>;
  readonly type: string;
}

export interface WebBundle {
  /** By file name; names carry a hash of their content. */
  readonly assets: ReadonlyMap<string, WebAsset>;
  readonly script: string;
  /** In the order in which they apply. */
  readonly styles: readonly string[];
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

/** One process at a time: the others wait for its bundle, and none removes what another one builds or reads. */
async function readOrBuild(folder: string): Promise<WebBundle> {
  const built = ownFile(BUILT);
  if ((await readdir(built).catch(() => [])).length > 0) return read(built);
  const kept = join(folder, await keyOf());
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const turn = await waitForLock(`${folder}.lock`, TURN_LIMIT_MS);
  if (turn === null) throw new Error(`another process has been building ${kept} for too long`);
  try {
    const files = await readdir(kept).catch(() => []);
    if (files.length === 0) await buildInto(folder, kept);
    return await read(kept);
  } finally {
    turn.release();
  }
}

/** Everything that the bundle is made of: the sources, the packages and the bundler. */
async function keyOf(): Promise<string> {
  const hasher = new Bun.CryptoHasher("sha256").update(Bun.version);
  hasher.update(await Bun.file(LOCK_FILE).bytes());
  for (const [folder, names] of [
    [SOURCES, "**/*.{ts,tsx,css}"],
    [SHARED, "{*/rules,platform/{schema,time}}/**/*.ts"],
  ] as const) {
    const files = await Array.fromAsync(new Glob(names).scan(folder));
    for (const file of files.sort()) {
      hasher.update(file).update(await Bun.file(join(folder, file)).bytes());
    }
  }
  return hasher.digest("hex").slice(0, 16);
}

/** Built beside its place and moved there whole: a process that is killed leaves no half. What others left goes. */
async function buildInto(folder: string, kept: string): Promise<void> {
  const outdir = await mkdtemp(join(folder, "build-"));
  await buildWeb(outdir);
  await rename(outdir, kept);
  for (const other of await readdir(folder)) {
    if (other !== basename(kept)) await rm(join(folder, other), { recursive: true, force: true });
  }
}

/**
 * The table component carries a container that the panel never shows (`panel/web/parts/scroll-table.tsx` is ours), and with
 * it all that places menus and pop-ups: 20 kB of the first page, gzipped.
 */
const withoutScrollContainer: BunPlugin = {
  name: "tables without a scroll container",
  setup(build) {
    build.onLoad({ filter: /\/TableScrollContainer\.mjs$/ }, () => ({
      contents: "export const TableScrollContainer = null;",
      loader: "js",
    }));
  },
};

export async function buildWeb(outdir: string): Promise<void> {
  const { outputs } = await Bun.build({
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
    plugins: [withoutScrollContainer],
  });
  const scripts = outputs.filter(({ path }) => path.endsWith(".js"));
  const style = await libraryStyle((await Promise.all(scripts.map((one) => one.text()))).join(""));
  await Bun.write(join(outdir, `libraries-${Bun.hash(style).toString(36)}.css`), style);
  for (const name of await readdir(outdir)) await pack(join(outdir, name));
}

/**
 * The styles of those components that the scripts name, in the order of the whole. The bundler would write each rule about
 * left and right once for every language that is read from the right: half as much again.
 */
async function libraryStyle(scripts: string): Promise<string> {
  const used = new Set(scripts.match(/\bm_[\da-f]+\b/g));
  const isUsed = (rules: string) => {
    const names = rules.match(/\.m_[\da-f]+\b/g);
    return names?.some((name) => used.has(name.slice(1))) ?? true;
  };
  const parts: string[] = [];
  for (const name of STYLED) {
    const whole = import.meta.resolve(`@mantine/${name}/styles.css`).replace("file://", "");
    const all = await Bun.file(whole).text();
    const folder = join(dirname(whole), "styles");
    const files = await readdir(folder).catch(() => []);
    if (files.length === 0) parts.push(all);
    const texts = files
      .filter((file) => file.endsWith(".css") && !file.endsWith(".layer.css"))
      .map(async (file) => (await Bun.file(join(folder, file)).text()).trim());
    const inOrder = (await Promise.all(texts)).toSorted(
      (one, other) => all.indexOf(one) - all.indexOf(other),
    );
    parts.push(...inOrder.filter(isUsed));
  }
  return parts.join("\n").replace(/\s+/g, " ");
}

/** Once, and well: the files are sent as they stand. */
async function pack(path: string): Promise<void> {
  const body = await Bun.file(path).bytes();
  const params = { [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY };
  const [br, gz] = await Promise.all([packed.brotli(body, { params }), packed.gzip(body)]);
  await Bun.write(path + ENDINGS.br, br);
  await Bun.write(path + ENDINGS.gzip, gz);
}

async function read(folder: string): Promise<WebBundle> {
  const files = await readdir(folder);
  const names = files.filter((name) => !/\.(br|gz)$/.test(name));
  const assets = new Map<string, WebAsset>();
  for (const name of names) {
    const path = join(folder, name);
    const bytes = (ending = "") => Bun.file(path + ending).bytes();
    const [body, br, gz] = [await bytes(), await bytes(ENDINGS.br), await bytes(ENDINGS.gzip)];
    assets.set(name, { body, coded: { br, gzip: gz }, type: Bun.file(path).type });
  }
  const named = (start: string, ending: string) =>
    names.filter((name) => name.startsWith(start) && name.endsWith(ending));
  const styles = [...named("libraries-", ".css"), ...named("entry-main-", ".css")];
  return { assets, script: named("entry-main-", ".js")[0] ?? "", styles };
}

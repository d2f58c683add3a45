/**
 * A process of `npm run tool -- mutate` that runs the tests of one file against one mutant after the other: it bundles again what leads
 * from a test to the mutated file, takes everything else as it stands in memory, and runs the tests itself.
 */
import { rm, writeFile } from "node:fs/promises";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { BunPlugin } from "bun";
import { newTestRunner } from "./test-runner.ts";
import { importsOf } from "./tests-of.ts";

export interface Question {
  readonly file: string;
  readonly source: string;
  readonly tests: readonly string[];
}

/** What failed; null = every test is green. */
export interface Verdict {
  readonly failure: string | null;
  readonly cpuMs: number;
}

const ROOT = process.cwd();
/** What a test gets for `bun:test`: a new one for each, since tests are declared while it is loaded. */
const VIRTUAL = "waybill-bun-test";

let loaded = 0;

let unhandled: string | null = null;
process.on("unhandledRejection", (reason) => {
  unhandled = String(reason);
});
process.on("uncaughtException", (error) => {
  unhandled = String(error);
});

process.on("message", async (question: Question) => {
  const from = process.cpuUsage();
  const failure = await judge(question).catch((error: unknown) => `not run: ${String(error)}`);
  const { user, system } = process.cpuUsage(from);
  process.send?.({ failure, cpuMs: (user + system) / 1_000 } satisfies Verdict);
});

async function judge({ file, source, tests }: Question): Promise<string | null> {
  unhandled = null;
  for (const test of tests) {
    const code = await codeOf(test, file, source);
    const { bunTest, run } = newTestRunner();
    Object.assign(globalThis, { [VIRTUAL]: bunTest });
    loaded += 1;
    const path = join(tmpdir(), `${loaded}.mjs`);
    await writeFile(path, code);
    await import(path);
    await rm(path);
    const failure = (await run()) ?? unhandled;
    if (failure) return `${test}: ${failure}`;
  }
  return null;
}

/** Bundles of a test whose mutants are texts of a Lua script: the text is put in when they run. */
const bundles = new Map<string, string>();

async function codeOf(test: string, file: string, source: string): Promise<string> {
  if (!file.endsWith(".lua")) return bundle(test, file, source);
  const marker = "-- the mutated script --";
  const known = bundles.get(`${test} ${file}`) ?? (await bundle(test, file, marker));
  bundles.set(`${test} ${file}`, known);
  return known.replace(JSON.stringify(marker), () => JSON.stringify(source));
}

async function bundle(test: string, file: string, source: string): Promise<string> {
  const built = await Bun.build({
    entrypoints: [test],
    target: "bun",
    format: "esm",
    throw: false,
    plugins: [await only(test, file, source)],
  });
  const [output] = built.outputs;
  if (!built.success || !output) throw new Error(built.logs.join("\n"));
  return output.text();
}

/** Bundles what imports the mutated file, and leaves all else to Bun. */
async function only(test: string, file: string, source: string): Promise<BunPlugin> {
  const leads = new Map<string, boolean>();
  for (const one of await importsOf(test)) leads.set(one, (await importsOf(one)).has(file));
  return {
    name: "mutant",
    setup(build) {
      build.onResolve({ filter: /.*/ }, ({ path, importer }) => {
        if (importer === "") return { path: resolve(ROOT, path) };
        if (path === VIRTUAL) return { path, namespace: VIRTUAL };
        if (isBuiltin(path) || /^bun\b/.test(path)) return { path, external: true };
        if (!/^[#./]/.test(path)) return { path: Bun.resolveSync(path, ROOT), external: true };
        const found = path.startsWith("#")
          ? path.slice(1)
          : join(dirname(importer), path).slice(ROOT.length + 1);
        if (found === file || leads.get(found)) return { path: join(ROOT, found) };
        if (found.endsWith(".ts")) return { path: join(ROOT, found), external: true };
        return { path: join(ROOT, found) };
      });
      const names = Object.keys(newTestRunner().bunTest).join(", ");
      build.onLoad({ filter: /.*/, namespace: VIRTUAL }, () => ({
        contents: `export const { ${names} } = globalThis["${VIRTUAL}"];`,
        loader: "js",
      }));
      build.onLoad({ filter: /\.(ts|lua)$/ }, async ({ path }) => {
        const own = path === join(ROOT, file);
        const text = own ? source : await Bun.file(path).text();
        if (path.endsWith(".lua"))
          return { contents: `export default ${JSON.stringify(text)}`, loader: "js" };
        const placed = text
          .replace('"bun:test"', JSON.stringify(VIRTUAL))
          .replaceAll("import.meta.dir", JSON.stringify(dirname(path)))
          .replaceAll("import.meta.path", JSON.stringify(path))
          .replaceAll("import.meta.url", JSON.stringify(`file://${path}`))
          .replaceAll("import.meta.main", "false");
        return { contents: placed, loader: "ts" };
      });
    },
  };
}

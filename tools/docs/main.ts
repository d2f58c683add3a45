/**
 * Builds the documentation site (`bun run docs [FOLDER] [--base /]`) with VitePress: static files, by default in `docs-built`,
 * from where the panel serves them at `/docs`. A link that leads nowhere fails the build.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { guarded, Refused } from "#core/runtime/runtime.ts";
import { BUILT_SITE } from "#panel/server/pages/documents.ts";
import { withChart } from "./charts.ts";
import { asPage, deadLinks, sitePages } from "./pages.ts";

const USAGE = "usage: bun run docs [FOLDER] [--base /docs/]";
const VITEPRESS = "node_modules/vitepress/bin/vitepress.js";
const HERE = "tools/docs";
/** Of files that pages lead to and that VitePress would otherwise take for pages. */
const FILE_ENDINGS = "sql";

await guarded(async () => {
  const { out, base } = argumentsOf(process.argv.slice(2));
  if (out !== BUILT_SITE && (await readdir(out).catch(() => [])).length > 0) {
    throw new Refused(`${out} is not empty`);
  }
  const work = await mkdtemp(".site-");
  try {
    await layOut(work);
    const child = Bun.spawn(["node", resolve(VITEPRESS), "build", work, "--outDir", resolve(out)], {
      env: { ...process.env, SITE_BASE: base, VITE_EXTRA_EXTENSIONS: FILE_ENDINGS },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const said = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) !== 0) throw new Refused(said.join("").trim());
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  process.stdout.write(`${out}\n`);
});

function argumentsOf(args: string[]) {
  try {
    const options = { base: { type: "string", default: "/docs/" } } as const;
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true });
    const [out = BUILT_SITE, ...rest] = positionals;
    if (rest.length > 0) throw new Refused(USAGE);
    return { out, base: values.base };
  } catch {
    throw new Refused(USAGE);
  }
}

/** Pages, configuration, and the files that pages lead to. */
async function layOut(work: string): Promise<void> {
  const pages = sitePages();
  const files = new Set<string>();
  for (const page of pages) {
    const markdown = await readFile(page.source, "utf8");
    const dead = deadLinks(page.source, markdown);
    if (dead.length > 0) throw new Refused(`${page.source} has dead links: ${dead.join(", ")}`);
    const text = asPage(page, await withChart(page, markdown), pages, (path) => files.add(path));
    const target = join(work, `${page.name}.md`);
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, text);
  }
  for (const path of files) {
    const target = join(work, "public", "source", path);
    await mkdir(dirname(target), { recursive: true });
    await cp(path, target, { recursive: true, dereference: true });
  }
  await mkdir(join(work, ".vitepress"));
  await cp(`${HERE}/vitepress-config.ts`, join(work, ".vitepress/config.ts"));
  await cp(`${HERE}/pages.ts`, join(work, ".vitepress/pages.ts"));
}

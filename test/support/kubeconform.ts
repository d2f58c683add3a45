/**
 * kubeconform where it is installed, or where Go can build it in time: with a warm build cache in seconds, else the tests that need it
 * are skipped, which is said. The schemas of Kubernetes are those of its own sources.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";

const SOURCE = "github.com/yannh/kubeconform/cmd/kubeconform@v0.8.0";
const SCHEMAS = { module: "k8s.io/kubernetes@v1.35.0", file: "api/openapi-spec/swagger.json" };
/** Of all together; the test suite has no more to spare. */
const BUILD_LIMIT_MS = 10_000;
const FOLDER = resolve(".test/chart-tools");

interface Kubeconform {
  readonly program: string;
  /** A folder with a schema for each kind. */
  readonly schemas: string;
}

interface Definition {
  readonly properties?: object;
}

/**
 * @param models paths of the kinds, such as `apps.v1.Deployment`
 * @returns null without the program, and without Go or its module proxy for the schemas
 */
export async function findKubeconform(models: readonly string[]): Promise<Kubeconform | null> {
  const signal = AbortSignal.timeout(BUILD_LIMIT_MS);
  const [program, schemas] = await Promise.all([programAt(signal), schemasAt(models, signal)]);
  if (program !== null && schemas !== null) return { program, schemas };
  process.stderr.write(
    "The chart was not checked by kubeconform: it is not in PATH, or Go has no time.\n",
  );
  return null;
}

async function programAt(signal: AbortSignal): Promise<string | null> {
  const built = join(FOLDER, "kubeconform");
  const there = Bun.which("kubeconform") ?? Bun.which(built);
  if (there !== null) return there;
  await go(["install", SOURCE], signal);
  return Bun.which(built);
}

async function schemasAt(models: readonly string[], signal: AbortSignal): Promise<string | null> {
  const folder = join(FOLDER, SCHEMAS.module.replaceAll("/", "-"));
  const fileOf = (model: string) =>
    join(folder, `${model.slice(model.lastIndexOf(".") + 1).toLowerCase()}.json`);
  const found = await Promise.all(models.map((model) => Bun.file(fileOf(model)).exists()));
  if (found.every(Boolean)) return folder;
  const downloaded = await go(["mod", "download", "-json", SCHEMAS.module], signal);
  if (downloaded === null) return null;
  const swagger = await readFile(join(JSON.parse(downloaded).Dir, SCHEMAS.file), "utf8");
  const { definitions } = JSON.parse(swagger) as { definitions: Record<string, Definition> };
  await mkdir(folder, { recursive: true });
  for (const model of models) {
    const name = `io.k8s.api.${model}`;
    const schema = { $ref: `#/definitions/${name}`, definitions: reachedFrom(name, definitions) };
    await writeFile(fileOf(model), JSON.stringify(schema));
  }
  return folder;
}

/** The definition of that name and all that it refers to. */
function reachedFrom(
  start: string,
  definitions: Readonly<Record<string, Definition>>,
): Record<string, object> {
  const reached: Record<string, object> = {};
  const waiting = [start];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    const definition = definitions[name];
    if (definition === undefined || name in reached) continue;
    reached[name] = strictly(name, definition);
    const references = JSON.stringify(definition).matchAll(/"#\/definitions\/([^"]+)"/g);
    waiting.push(...[...references].map(([, other = ""]) => other));
  }
  return reached;
}

/** No member that Kubernetes does not know; and the two types that are written as more than one. */
function strictly(name: string, definition: Definition): object {
  if (name.endsWith(".IntOrString")) return { type: ["string", "integer"] };
  if (name.endsWith(".Quantity")) return { type: ["string", "number"] };
  return definition.properties ? { ...definition, additionalProperties: false } : definition;
}

/** What it printed; null where there is no Go, no proxy, or not enough time. */
async function go(args: readonly string[], signal: AbortSignal): Promise<string | null> {
  const program = Bun.which("go");
  if (program === null) return null;
  await mkdir(FOLDER, { recursive: true });
  const child = Bun.spawn(["env", `GOBIN=${FOLDER}`, program, ...args], {
    cwd: FOLDER,
    stdout: "pipe",
    stderr: "ignore",
    signal,
  });
  const text = await new Response(child.stdout).text();
  return (await child.exited) === 0 ? text : null;
}

/** Builds the image as the Dockerfile says and tries it in containers (`*.test.ts` beside this file). */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { command } from "#core/platform/process/command-line.ts";
import {
  type BaseImages,
  NoContainers,
  namedImages,
  podman,
  provideBase,
  provideBuildBase,
  provideRedis,
  tryContainer,
  tryNamespaces,
} from "./base-images.ts";
import { BUILD_FILE, type Build, IMAGE } from "./build.ts";
import {
  createEngine,
  type Engine,
  FOLDER_VARIABLE,
  isolated,
  run,
  stopRunning,
} from "./engine.ts";

/** Programs and the packages of Debian that have them. */
const TOOLS = {
  podman: "podman",
  runc: "runc",
  iptables: "iptables",
  ip: "iproute2",
  mmdebstrap: "mmdebstrap",
  "/usr/lib/podman/netavark": "netavark",
} as const;
const TEST_TIMEOUT = "--timeout=300000";

interface Run {
  readonly folder: string;
  readonly testArgs: readonly string[];
  tests: ReturnType<typeof Bun.spawn> | null;
  isStopping: boolean;
}

export const tool = command({
  name: "npm run tool -- image-test",
  forms: ["[-- arguments of the test runner]"],
  about: `Builds the image and tries it in containers. On Linux as root; the tools come from apt where they are missing. Status 0 with the
reason on a machine that runs no container.`,
  options: {},
  operands: [0, Number.POSITIVE_INFINITY],
  async run({ operands: testArgs }) {
    const folder = await mkdtemp(join(tmpdir(), "waybill-containers-"));
    const run: Run = { folder, testArgs, tests: null, isStopping: false };
    stopOnSignals(run);
    try {
      return await tryImage(run);
    } catch (error) {
      if (!(error instanceof NoContainers)) throw error;
      if (run.isStopping) return 1;
      process.stdout.write(`The image is not tried here: ${error.message}.\n`);
      return 0;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
});

function stopOnSignals(run: Run): void {
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      run.isStopping = true;
      run.tests?.kill("SIGKILL");
      stopRunning();
    });
  }
}

async function tryImage(whole: Run): Promise<number> {
  const { folder } = whole;
  await timed("the tools", ensureTools());
  await tryNamespaces();
  const engine = await createEngine(folder);
  const images = await namedImages();
  await timed("the base image", provideBase(engine, images));
  await timed("a container", tryContainer(engine, images));
  const besides = [provideBuildBase(engine, images), provideRedis(engine, images)];
  await timed("the images of Node.js and Redis", Promise.all(besides));
  await timed("the image", build(engine, images));
  const path = `${dirname(process.execPath)}:${process.env["PATH"]}`;
  if (whole.isStopping) return 1;
  whole.tests = Bun.spawn(
    isolated([process.execPath, "test", TEST_TIMEOUT, ...whole.testArgs, "test/image/"]),
    {
      env: { ...process.env, ...engine.env, PATH: path, [FOLDER_VARIABLE]: folder },
      stdio: ["ignore", "inherit", "inherit"],
    },
  );
  return whole.tests.exited;
}

async function timed<T>(what: string, work: Promise<T>): Promise<void> {
  const from = performance.now();
  await work;
  process.stdout.write(`${what}: ${((performance.now() - from) / 1_000).toFixed(1)} s\n`);
}

/** @throws {NoContainers} */
async function ensureTools(): Promise<void> {
  if (process.platform !== "linux") throw new NoContainers("it does not run Linux");
  if (process.getuid?.() !== 0) throw new NoContainers("containers need root");
  const missing = Object.entries(TOOLS).filter(([program]) => Bun.which(program) === null);
  if (missing.length === 0) return;
  if (Bun.which("apt-get") === null) {
    const names = missing.map(([program]) => program);
    throw new NoContainers(`${names.join(", ")} are missing, and there is no apt-get`);
  }
  const packages = missing.map(([, name]) => name);
  const env = { DEBIAN_FRONTEND: "noninteractive" };
  const install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", ...packages];
  if ((await run(install, { env })).status === 0) return;
  await run(["apt-get", "update", "-qq"], { env });
  const { status } = await run(install, { env });
  if (status !== 0) throw new NoContainers(`apt-get does not install ${packages.join(", ")}`);
}

/** A build that fails is for the tests to tell. */
async function build(engine: Engine, { base }: BaseImages): Promise<void> {
  // What npm has already fetched here is not fetched again; what the build adds to it is thrown away.
  const cache = (await run(["npm", "config", "get", "cache"])).output;
  const args = ["--network", "host", "--layers=false", "--format", "docker", "--tag", IMAGE];
  const { status, output, errors } = await podman(
    engine,
    ...["build", ...args, "--volume", `${cache}:/root/.npm:O`, "."],
  );
  const told: Build = { status, base, log: `${output}\n${errors}` };
  await writeFile(join(engine.folder, BUILD_FILE), JSON.stringify(told));
}

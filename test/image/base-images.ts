/**
 * The images that ours is built on and runs beside. They are pulled where that works. Elsewhere they are made of Debian packages: the
 * base by mmdebstrap, that of the build with this machine's Node.js, and Redis by apt.
 */
import { cp, mkdir, realpath, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { REDIS_IMAGE } from "#test/support/servers/server-images.ts";
import { type Engine, enclosed, isolated, type Outcome, run } from "./engine.ts";

const REGISTRY = "docker.io/library/";
const PULL_LIMIT_MS = 180_000;
const BOOTSTRAP_LIMIT_MS = 600_000;
/** As the published slim image leaves out. */
const LEFT_OUT = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"];
/** The name of the program in the images of Redis, which opens it to other containers. */
const REDIS_ENTRYPOINT = "docker-entrypoint.sh";
const NO_PORT_LEFT = 2_000;

/** Why containers cannot be tried on this machine. */
export class NoContainers extends Error {}

export interface BaseImages {
  /** Of the finished image. */
  readonly base: string;
  /** Of the stage that builds. */
  readonly build: string;
  readonly redis: readonly string[];
}

/** Whether this machine gives a process mounts, processes and a network of its own. @throws {NoContainers} */
export async function tryNamespaces(): Promise<void> {
  const tried = await run(isolated(["true"]));
  if (tried.status !== 0) throw refusal("it gives no namespaces", tried);
}

/** The names that the Dockerfile, the compose files and the tests use. */
export async function namedImages(): Promise<BaseImages> {
  const dockerfile = await Bun.file("Dockerfile").text();
  const [build = "", base = ""] = [...dockerfile.matchAll(/^FROM (\S+)/gm)].map(([, name]) => name);
  const redis = [REDIS_IMAGE];
  for (const file of ["compose.yaml", "compose.cluster.yaml"]) {
    redis.push(...((await Bun.file(file).text()).match(/redis:[\w.-]+-alpine/g) ?? []));
  }
  return { base, build, redis: [...new Set(redis)] };
}

/** @throws {NoContainers} */
export async function provideBase(engine: Engine, { base }: BaseImages): Promise<void> {
  if (await isPulled(engine, base)) return;
  const [, suite = ""] = /:(\w+)-slim$/.exec(base) ?? [];
  const tar = join(engine.folder, "base.tar");
  const options = ["force-unsafe-io", ...LEFT_OUT.map((path) => `path-exclude=${path}`)];
  const made = await run(
    enclosed([
      ...["mmdebstrap", "--quiet", "--variant=minbase", `--aptopt=Acquire::Languages "none"`],
      ...[...options.map((option) => `--dpkgopt=${option}`), suite, tar],
    ]),
    { env: { TMPDIR: engine.folder }, limitMs: BOOTSTRAP_LIMIT_MS },
  );
  if (made.status !== 0) throw refusal(`${base} can neither be pulled nor made`, made);
  const imported = await podman(engine, "import", "--quiet", tar, `${REGISTRY}${base}`);
  if (imported.status !== 0) throw refusal("Podman imports no image", imported);
  await rm(tar);
}

/** Whether a container runs at all, with a published port. @throws {NoContainers} */
export async function tryContainer(engine: Engine, { base }: BaseImages): Promise<void> {
  const port = `127.0.0.1:${NO_PORT_LEFT}:${NO_PORT_LEFT}`;
  const command = engine.command("run", "--rm", "--publish", port, `${REGISTRY}${base}`, "true");
  const tried = await run(isolated(command), { env: engine.env, limitMs: PULL_LIMIT_MS });
  if (tried.status !== 0) throw refusal("no container runs", tried);
}

/** @throws {NoContainers} */
export async function provideBuildBase(engine: Engine, { base, build }: BaseImages): Promise<void> {
  if (await isPulled(engine, build)) return;
  const folder = join(engine.folder, "node");
  const program = (await run(["node", "--print", "process.execPath"])).output;
  const npm = dirname(dirname(await realpath((await run(["which", "npm"])).output)));
  await mkdir(join(folder, "local/bin"), { recursive: true });
  await cp(program, join(folder, "local/bin/node"));
  await cp(npm, join(folder, "local/lib/node_modules/npm"), { recursive: true });
  const lines = [
    `FROM ${REGISTRY}${base}`,
    "COPY local /usr/local",
    "RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm && npm --version",
    ...(await ownRoots(folder)),
    ...(await ownRegistry()),
  ];
  const made = await buildFrom(engine, folder, lines, build);
  if (made.status !== 0) throw refusal(`${build} can neither be pulled nor made`, made);
}

/** What this machine trusts beyond the roots that Node.js has, so that the build reaches the registry as the machine does. */
async function ownRoots(folder: string): Promise<string[]> {
  const file = process.env["NODE_EXTRA_CA_CERTS"];
  if (!file) return [];
  await cp(await realpath(file), join(folder, "roots.pem"));
  return ["COPY roots.pem /roots.pem", "ENV NODE_EXTRA_CA_CERTS=/roots.pem"];
}

async function ownRegistry(): Promise<string[]> {
  const { output } = await run(["npm", "config", "get", "registry"]);
  return output === "" ? [] : [`ENV npm_config_registry=${output}`];
}

/** @throws {NoContainers} */
export async function provideRedis(engine: Engine, { base, redis }: BaseImages): Promise<void> {
  const pulled = await Promise.all(redis.map((name) => isPulled(engine, name)));
  const missing = redis.filter((_, at) => !pulled[at]);
  const [first, ...others] = missing;
  if (first === undefined) return;
  const folder = join(engine.folder, "redis");
  await mkdir(folder);
  await writeFile(
    join(folder, REDIS_ENTRYPOINT),
    '#!/bin/sh\n[ "$1" = redis-server ] && set -- "$@" --protected-mode no\nexec "$@"\n',
    { mode: 0o755 },
  );
  const lines = [
    `FROM ${REGISTRY}${base}`,
    "RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server",
    `COPY ${REDIS_ENTRYPOINT} /usr/local/bin/`,
    "WORKDIR /data",
    "VOLUME /data",
    "EXPOSE 6379",
    `ENTRYPOINT ["${REDIS_ENTRYPOINT}"]`,
    'CMD ["redis-server"]',
  ];
  const made = await buildFrom(engine, folder, lines, first);
  if (made.status !== 0) throw refusal(`${first} can neither be pulled nor made`, made);
  for (const name of others) {
    await podman(engine, "tag", `${REGISTRY}${first}`, `${REGISTRY}${name}`);
  }
}

async function buildFrom(engine: Engine, folder: string, lines: string[], name: string) {
  await writeFile(join(folder, "Dockerfile"), `${lines.join("\n")}\n`);
  const args = ["--quiet", "--network", "host", "--layers=false", "--tag", `${REGISTRY}${name}`];
  return podman(engine, "build", ...args, folder);
}

async function isPulled(engine: Engine, name: string): Promise<boolean> {
  const command = enclosed(engine.command("pull", "--quiet", `${REGISTRY}${name}`));
  return (await run(command, { env: engine.env, limitMs: PULL_LIMIT_MS })).status === 0;
}

export function podman(engine: Engine, ...args: string[]): Promise<Outcome> {
  return run(enclosed(engine.command(...args)), { env: engine.env });
}

/** With the last line that the program has said. */
function refusal(what: string, { output, errors }: Outcome): NoContainers {
  const said = `${output}\n${errors}`.trim().split("\n").at(-1) ?? "";
  return new NoContainers(`${what} (${said})`);
}

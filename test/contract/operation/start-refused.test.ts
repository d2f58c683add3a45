/** design.md, "Starting, stopping, failing": a start that is refused has changed nothing, and says what to do. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { errorResponse } from "#api/http/error-response.ts";
import { API } from "#api/main.ts";
import { type Config, readConfig } from "#core/platform/environment/config.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { bindListener } from "#core/platform/http/listener.ts";
import { ONE_ROUTER } from "#core/platform/http/request-target.ts";
import { createLog } from "#core/platform/process/log.ts";
import { type Role, type Running, serve } from "#core/runtime/runtime.ts";
import { INGEST } from "#ingest/main.ts";
import { PANEL } from "#panel/main.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { BARE, READY_LIMIT_MS } from "#test/support/product/product.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { freePort } from "#test/support/servers/free-port.ts";

const API_KEY = "key_acme_main";

let folder = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-refused-"));
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function fileOf(name: string, content: unknown): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, JSON.stringify(content));
  return path;
}

/** A setup that takes the key of the running one away. */
const otherKeys = () => {
  const text = JSON.stringify(testSetup());
  return fileOf("other-keys.json", JSON.parse(text.replaceAll(API_KEY, `${API_KEY}-other`)));
};

const log = createLog("silent");
const PORTS = { INGEST_PORT: "0", API_PORT: "0", PANEL_PORT: "0" };
/** As a process of these roles starts. @returns the message of its refusal */
const refusalOf = (
  roles: readonly Role[],
  env: Readonly<Record<string, string>>,
  store: Partial<Config> = {},
) =>
  serve({ ...readConfig({ ...PORTS, ...env }), ...store }, log, roles).then(
    () => "started",
    (error: Error) => error.message,
  );

describe("beside a running Waybill", () => {
  let runtime: TestRuntime;
  const running: Running[] = [];
  const inUse = (at: number, variable: string) => {
    const port = new URL(running[at]?.url ?? "").port;
    const told =
      `${variable}: port ${port} of 127.0.0.1 is in use, and Waybill is running there already: ` +
      `use it, stop it, or set ${variable} to another port.`;
    return { env: { [variable]: port }, told };
  };

  beforeAll(async () => {
    runtime = await openTestRuntime(testSetup());
    for (const { start } of [INGEST, API, PANEL]) running.push(await start(runtime, []));
  });
  afterAll(async () => {
    for (const { stop } of running) await stop();
    await runtime.end();
  });

  test.each([
    ["INGEST_PORT", 0, INGEST],
    ["API_PORT", 1, API],
    ["PANEL_PORT", 2, PANEL],
  ] as const)(
    "a start on its %s names the port and who has it, and its keys go on working",
    async (variable, at, role) => {
      const { env, told } = inUse(at, variable);
      const { redisUrl } = runtime.config;
      const beside = { ...env, SETUP_FILE: await otherKeys() };
      expect(await refusalOf([role], beside, { redisUrl })).toEndWith(` 1 fault:\n  ${told}`);
      await signIn(running[1]?.url ?? "", API_KEY);
    },
  );

  test("all ports that are unavailable are reported together, and the program ends with status 1", async () => {
    const ports = [inUse(1, "API_PORT"), inUse(2, "PANEL_PORT"), inUse(0, "METRICS_PORT")];
    const env = Object.assign({ DATA_DIR: folder }, ...ports.map((one) => one.env));
    const { errors, output, status } = await outcomeOf(startCommand([...BARE], env));
    expect([status, output]).toEqual([1, ""]);
    const [first, ...lines] = errors.trimEnd().split("\n  ");
    expect(first).toBe("The configuration has 3 faults:");
    expect(lines.toSorted()).toEqual(ports.map(({ told }) => told).toSorted());
  });
});

test("a port of another program is named without Waybill, and no folder of a store is made", async () => {
  const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
  const dataDir = await mkdtemp(join(folder, "untouched-"));
  const refusal = await refusalOf([PANEL], { DATA_DIR: dataDir, PANEL_PORT: String(other.port) });
  expect(refusal).toContain(
    `PANEL_PORT: port ${other.port} of 127.0.0.1 is in use, and another program listens there`,
  );
  expect(await readdir(dataDir)).toEqual([]);
  await other.stop(true);
});

test.each([
  ["HOST", "192.0.2.1", /HOST: 192\.0\.2\.1 is no address of this machine/],
  ["INGEST_TLS_CERT_FILE", "/no/such/file", /INGEST_TLS_CERT_FILE: cannot be read/],
])("a wrong %s is told before anything is written", async (variable, value, message) => {
  const dataDir = await mkdtemp(join(folder, "wrong-"));
  const tls = variable === "HOST" ? {} : { INGEST_TLS_KEY_FILE: "/no/such/key" };
  const env = { DATA_DIR: dataDir, [variable]: value, ...tls };
  expect(await refusalOf([INGEST], env)).toMatch(message);
  expect(await readdir(dataDir)).toEqual([]);
});

test("a start that fails shows no secret, and the next one, with HOST=:: and no PUBLIC_URL, has URLs and shows what it had generated", async () => {
  const dataDir = join(folder, "unshown");
  const company = {
    code: "acme",
    channels: [{ code: "acme-it", apiKeys: [{ code: "main" }], couriers: [{ code: "NOBODY" }] }],
  };
  const faulty = await fileOf("faulty.json", { companies: [company] });
  const failed = await outcomeOf(
    startCommand([...BARE], { DATA_DIR: dataDir, SETUP_FILE: faulty }),
  );
  expect(failed.status).toBe(1);
  expect(failed.errors).toContain("NOBODY");
  expect(failed.errors + failed.output).not.toContain("shown only now");

  const whole = await fileOf("whole.json", {
    companies: [{ code: "acme", channels: [{ code: "acme-it", apiKeys: [{ code: "main" }] }] }],
  });
  const product = startCommand([...BARE], { DATA_DIR: dataDir, SETUP_FILE: whole, HOST: "::" });
  const errors = new Response(product.stderr).text();
  // Read to its end: a product whose output nobody takes stops.
  let output = "";
  const read = (async () => {
    for await (const chunk of product.stdout) output += Buffer.from(chunk).toString();
  })();
  const ready = await eventually(
    () => output.split("\n").find((line) => line.includes('"msg":"ready"')),
    "it is ready",
    READY_LIMIT_MS,
  );
  const urls: Record<string, string> = JSON.parse(ready);
  for (const role of ["ingest", "api", "panel"]) {
    expect(urls[role]).toStartWith("http://[::1]:");
    expect((await fetch(`${urls[role]}/readyz`)).status).toBe(200);
  }
  product.kill("SIGTERM");
  const shown = await errors;
  await read;
  expect(shown).toContain(`${urls["panel"]}/invitation/`);
  expect(shown).toMatch(/operator, shown only now: [\w-]{43}\n/);
  expect(shown).toMatch(/channel acme-it, API key main, shown only now: key_[0-9a-f]{64}\n/);
  expect(await readdir(join(dataDir, "secrets", "unshown"))).toEqual([]);
}, 300_000);

describe("a port whose role has not started yet", () => {
  const common = { variable: "API_PORT", host: "127.0.0.1", maxRequestBodySize: 1_000 };

  test("lives, is not ready, and refuses requests as its role does", async () => {
    for (const [refuse, member] of [
      [errorResponse, "message"],
      [problemResponse, "detail"],
    ] as const) {
      const listener = bindListener({ ...common, port: 0, refuse });
      const ask = (path: string) => fetch(`${listener.url}${path}`);
      expect((await ask("/healthz")).status).toBe(200);
      const ready = await ask("/readyz");
      expect([ready.status, await ready.json()]).toEqual([
        503,
        { status: "not ready", reason: "starting" },
      ]);
      const refused = await ask("/v2/shipments");
      expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "1"]);
      expect(await refused.json()).toMatchObject({
        code: "STORE_UNAVAILABLE",
        [member]: expect.stringContaining("starting"),
      });
      listener.close();
    }
  });

  test("answers by its app on the same port once that is open", async () => {
    const port = await freePort();
    const listener = bindListener({ ...common, port, refuse: problemResponse });
    const app = new Elysia(ONE_ROUTER).get("/v2/shipments", () => "here");
    listener.open(app);
    expect(await (await fetch(`${listener.url}/v2/shipments`)).text()).toBe("here");
    await app.stop();
    expect(await fetch(listener.url).catch(() => null)).toBeNull();
  });
});

/** design.md, "Starting, stopping, failing": a start that is refused has changed nothing, and says what to do. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Elysia } from "elysia";
import { errorResponse } from "#api/http/error-response.ts";
import { problemResponse } from "#core/platform/errors/problem.ts";
import { bindListener } from "#core/platform/http/listener.ts";
import { ONE_ROUTER } from "#core/platform/http/request-target.ts";
import { signIn } from "#test/support/clients/merchant.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { BARE, newProduct, type Product, READY_LIMIT_MS } from "#test/support/product/product.ts";
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

describe("beside a running Waybill", () => {
  let product: Product;

  beforeAll(async () => {
    product = await newProduct(BARE, testSetup());
    await product.start();
  }, 300_000);
  afterAll(() => product.end());

  /** Ends within a moment, since it never serves. */
  const startBeside = async (command: string[], env: Readonly<Record<string, string>>) =>
    outcomeOf(
      startCommand(command, {
        DATA_DIR: product.dataDir,
        SETUP_FILE: await otherKeys(),
        ...env,
      }),
    );
  const portOf = (url: string) => new URL(url).port;

  test.each([
    ["INGEST_PORT", "ingest", "ingest/main.ts"],
    ["API_PORT", "api", "api/main.ts"],
    ["PANEL_PORT", "panel", "panel/main.ts"],
  ] as const)(
    "a start on its %s names the port and who has it, and its keys go on working",
    async (variable, role, main) => {
      const port = portOf(product[role]);
      for (const command of [[...BARE], ["bun", main]]) {
        const { errors, output, status } = await startBeside(command, { [variable]: port });
        expect([status, output]).toEqual([1, ""]);
        expect(errors).toBe(
          `The configuration has 1 fault:\n  ${variable}: port ${port} of 127.0.0.1 is in use, and Waybill is running there already: ` +
            `use it, stop it, or set ${variable} to another port.\n`,
        );
      }
      await signIn(product.api, API_KEY);
    },
    300_000,
  );

  test("all ports that are unavailable are reported together", async () => {
    const { errors } = await startBeside([...BARE], {
      API_PORT: portOf(product.api),
      PANEL_PORT: portOf(product.panel),
      METRICS_PORT: portOf(product.ingest),
    });
    expect(errors.split("\n").filter((line) => line.includes("is in use"))).toHaveLength(3);
  });
});

test("a port of another program is named without Waybill, and no folder of a store is made", async () => {
  const other = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("hello") });
  const dataDir = join(folder, "untouched");
  const env = { DATA_DIR: dataDir, PANEL_PORT: String(other.port) };
  const { errors, status } = await outcomeOf(startCommand([...BARE], env));
  expect(status).toBe(1);
  expect(errors).toContain(
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
  const { errors, status } = await outcomeOf(startCommand([...BARE], env));
  expect(status).toBe(1);
  expect(errors).toMatch(message);
  expect(await readdir(dataDir)).toEqual([]);
});

test("a start that fails shows no secret, and the next one shows what it had generated", async () => {
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
  const product = startCommand([...BARE], { DATA_DIR: dataDir, SETUP_FILE: whole });
  const errors = new Response(product.stderr).text();
  for await (const chunk of product.stdout) if (Buffer.from(chunk).includes('"ready"')) break;
  product.kill("SIGTERM");
  const shown = await errors;
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

test.each(["::1", "::"])(
  "HOST=%s without PUBLIC_URL starts and has URLs",
  async (host) => {
    const dataDir = await mkdtemp(join(folder, "ipv6-"));
    const env = { DATA_DIR: dataDir, HOST: host, SETUP_FILE: await fileOf("v6.json", testSetup()) };
    const product = startCommand([...BARE], env);
    const errors = new Response(product.stderr).text();
    // Read to its end: a product whose output nobody takes stops.
    let output = "";
    const read = (async () => {
      for await (const chunk of product.stdout) output += Buffer.from(chunk).toString();
    })();
    const ready = await eventually(
      () => output.split("\n").find((line) => line.includes('"msg":"ready"')) ?? false,
      "it is ready",
      READY_LIMIT_MS,
    );
    const urls: Record<string, string> = JSON.parse(ready);
    expect(Object.keys(urls)).toContain("panel");
    for (const role of ["ingest", "api", "panel"]) {
      expect(urls[role]).toStartWith("http://[::1]:");
      expect((await fetch(`${urls[role]}/readyz`)).status).toBe(200);
    }
    product.kill("SIGTERM");
    expect(await errors).toContain(`${urls["panel"]}/invitation/`);
    await read;
  },
  300_000,
);

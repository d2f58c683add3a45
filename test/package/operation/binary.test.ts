/** Standalone binaries: built by the command, and run where there is neither the repository nor a package. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { copyFile, cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { event, push } from "#test/support/clients/courier.ts";
import { shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { labelSetup } from "#test/support/data/label-setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { NO_CLICKHOUSE } from "#test/support/product/runtime.ts";
import { freePort } from "#test/support/servers/free-port.ts";

/** The others are built and started in the same way: `npm run tool -- binary`. */
const ROLES = { ingest: "INGEST_PORT", api: "API_PORT" } as const;
/** The commands, and a role that is started without a ClickHouse server, are built beside them. */
const BUILT = [
  "waybill",
  "waybill-analytics",
  ...Object.keys(ROLES).map((role) => `waybill-${role}`),
];

let folder: string;
let elsewhere: string;
let redisPort: number;
const ports: Record<keyof typeof ROLES, number> = { ingest: 0, api: 0 };
const children: Bun.Subprocess[] = [];

const address = (role: keyof typeof ROLES) => `http://127.0.0.1:${ports[role]}`;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-binary-"));
  const built = join(folder, "built");
  const { errors, status } = await outcomeOf(
    startCommand([process.execPath, "tools/main.ts", "binary", built, ...BUILT], {}),
  );
  expect([status, errors]).toEqual([0, ""]);
  // Moved, so that no path of the build is still good.
  elsewhere = join(folder, "elsewhere");
  await cp(join(built, "waybill-files"), join(elsewhere, "waybill-files"), { recursive: true });
  for (const name of BUILT) await copyFile(join(built, name), join(elsewhere, name));
  await rm(built, { recursive: true });
  const setupFile = join(folder, "setup.json");
  const setup = labelSetup();
  Object.assign(setup.companies?.[0] ?? {}, { products: ["checkAddress"] });
  Object.assign(setup.companies?.[0]?.channels?.[0] ?? {}, { addressCheck: true });
  await writeFile(setupFile, JSON.stringify(setup));
  redisPort = await freePort();
  const redis = ["redis-server", "--port", String(redisPort), "--save", ""];
  children.push(Bun.spawn(redis, { cwd: folder, stdout: "ignore" }));
  for (const [role, variable] of Object.entries(ROLES) as [keyof typeof ROLES, string][]) {
    ports[role] = await freePort();
    const env = {
      DATA_DIR: join(folder, "data"),
      LOG_LEVEL: "warn",
      SETUP_FILE: setupFile,
      DRAIN_SECONDS: "0",
      REDIS_URL: `redis://127.0.0.1:${redisPort}`,
      [variable]: String(ports[role]),
      CLICKHOUSE_URL: NO_CLICKHOUSE,
    };
    const stdio = ["ignore", "ignore", "inherit"] as const;
    const command = [join(elsewhere, `waybill-${role}`)];
    children.push(Bun.spawn(command, { cwd: folder, env, stdio: [...stdio] }));
  }
  for (const role of ["ingest", "api"] as const) {
    const isReady = async () => (await fetch(`${address(role)}/readyz`)).status === 200;
    await eventually(() => isReady().catch(() => false), `${role} is ready`, 60_000);
  }
}, 300_000);

afterAll(async () => {
  for (const child of children.toReversed()) {
    child.kill();
    await child.exited;
  }
  await rm(folder, { recursive: true, force: true });
});

test("ingest and api work together, scripts of Redis and all", async () => {
  const merchant = await signIn(address("api"), "key_acme_main");
  const created = await merchant.call("POST", "/v2/shipments", {
    shipments: [shipmentItem("BINARY-1")],
  });
  expect(created.status).toBe(201);
  const { body } = await push(address("ingest"), [event({ trackingNumber: "BINARY-1" })]);
  expect(body.accepted).toBe(1);
});

test("a binary knows its version", async () => {
  const { version } = await Bun.file("package.json").json();
  const alive = await (await fetch(`${address("ingest")}/healthz`)).json();
  expect(alive).toMatchObject({ status: "ok", version });
});

test("the commands are one binary: it knows the version, prints the schema of a setup file, and reads the store", async () => {
  const waybill = (...args: string[]) => {
    const env = { DATA_DIR: join(folder, "data"), REDIS_URL: `redis://127.0.0.1:${redisPort}` };
    return outcomeOf(startCommand([join(elsewhere, "waybill"), ...args], env, { cwd: folder }));
  };
  const { version } = await Bun.file("package.json").json();
  expect(await waybill("--version")).toEqual({ output: `${version}\n`, errors: "", status: 0 });
  const schema = JSON.parse((await waybill("setup", "--schema")).output);
  expect(Object.keys(schema.properties)).toContain("couriers");
  const slots = await waybill("slots", "--json");
  expect([slots.status, JSON.parse(slots.output)]).toEqual([0, expect.any(Array)]);
  expect((await waybill("listen", "--help")).output).toStartWith("usage: waybill listen");
});

test("what is read by its path lies beside the binary: documents, the reference's script, fonts and places", async () => {
  const merchant = await signIn(address("api"), "key_acme_main");
  const text = async (url: string) => (await fetch(url)).text();
  expect(await text(`${address("ingest")}/v1/guide`)).toStartWith("# Sending events");
  expect(await text(`${address("ingest")}/v1/doctor.mjs`)).toStartWith("#!/usr/bin/env node");
  expect(await text(`${address("api")}/v2/docs/swagger-ui.js`)).toContain("SwaggerUI");
  const consignee = {
    name: "Maria Bianchi",
    street: "Via Roma 1",
    city: "Milano",
    state: "MI",
    postcode: "20121",
    country: "IT",
  };
  const label = await merchant.call("POST", "/v2/labels", {
    courier: "GENERIC",
    reference: "1001",
    source: "api",
    weight: 2.5,
    consignee,
  });
  expect([label.status, label.body.labels?.[0]?.slice(0, 5)]).toEqual([201, "JVBER"]);
  const { street, city, state, postcode } = consignee;
  const place = { street, city, state, postcode };
  const found = await merchant.call("POST", "/v2/addresses/check", place);
  expect([found.status, JSON.stringify(found.body)]).toEqual([
    200,
    expect.stringContaining('"MUNICIPALITY"'),
  ]);
});

test("without a ClickHouse server, analytics says that no binary has an embedded one, and is not ready", async () => {
  const port = await freePort();
  const env = {
    DATA_DIR: join(folder, "data"),
    LOG_LEVEL: "warn",
    ANALYTICS_PORT: String(port),
    REDIS_URL: `redis://127.0.0.1:${redisPort}`,
  };
  const command = [join(elsewhere, "waybill-analytics")];
  const analytics = startCommand(command, env, { cwd: folder });
  const hasStarted = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/readyz`);
    return answer.status === 503 && !(await answer.text()).includes("starting");
  };
  await eventually(() => hasStarted().catch(() => false), "analytics has started", 60_000);
  analytics.kill();
  expect((await outcomeOf(analytics)).output).toContain(
    "no image and no binary contains the embedded ClickHouse: set CLICKHOUSE_URL",
  );
}, 300_000);

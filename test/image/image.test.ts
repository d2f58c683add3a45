/**
 * The image that the Dockerfile builds, run as compose.yaml says: every role read-only and without capabilities, beside a Redis and a
 * ClickHouse (the embedded engine behind HTTP, `test/support/servers/clickhouse-http.ts`). `main.ts` builds it and starts these tests.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { verifyWebhook } from "#client/src/webhooks.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { type Merchant, shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { commandsOf, examplesIn } from "#test/support/documents.ts";
import { eventually } from "#test/support/eventually.ts";
import { asReader, readerUser } from "#test/support/servers/clickhouse-reader.ts";
import {
  AUTHORITY,
  DELIVERED_LIMIT_MS,
  type Receiver,
  startReceiver,
} from "#test/support/servers/receiver.ts";
import { REDIS_IMAGE } from "#test/support/servers/server-images.ts";
import { BUILD_FILE, type Build, IMAGE } from "./build.ts";
import { runArguments, type Service, servicesOf } from "./compose.ts";
import { engineIn, FOLDER_VARIABLE, type Outcome, run } from "./engine.ts";

const MB = 1_000_000;
/** What the finished image may have above its base and Bun. */
const APP_LIMIT_MB = 60;
const ROLES = ["ingest", "api", "processors", "analytics", "panel"] as const;
const READY_LIMIT_MS = 120_000;
const NETWORK = "waybill";
const SUBNET = "10.89.0.0/24";
const GATEWAY = "10.89.0.1";
/** The names of compose.yaml. */
const HOSTS: Readonly<Record<string, string>> = {
  redis: "10.89.0.10",
  clickhouse: "10.89.0.11",
  ingest: "10.89.0.21",
  api: "10.89.0.22",
  processors: "10.89.0.23",
  analytics: "10.89.0.24",
  panel: "10.89.0.25",
};
const TRIED = new Set<string>();
/** Cheap, and with scripts and packed lists in it. */
const STORE_TEST = "test/contract/search/packed-list.test.ts";
/** What an operator sets beside compose.yaml. */
const SHELL = {
  PANEL_TOKEN: "panel-token-of-the-image-test",
  JWT_SECRET: "jwt-secret-of-the-image-test",
  ENCRYPTION_KEY: "encryption-key-of-the-image-test",
  CLICKHOUSE_READ_URL: asReader("http://clickhouse:8123/waybill"),
};
const URLS = {
  ingest: "http://127.0.0.1:8081",
  api: "http://127.0.0.1:8080",
  panel: "http://127.0.0.1:8082",
  processors: `http://${HOSTS["processors"]}:8083`,
  analytics: `http://${HOSTS["analytics"]}:8084`,
} as const;

const folder = process.env[FOLDER_VARIABLE];
if (!folder) throw new Error("these tests are started by `npm run tool -- image-test`");
const engine = engineIn(folder);
const services = await servicesOf("compose.yaml");
const build: Build = await Bun.file(join(folder, BUILD_FILE)).json();

const podman = (...args: string[]): Promise<Outcome> =>
  run(engine.command(...args), { env: engine.env });

/** @returns what the command printed */
async function done(...args: string[]): Promise<string> {
  const { status, output, errors } = await podman(...args);
  expect([args, status, status === 0 ? "" : errors]).toEqual([args, 0, ""]);
  return output;
}

/** A command in the running container of a service. */
const inside = (name: string, ...command: string[]) => podman("exec", name, ...command);

function service(name: string): Service {
  const found = services[name];
  if (!found) throw new Error(`compose.yaml has no service ${name}`);
  return found;
}

const addresses = Object.entries(HOSTS).flatMap(([host, ip]) => ["--add-host", `${host}:${ip}`]);

/** Starts a service of compose.yaml. @param more options beyond those of the file */
async function start(name: string, more: readonly string[] = []): Promise<void> {
  const { options, image, command } = runArguments(service(name), SHELL);
  const own = ["--detach", "--name", name, "--no-healthcheck", "--network", NETWORK];
  const all = [...own, "--ip", HOSTS[name] ?? "", ...addresses, ...options, ...more];
  await done("run", ...all, image, ...command);
}

/** The embedded engine behind HTTP, in the place of the server: its address, user, password and database. */
async function startClickhouse(): Promise<void> {
  const users = JSON.stringify([{ name: "waybill", password: "waybill" }, readerUser()]);
  const program = [
    "test/support/servers/clickhouse-http.ts",
    "/tmp/clickhouse",
    "8123",
    users,
    "",
    "0.0.0.0",
  ];
  await done(
    ...["run", "--detach", "--interactive", "--name", "clickhouse", "--no-healthcheck"],
    ...["--network", NETWORK, "--ip", HOSTS["clickhouse"] ?? "", "--tmpfs", "/tmp"],
    ...["--volume", `${process.cwd()}:/repository:ro`, "--workdir", "/repository", IMAGE],
    ...program,
  );
  const create = async () => {
    const url = `http://${HOSTS["clickhouse"]}:8123/?user=waybill&password=waybill`;
    const answer = await fetch(url, {
      method: "POST",
      body: "CREATE DATABASE waybill",
      signal: AbortSignal.timeout(10_000),
    }).catch(() => null);
    return answer?.ok;
  };
  await eventually(create, "ClickHouse answers");
}

let receiver: Receiver;

/** With which webhooks reach the receiver of the tests. */
const toReceiver = () => [
  ...["--volume", `${AUTHORITY.file}:/ca.pem:ro`, "--env", "WEBHOOK_CA_FILE=/ca.pem"],
  ...["--env", `WEBHOOK_ALLOWED_CIDRS=${SUBNET}`],
];

async function startEverything(): Promise<void> {
  await chmod(AUTHORITY.file, 0o644);
  await done("network", "create", "--disable-dns", "--subnet", SUBNET, NETWORK);
  await Promise.all([start("redis"), startClickhouse()]);
  // By its address: webhooks ask name servers, and nobody answers for names here.
  const keys = await AUTHORITY.issue([GATEWAY]);
  receiver = await startReceiver({ keys, name: GATEWAY, host: "0.0.0.0" });
  await Promise.all(ROLES.map((role) => start(role, toReceiver())));
}

const isReady = async (url: string) =>
  (await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(10_000) }).catch(() => null))
    ?.status === 200;

const logs = async () => {
  const said = ROLES.map(async (role) => {
    const { output, errors } = await podman("logs", "--tail", "20", role);
    return `${role}: ${output}\n${errors}`;
  });
  return (await Promise.all(said)).join("\n");
};

test("the image builds from the Dockerfile and the repository as they stand", () => {
  expect([build.status, build.status === 0 ? "" : build.log]).toEqual([0, ""]);
});

test(`the image is at most ${APP_LIMIT_MB} MB larger than its base and Bun`, async () => {
  const sizeOf = async (name: string) =>
    Number(await done("image", "inspect", name, "--format", "{{.Size}}")) / MB;
  const stat = ["--entrypoint", "stat", IMAGE, "-c", "%s", "/usr/local/bin/bun"];
  const bun = Number(await done("run", "--rm", "--no-healthcheck", ...stat)) / MB;
  const [whole, base] = [await sizeOf(IMAGE), await sizeOf(build.base)];
  const app = whole - base - bun;
  const sum = `${[whole, base, bun].map((size) => size.toFixed(1)).join(" - ")} = ${app.toFixed(1)} MB`;
  expect([sum, app <= APP_LIMIT_MB]).toEqual([sum, true]);
});

describe("run as compose.yaml says", () => {
  beforeAll(startEverything, READY_LIMIT_MS);
  afterAll(async () => {
    await podman("rm", "--all", "--force", "--time", "0");
    await receiver?.stop();
  }, READY_LIMIT_MS);

  test("every role is ready, read-only, without capabilities and as a user without rights", async () => {
    await eventually(
      async () => (await Promise.all(Object.values(URLS).map(isReady))).every(Boolean),
      async () => `every role is ready\n${await logs()}`,
      READY_LIMIT_MS,
    );
    for (const role of ROLES) {
      const said = await inside(role, "cat", "/proc/1/status");
      expect([role, said.output]).toEqual([role, expect.stringMatching(/^Uid:\s+10001\s/m)]);
      expect([role, said.output]).toEqual([role, expect.stringMatching(/^CapEff:\s+0+$/m)]);
      expect([role, said.output]).toEqual([role, expect.stringMatching(/^CapBnd:\s+0+$/m)]);
      const { status } = await inside(role, "touch", "/app/written");
      expect([role, "is read-only", status !== 0]).toEqual([role, "is read-only", true]);
    }
  });

  test("the health check of each service passes inside its container, and fails on a port that nobody serves", async () => {
    const compared = { ...services, ...(await servicesOf("compose.cluster.yaml")) };
    for (const name of ["redis", ...ROLES]) {
      const [kind, ...command] = service(name).healthcheck?.test ?? [];
      expect(kind).toBe("CMD");
      const { status, errors } = await inside(name, ...command);
      expect([name, status, errors]).toEqual([name, 0, ""]);
      // Those of the cluster run the same commands.
      expect(compared[name]?.healthcheck?.test).toEqual(service(name).healthcheck?.test);
      expect(compared[name]?.command).toEqual(service(name).command);
    }
    const [own] = JSON.parse(await done("image", "inspect", IMAGE));
    const [, ...ofImage] = (own.Healthcheck ?? own.Config.Healthcheck).Test;
    expect((await inside("ingest", ...ofImage)).status).toBe(0);
    expect((await inside("ingest", "bun", "cli/healthy/main.ts", "8099")).status).toBe(1);
  });

  test("the panel serves the documents, and the files that they lead to", async () => {
    const page = await (await fetch(`${URLS.panel}/docs/operations/deploy`)).text();
    expect(page).toContain('id="containers"');
    const file = await fetch(`${URLS.panel}/docs/source/deploy/prometheus/rules.yaml`);
    expect(file.status).toBe(200);
  });

  test("the API serves the clients that the image was built with", async () => {
    const page = await (await fetch(`${URLS.api}/v2/clients/`)).text();
    for (const [, path = ""] of page.matchAll(/href="([^"]+\.(?:tgz|whl))"/g)) {
      expect([path, (await fetch(`${URLS.api}${path}`)).status]).toEqual([path, 200]);
    }
    expect(page).toMatch(/\.tgz[\s\S]*\.whl/);
  });

  test("a setup file is applied by the service `setup`, and a signed event becomes a signed webhook", async () => {
    const setup = labelSetup();
    const webhook = { url: receiver.url, alertEmail: "ops@acme.test", secret: WEBHOOK_SECRET };
    const [acme] = setup.companies ?? [];
    Object.assign(acme ?? {}, { products: ["checkAddress"] });
    Object.assign(acme?.channels?.[0] ?? {}, {
      addressCheck: true,
      webhooks: [{ code: "main", ...webhook }],
    });
    const file = join(engine.folder, "setup.json");
    await writeFile(file, JSON.stringify(setup));
    await chmod(file, 0o644);
    const { options, image, command } = runArguments(service("setup"), SHELL, {
      "./setup.json": file,
    });
    const own = ["--rm", "--no-healthcheck", "--network", NETWORK, ...addresses, ...toReceiver()];
    expect(await done("run", ...own, ...options, image, ...command)).toContain("written");

    let merchant: Merchant | null = null;
    await eventually(async () => {
      merchant = await signIn(URLS.api, "key_acme_main").catch(() => null);
      return merchant;
    }, "the API knows the merchant's key");
    const shipments = [shipmentItem("IMAGE-1")];
    const created = await (merchant as Merchant | null)?.call("POST", "/v2/shipments", {
      shipments,
    });
    expect(created?.status).toBe(201);
    const news = event({ trackingNumber: "IMAGE-1", occurredAt: new Date().toISOString() });
    const pushed = await push(URLS.ingest, [news], { secrets: ["sig_gls_1"] });
    expect([pushed.status, pushed.body.results?.[0]?.outcome]).toEqual([200, "ACCEPTED"]);

    const [request] = await eventually(
      () => receiver.requests.length > 0 && receiver.requests,
      async () => `the webhook is received\n${await logs()}`,
      DELIVERED_LIMIT_MS,
    );
    const signature = String(request?.headers["x-service-signature"]);
    const sent = await verifyWebhook({
      body: request?.raw ?? "",
      signature,
      secret: WEBHOOK_SECRET,
    });
    expect(sent.data.shipment.trackingNumber).toBe("IMAGE-1");
    const refused = verifyWebhook({
      body: `${request?.raw} `,
      signature,
      secret: WEBHOOK_SECRET,
    });
    expect(refused).rejects.toThrow("signature");
  });

  test("a label is made, with the fonts, barcodes and places that the image has of its packages", async () => {
    const merchant = await signIn(URLS.api, "key_acme_main");
    const { status, body } = await merchant.call("POST", "/v2/labels", labelBody());
    expect(status).toBe(201);
    expect(Buffer.from(body.labels[0], "base64").toString("latin1")).toStartWith("%PDF-");
    const address = { street: "Via Roma 1", city: "Milano", state: "MI", postcode: "20121" };
    const checked = await merchant.call("POST", "/v2/addresses/check", address);
    expect([checked.status, checked.body.provider]).toEqual([200, "geocoder"]);
  });

  test.each([
    ["docker compose exec panel waybill doctor", 0, /^Nothing to change\.$/m],
    ["docker compose exec panel waybill archive --status", 0, /Archived/i],
    ['docker compose exec panel waybill sql "SHOW TABLES"', 0, /courier_performance/],
    ["docker compose exec panel waybill setup --schema", 0, /json-schema/],
    ["docker compose exec panel waybill backup /data/backup", 1, /embedded stores/],
    ["docker compose exec panel waybill restore /data/backup", 1, /embedded stores/],
  ])("`%s` does what docs/operations/deploy.md says", async (command, status, said) => {
    const words = [...command.matchAll(/"([^"]*)"|\S+/g)].map(([word, quoted]) => quoted ?? word);
    const [, , , name = "", ...program] = words;
    const told = await inside(name, ...program);
    const text = `${told.output}\n${told.errors}`;
    expect([told.status, text]).toEqual([status, expect.stringMatching(said)]);
    TRIED.add(command);
  });

  test("no other command for a container stands in docs/operations/deploy.md", () => {
    const examples = examplesIn("docs/operations/deploy.md").flatMap(({ code }) =>
      commandsOf(code),
    );
    const named = examples.filter((command) => command.startsWith("docker compose exec "));
    expect(named.length).toBeGreaterThan(2);
    expect(named.filter((command) => !TRIED.has(command))).toEqual([]);
  });

  test("a container that is stopped before its program listens for signals ends", async () => {
    const { options, image, command } = runArguments(service("processors"), SHELL);
    const own = ["--detach", "--name", "early", "--no-healthcheck", "--network", NETWORK];
    await done("run", ...own, ...addresses, ...options, image, ...command);
    await done("kill", "--signal", "TERM", "early");
    const status = () => done("inspect", "early", "--format", "{{.State.Status}}");
    await eventually(async () => (await status()) === "exited", "it ends");
  });

  test("every role ends with status 0 after SIGTERM, within its grace period", async () => {
    const stop = async (role: string) => {
      const seconds = Number.parseInt(service(role).stop_grace_period ?? "", 10);
      await done("stop", "--time", String(seconds), role);
      return done("inspect", role, "--format", "{{.State.ExitCode}} {{.State.OOMKilled}}");
    };
    const ended = await Promise.all(ROLES.map(async (role) => [role, await stop(role)]));
    expect(ended).toEqual(ROLES.map((role) => [role, "0 false"]));
  });

  test("`docker compose run --rm panel cli/main.ts reencrypt` seals the secrets again while no role runs", async () => {
    const { options, image } = runArguments(service("panel"), {
      ...SHELL,
      ENCRYPTION_KEY: "the-next-encryption-key",
      ENCRYPTION_KEY_PREVIOUS: SHELL.ENCRYPTION_KEY,
    });
    const own = ["--rm", "--no-healthcheck", "--network", NETWORK, ...addresses];
    const told = await done("run", ...own, ...options, image, "cli/main.ts", "reencrypt");
    expect(told).toMatch(/^[1-9]\d* secrets re-encrypted/m);
  });
});

/** Where `DOCKER_HOST` names an engine, the servers of tests are containers. */
test("tests of the store run against a Redis in a container of testcontainers", async () => {
  const socket = join(engine.folder, "podman.sock");
  const command = engine.command("system", "service", "--time", "0", `unix://${socket}`);
  const env = { ...process.env, ...engine.env };
  const api = Bun.spawn(command, { env, stdio: ["ignore", "ignore", "inherit"] });
  try {
    await eventually(() => existsSync(socket), "the engine has its socket");
    const told = await run([process.execPath, "test", STORE_TEST], {
      env: { DOCKER_HOST: `unix://${socket}`, TESTCONTAINERS_RYUK_DISABLED: "true" },
    });
    expect([told.status, told.errors]).toEqual([0, expect.stringMatching(/^ [1-9]\d* pass$/m)]);
    const events = await done(
      ...["events", "--stream=false", "--filter", "event=start", "--format", "{{.Image}}"],
    );
    expect(events).toContain(REDIS_IMAGE);
  } finally {
    api.kill();
    await api.exited;
  }
});

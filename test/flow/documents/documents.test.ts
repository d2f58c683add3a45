/** Every example of the documents is tried: here against a running product, or by the test that is named here. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Glob } from "bun";
import { COMMANDS } from "#cli/commands.ts";
import { VARIABLES } from "#core/platform/environment/variables.ts";
import { demoSetup } from "#demo/demo-setup.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { shipmentItem, signIn } from "#test/support/clients/merchant.ts";
import { commandsOf, DOCUMENTS, type Example, examplesIn } from "#test/support/documents.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { newProduct, PANEL_TOKEN, type Product } from "#test/support/product/product.ts";
import { freePort } from "#test/support/servers/free-port.ts";
import { TOOLS } from "#tools/tools.ts";

const API_KEY = "demo_key_aurora_shop";
/** Tests that read a document and try its examples of these languages. */
const TRIED_BY: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  "test/contract/operation/chart.test.ts": {
    "docs/operations/deploy.md": ["yaml"],
    "docs/operations/monitoring.md": ["yaml"],
  },
  "test/contract/benchmarks/api-promise.test.ts": { "docs/analytics.md": ["sql"] },
  "test/contract/events/ingest-reference.test.ts": { "docs/couriers.md": ["sh", "json"] },
  "test/contract/webhooks/webhooks-kit.test.ts": {
    "docs/webhooks.md": ["ts", "php", "python", "go", "java", "csharp", "ruby"],
  },
  "test/package/merchants/client-package.test.ts": {
    "client/README.md": ["ts"],
    "client/python/README.md": ["python"],
  },
};
/** Examples that nothing here can run, by how they begin. They are still checked as far as they can be. */
const NOT_RUN: ReadonlyArray<readonly [begin: string, reason: string]> = [
  ["import os\nimport clickhouse_connect", "needs a package of PyPI and a ClickHouse server"],
  ["import pandas", "needs a package of PyPI"],
  ["-- 1. As SHOW CREATE TABLE prints it", "needs a cluster of ClickHouse servers with rows"],
];
const EXAMPLES = DOCUMENTS.flatMap(examplesIn);

const isTriedElsewhere = ({ document, language }: Example) =>
  Object.values(TRIED_BY).some((documents) => documents[document]?.includes(language));
const isCurl = ({ language, code }: Example) =>
  language === "sh" && /^(TOKEN=\$\()?curl /.test(code);

let product: Product;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "waybill-documents-"));
  const setup = demoSetup("https://127.0.0.1:1", () => "http://127.0.0.1:1");
  const env = { WEBHOOK_ALLOWED_CIDRS: "127.0.0.0/8" };
  product = await newProduct(["bun", "cli/main.ts", "start", "--quiet"], setup, env);
  await product.start();
}, 300_000);

afterAll(async () => {
  await product.end();
  await rm(folder, { recursive: true, force: true });
}, 300_000);

/** A shell as a reader has it, but for the ports and the folder of this product. */
async function shell(code: string, env: Readonly<Record<string, string>> = {}) {
  const own = code
    .replaceAll("http://127.0.0.1:8080", product.api)
    .replaceAll("http://127.0.0.1:8081", product.ingest)
    .replaceAll("http://127.0.0.1:8082", product.panel)
    .replaceAll(".data/demo/", ".data/")
    .replaceAll(".data/", `${product.dataDir}/`);
  const common = { URL: product.api, API_KEY, PANEL_TOKEN, PUBLIC_URL: product.panel };
  const started = startCommand(["bash", "-euc", own], { ...common, ...env }, { cwd: folder });
  const { output, errors, status } = await outcomeOf(started);
  expect([code, errors, status]).toEqual([code, "", 0]);
  return output;
}

test("each example is tried here, by the test that is named for it, or has a reason", () => {
  const known = (example: Example) =>
    isTriedElsewhere(example) ||
    ["sh", "json", "jsonc"].includes(example.language) ||
    (example.document === "docs/start.md" && example.language === "js") ||
    NOT_RUN.some(([begin]) => example.code.startsWith(begin));
  expect(EXAMPLES.filter((example) => !known(example))).toEqual([]);
  const unused = NOT_RUN.filter(([begin]) => !EXAMPLES.some(({ code }) => code.startsWith(begin)));
  expect(unused).toEqual([]);
});

test("the tests that are named read those documents", async () => {
  for (const [path, documents] of Object.entries(TRIED_BY)) {
    const source = await Bun.file(path).text();
    for (const document of Object.keys(documents)) expect(source).toContain(document);
  }
});

describe("requests with curl", () => {
  const documents = Map.groupBy(EXAMPLES.filter(isCurl), ({ document }) => document);
  documents.delete("docs/couriers.md");

  test.each([...documents.keys()])(
    "of %s are answered as one who pastes them expects",
    async (name) => {
      const signInLine =
        `TOKEN=$(curl -s "$URL/v2/auth/token" -H 'content-type: application/json' ` +
        `-d '{"apiKey":"${API_KEY}"}' | node -p 'JSON.parse(fs.readFileSync(0)).token')`;
      for (const { code } of documents.get(name) ?? []) {
        const script = `${signInLine}\n${commandLines(code).join("\necho\n")}`;
        const answers = (await shell(script)).split("\n").filter((line) => line !== "");
        const bodies = answers.map((line) => JSON.parse(line));
        const isOutput = code.includes("TOKEN=$(") && commandLines(code).length === 1;
        expect([code, bodies.length > 0 || isOutput]).toEqual([code, true]);
        for (const body of bodies)
          expect([code, body.status ?? 0, body.message]).toEqual([code, 0, undefined]);
      }
    },
  );
});

/** Commands of several lines, such as a body in quotes, are one. */
function commandLines(code: string): string[] {
  return code.trim().split(/\n(?=curl |TOKEN=)/);
}

describe("the other commands", () => {
  const commands = EXAMPLES.filter((example) => example.language === "sh" && !isCurl(example))
    .filter(({ document }) => document !== "docs/couriers.md")
    .flatMap(({ document, code }) => commandsOf(code).map((command) => ({ document, command })));

  test("name scripts, files, charts and variables that are there", async () => {
    expect(commands.length).toBeGreaterThan(15);
    const faults = await Promise.all(commands.map(async ({ command }) => faultOf(command)));
    expect(faults.filter((fault) => fault !== null)).toEqual([]);
  });

  test("of SQL access are answered", async () => {
    const statements = commands.filter(({ command }) => command.startsWith('npx waybill sql "'));
    expect(statements.length).toBeGreaterThan(1);
    for (const { command } of statements) {
      await shell(command.replace("npx waybill", `${process.execPath} ${resolve("cli/main.ts")}`));
    }
    expect((await stat(join(folder, "performance.parquet"))).size).toBeGreaterThan(0);
  });
});

/** What `/v2/clients/` serves, in any version; `test/package` installs both. */
const CLIENT_PACKAGE = /^waybill(?:-client-[\d.]+\.tgz|_client-[\d.]+-py3-none-any\.whl)$/;

/** Of a command that is not run: the name in it that leads nowhere. */
async function faultOf(command: string): Promise<string | null> {
  const { scripts } = await Bun.file("package.json").json();
  const variables = [...command.matchAll(/(?:^|\s)([A-Z][A-Z0-9_]+)=/g)].map(
    ([, name = ""]) => name,
  );
  const strange = variables.find(
    (name) => !(name in VARIABLES) && !/^(SECRET|WAYBILL_(EMAIL|PASSWORD))$/.test(name),
  );
  if (strange !== undefined) return `${command}: ${strange} is no variable`;
  const program = command.replace(/^((export )?[A-Z][A-Z0-9_]*=(\$\([^)]*\)|\S+)\s*)+/, "");
  if (program === "") return null;
  const script = /^(?:npm|bun) run ([\w-]+)|^npm (start|test)\b/.exec(program);
  if (script) {
    const name = script[1] ?? script[2] ?? "";
    if (!(name in scripts)) return `${command}: no script ${name}`;
    const tool = /^npm run tool -- ([\w-]+)/.exec(program)?.[1];
    if (tool !== undefined && !(tool in TOOLS)) return `${command}: no tool ${tool}`;
    const path = /\btest\/[\w./-]+/.exec(program)?.[0];
    return path === undefined || (await exists(path)) ? null : `${command}: no ${path}`;
  }
  const [name = ""] = program.split(" ");
  if (name === ".ci/run") return (await exists(name)) ? null : `${command}: no ${name}`;
  if (name === "helm") return helmFault(command);
  if (name === "docker") return dockerFault(command);
  if (name === "npx") return npxFault(program);
  const [, file] = /^(?:npm|pip) install https:\/\/\S+\/v2\/clients\/(\S+)$/.exec(program) ?? [];
  if (file !== undefined) return CLIENT_PACKAGE.test(file) ? null : `${command}: no such package`;
  const isKnown = ["cat", "node", "kubectl"].includes(name);
  return isKnown ? null : `${command}: nothing here tries it`;
}

/** Of our program, or of the lint of every description that the ports serve. */
function npxFault(command: string): string | null {
  const [, name] = /^npx waybill (\w+)/.exec(command) ?? [];
  if (name !== undefined) return name in COMMANDS ? null : `${command}: no command ${name}`;
  const linted = [...command.matchAll(/http:\/\/[\d.:]+(\/\S+)/g)].map(([, path = ""]) => path);
  const isWhole = Bun.deepEquals(linted, [
    ...["/v1/openapi.json", "/v2/openapi.json"],
    ...["/panel/api/openapi.json", "/webhooks/asyncapi.json"],
  ]);
  const isLint = command.startsWith("npx @redocly/cli@");
  return isLint && isWhole ? null : `${command}: lints something else`;
}

async function helmFault(command: string): Promise<string | null> {
  const [, chart = "", settings = ""] = /^helm install \w+ (\S+) --set (\S+)$/.exec(command) ?? [];
  const values = Bun.YAML.parse(await Bun.file(join(chart, "values.yaml")).text()) as object;
  const [path = ""] = settings.split("=");
  let at: unknown = values;
  for (const key of path.split(".")) at = (at as Readonly<Record<string, unknown>>)?.[key];
  return at === undefined ? `${command}: the chart has no ${path}` : null;
}

/** `test/image` builds the image and runs the commands of its containers. */
async function dockerFault(command: string): Promise<string | null> {
  if (command === "docker build -t waybill .") return null;
  const [, service = "", name = ""] =
    /^docker compose exec (\w+) waybill (\w+)/.exec(command) ?? [];
  const { services } = Bun.YAML.parse(await Bun.file("compose.yaml").text()) as {
    readonly services: object;
  };
  return service in services && name in COMMANDS ? null : `${command}: nothing there to run`;
}

const exists = (path: string) =>
  stat(path)
    .then(() => true)
    .catch(() => false);

test("commands and files that the text names are there", async () => {
  const { scripts } = await Bun.file("package.json").json();
  const calls = [
    [/`(?:bun|npm) run ([\w-]+)/g, scripts],
    [/`npm run tool -- ([\w-]+)/g, TOOLS],
    [/`(?:npx )?waybill (\w+)/g, COMMANDS],
  ] as const;
  const missing: string[] = [];
  for (const document of [
    ...DOCUMENTS,
    "ARCHITECTURE.md",
    ...new Glob("docs/decisions/*.md").scanSync("."),
  ]) {
    const text = await Bun.file(document).text();
    for (const [pattern, known] of calls) {
      for (const [call, name = ""] of text.matchAll(pattern)) {
        if (!(name in known)) missing.push(`${document}: ${call}`);
      }
    }
    for (const [, path = ""] of text.matchAll(
      /`(?:bun )?((?:bench|test|start|deploy)\/[\w/.-]+\.\w+)/g,
    )) {
      if (!(await exists(path))) missing.push(`${document}: ${path}`);
    }
  }
  expect(missing).toEqual([]);
});

test("examples in JSON are well-formed, and setup files are ones that a setup takes", async () => {
  for (const { document, language, code } of EXAMPLES) {
    if (!language.startsWith("json")) continue;
    const bare = code.replace(/(^|[\s,])\/\/ .*$/gm, "$1");
    const isPart = !/^\s*\{/.test(bare);
    const parsed = JSON.parse(isPart ? `{${bare}}` : bare);
    if (parsed.companies === undefined) continue;
    const file = join(folder, "setup.json");
    await writeFile(file, bare);
    const env = { DATA_DIR: join(folder, "data"), LOG_LEVEL: "error" };
    const { output, status } = await outcomeOf(
      startCommand(["bun", "cli/main.ts", "setup", file], env),
    );
    expect([document, output, status]).toEqual([document, output, 0]);
  }
});

test("the receiver of the first five minutes verifies what listen brings it", async () => {
  const example = EXAMPLES.find(
    ({ document, language }) => document === "docs/start.md" && language === "js",
  );
  const port = String(await freePort());
  await writeFile(join(folder, "receiver.mjs"), example?.code.replace("3000", port) ?? "");
  const lines = EXAMPLES.filter(({ document }) => document === "docs/start.md").map(({ code }) =>
    code.trim(),
  );
  const secret = /SECRET=(\S+)/.exec(
    lines.find((code) => code.includes("receiver.mjs")) ?? "",
  )?.[1];
  const listen = lines.find((code) => code.includes("waybill listen")) ?? "";
  const receiver = startCommand(
    ["node", "receiver.mjs"],
    { SECRET: secret ?? "" },
    { cwd: folder },
  );
  const command = listen.replace(/^PANEL_TOKEN=\S+ \S+ /, "").replace("3000", port);
  const panel = { PANEL_TOKEN, WAYBILL_PANEL_URL: product.panel };
  const listening = startCommand(
    ["bash", "-c", `exec ${command.replace(/^.*?npx waybill/, "bun cli/main.ts")}`],
    panel,
  );
  try {
    const merchant = await signIn(product.api, API_KEY);
    const shipments = [shipmentItem("DOCUMENTS-1")];
    expect((await merchant.call("POST", "/v2/shipments", { shipments })).status).toBe(201);
    await says(listening, "listening to ep_");
    await says(receiver, "listening");
    const status = { code: "PAR", description: "Partita dalla sede mittente" };
    const credentials = { token: "demo_token_gls", secrets: ["demo_signing_gls"] };
    const sent = [event({ trackingNumber: "DOCUMENTS-1", status })];
    const { body } = await push(product.ingest, sent, credentials);
    expect(body.accepted).toBe(1);
    await says(receiver, "verified DOCUMENTS-1 DEPARTED");
  } finally {
    for (const child of [listening, receiver]) {
      child.kill();
      await child.exited;
    }
  }
}, 300_000);

/** Reads on until the program has printed the words. */
async function says({ stdout }: ReturnType<typeof startCommand>, words: string): Promise<void> {
  const reader = stdout.getReader();
  let text = "";
  while (!text.includes(words)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`it ended after: ${text}`);
    text += new TextDecoder().decode(value);
  }
  reader.releaseLock();
}

/** The merchants' package as it is published: built, alone with its one dependency, and its README's examples. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { sign } from "#core/domain/webhooks/signature.ts";
import { event, push } from "#test/support/courier.ts";
import { eventually } from "#test/support/eventually.ts";
import { freePort } from "#test/support/free-port.ts";
import { labelSetup } from "#test/support/label-setup.ts";
import { BARE, newProduct, type Product, productEnv } from "#test/support/product.ts";
import { WEBHOOK_SECRET } from "#test/support/setup.ts";

let product: Product;
let home: string;

const MODULES = resolve("node_modules");
const manifest = JSON.parse(await readFile("client/package.json", "utf8"));
const readme = await readFile("client/README.md", "utf8");

/** In the order of the README. */
const EXAMPLES = [...readme.matchAll(/## (.*)\n(?:(?!\n## )[\s\S])*?```ts\n([\s\S]*?)```/g)].map(
  ([, title = "", code = ""]) => ({
    title,
    code,
    file: `${title.toLowerCase().replaceAll(" ", "-")}.ts`,
  }),
);

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "waybill-client-"));
  const installed = join(home, "node_modules", manifest.name);
  await mkdir(installed, { recursive: true });
  const built = run("tsc", ["-p", "client", "--outDir", join(installed, "dist")], process.cwd());
  expect(built).toEqual({ status: 0, stdout: "", stderr: "" });
  await cp("client/package.json", join(installed, "package.json"));
  for (const name of ["openapi-fetch", "openapi-typescript-helpers"]) {
    await symlink(join(MODULES, name), join(home, "node_modules", name));
  }
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  for (const { file, code } of EXAMPLES) await writeFile(join(home, file), code);
  product = await newProduct(BARE, labelSetup());
  await product.start();
}, 120_000);

afterAll(async () => {
  await product.end();
  await rm(home, { recursive: true, force: true });
}, 60_000);

function environment(more: Readonly<Record<string, string>> = {}) {
  const own = productEnv();
  return {
    ...{ ...own, PATH: `${join(MODULES, ".bin")}:${own["PATH"]}` },
    ...{ WAYBILL_URL: product?.api ?? "", WAYBILL_API_KEY: "key_acme_main" },
    ...{ WAYBILL_WEBHOOK_SECRET: WEBHOOK_SECRET, ...more },
  };
}

function run(program: string, args: readonly string[], cwd = home) {
  const ran = spawnSync(program, args, { cwd, env: environment(), encoding: "utf8" });
  return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
}

/** Lines that an example prints. */
function printed(title: string): string[] {
  const file = EXAMPLES.find((example) => example.title === title)?.file ?? "none";
  const { status, stdout, stderr } = run("bun", [file]);
  expect(`${status} ${stderr}`).toBe("0 ");
  return stdout.trim().split("\n");
}

test("the package depends on openapi-fetch only, in the version that is tested here", async () => {
  const ours = JSON.parse(await readFile("package.json", "utf8"));
  expect(manifest.dependencies).toEqual({ "openapi-fetch": ours.devDependencies["openapi-fetch"] });
});

test("the built package runs on Node.js, from every path that it exports", () => {
  const names = Object.keys(manifest.exports).map((path) => path.replace(/^\./, manifest.name));
  const code = names.map((name) => `console.log(Object.keys(await import("${name}")).length > 0);`);
  const ran = run("node", ["--input-type=module", "-e", code.join("\n")]);
  expect(ran).toEqual({ status: 0, stdout: "true\n".repeat(names.length), stderr: "" });
});

test("the examples have the types that the package declares", async () => {
  const compilerOptions = {
    ...{ target: "ES2022", module: "NodeNext", strict: true, noEmit: true, skipLibCheck: true },
    ...{ types: ["node"], typeRoots: [join(MODULES, "@types")] },
  };
  const files = EXAMPLES.map(({ file }) => file);
  await writeFile(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
  expect(run("tsc", ["-p", "."])).toEqual({ status: 0, stdout: "", stderr: "" });
});

describe("the README's examples, against the running product", () => {
  test("Create shipments", () => {
    expect(printed("Create shipments")).toEqual(["README-1 success"]);
  });

  test("Import", () => {
    expect(printed("Import")).toEqual(["completed 300"]);
  });

  test("Print a label", async () => {
    const [name = ""] = printed("Print a label");
    expect(name).toMatch(/^label-\d+-1\.pdf$/);
    expect((await readFile(join(home, name))).subarray(0, 5).toString()).toBe("%PDF-");
  });

  test("Search and reconcile", async () => {
    const events = [event({ trackingNumber: "README-1" })];
    expect((await push(product.ingest, events)).status).toBe(200);
    const lines = await eventually(() => {
      const all = printed("Search and reconcile");
      return all.includes("changed README-1 IN_TRANSIT") && all;
    }, "the change is there");
    expect(lines.filter((line) => line.startsWith("waiting README-IMPORT-"))).toHaveLength(300);
    expect(lines.at(-1)).toMatch(/^next time from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  });

  test("Receive webhooks", async () => {
    const port = await freePort();
    const child = Bun.spawn(["bun", "receive-webhooks.ts"], {
      ...{ cwd: home, env: environment({ PORT: String(port) }), stdout: "pipe" },
    });
    const url = `http://127.0.0.1:${port}/`;
    await eventually(() => fetch(url).catch(() => null), "the receiver listens");
    const { body } = await Bun.file("docs/vectors/webhook-signature.json").json();
    const send = (signature: string) =>
      fetch(url, { method: "POST", body, headers: { "x-service-signature": signature } });
    const good = sign([WEBHOOK_SECRET], body, Date.now());
    const answers = [
      await send(good),
      await send(good),
      await send(sign(["other"], body, Date.now())),
    ];
    expect(answers.map(({ status }) => status)).toEqual([204, 204, 401]);
    child.kill();
    const lines = (await new Response(child.stdout).text()).trim().split("\n");
    expect(lines).toEqual(["listening", "TEST0000000001 IN_TRANSIT"]);
  });
});

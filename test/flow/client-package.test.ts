/** The merchants' packages as they are published: alone with what they depend on, and the examples of their READMEs. */
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

/** In the order of a README. */
function examplesOf(text: string, language: string, ending: string) {
  const blocks = new RegExp(
    `## (.*)\\n(?:(?!\\n## )[\\s\\S])*?\`\`\`${language}\\n([\\s\\S]*?)\`\`\``,
    "g",
  );
  return [...text.matchAll(blocks)].map(([, title = "", code = ""]) => ({
    title,
    code,
    file: `${title.toLowerCase().replaceAll(" ", "-")}.${ending}`,
  }));
}

const EXAMPLES = examplesOf(readme, "ts", "ts");
const PYTHON = Bun.which("python3");
const PYTHON_EXAMPLES = examplesOf(
  await readFile("client/python/README.md", "utf8"),
  "python",
  "py",
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
  for (const { file, code } of [...EXAMPLES, ...PYTHON_EXAMPLES]) {
    await writeFile(join(home, file), code);
  }
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
    ...{ WAYBILL_WEBHOOK_SECRET: WEBHOOK_SECRET, PYTHONPATH: resolve("client/python") },
    ...{ PYTHONDONTWRITEBYTECODE: "1", ...more },
  };
}

function run(program: string, args: readonly string[], cwd = home) {
  const ran = spawnSync(program, args, { cwd, env: environment(), encoding: "utf8" });
  return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
}

/** Lines that an example prints. */
function printed(title: string, program = "bun", examples = EXAMPLES): string[] {
  const file = examples.find((example) => example.title === title)?.file ?? "none";
  const { status, stdout, stderr } = run(program, [file]);
  expect(`${status} ${stderr}`).toBe("0 ");
  return stdout.trim().split("\n");
}

/** Lines that a receiver prints for two authentic webhooks with the same id and a forged one. */
async function received(command: string[]): Promise<string[]> {
  const port = await freePort();
  const env = environment({ PORT: String(port) });
  const child = Bun.spawn(command, { cwd: home, env, stdout: "pipe" });
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
  return (await new Response(child.stdout).text()).trim().split("\n");
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
    expect(await received(["bun", "receive-webhooks.ts"])).toEqual([
      ...["listening", "TEST0000000001 IN_TRANSIT"],
    ]);
  });
});

describe.skipIf(!PYTHON)("the examples of the Python package, against the running product", () => {
  const python = (title: string) => printed(title, "python3", PYTHON_EXAMPLES);

  test("Create shipments", () => {
    expect(python("Create shipments")).toEqual(["PYTHON-1 success"]);
  });

  test("Import", () => {
    expect(python("Import")).toEqual(["completed 150"]);
  });

  test("Print a label", async () => {
    const [name = ""] = python("Print a label");
    expect(name).toMatch(/^label-\d+-1\.pdf$/);
    expect((await readFile(join(home, name))).subarray(0, 5).toString()).toBe("%PDF-");
  });

  test("Search and reconcile", async () => {
    const events = [event({ trackingNumber: "PYTHON-1" })];
    expect((await push(product.ingest, events)).status).toBe(200);
    const lines = await eventually(() => {
      const all = python("Search and reconcile");
      return all.includes("changed PYTHON-1 IN_TRANSIT") && all;
    }, "the change is there");
    expect(lines.filter((line) => line.startsWith("waiting PYTHON-IMPORT-"))).toHaveLength(150);
    expect(lines.at(-1)).toMatch(/^next time from \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  });

  test("Receive webhooks", async () => {
    expect(await received(["python3", "receive-webhooks.py"])).toEqual([
      "TEST0000000001 IN_TRANSIT",
    ]);
  });

  test("tokens are renewed, a busy API is asked again after Retry-After, and an error has its code", () => {
    const code = `
import http.server, json, os, threading
from waybill_client import Client, WaybillError
calls = []
class Api(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {"token": str(len(calls)), "expires_in": 86400})
    def do_GET(self):
        refused = [401, 503, 404][min(len([1 for path, _ in calls if path != "/v2/auth/token"]), 2)]
        self.answer(refused, {"code": "SANDBOX_NOT_FOUND", "message": "There is none."})
    def answer(self, status, body):
        calls.append((self.path, self.headers.get("Authorization")))
        self.send_response(status)
        if status == 503: self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", 0), Api)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    Client(f"http://127.0.0.1:{server.server_port}", "key").request("GET", "/v2/sandbox/1")
except WaybillError as error:
    print(error.status, error.code, error)
for path, token in calls: print(path, token)
`;
    const { stdout, stderr } = run("python3", ["-c", code]);
    expect(`${stdout}${stderr}`.trim().split("\n")).toEqual([
      "404 SANDBOX_NOT_FOUND There is none.",
      ...["/v2/auth/token None", "/v2/sandbox/1 Bearer 0"],
      ...["/v2/auth/token None", "/v2/sandbox/1 Bearer 2", "/v2/sandbox/1 Bearer 2"],
    ]);
  });

  test("a webhook that is not authentic or too old is refused with the reason", async () => {
    const { body, signature, secrets, t } = await Bun.file(
      "docs/vectors/webhook-signature.json",
    ).json();
    const code = `
import json, sys
from waybill_client import SignatureError, verify_webhook
body, signature, old, new, t = json.loads(sys.argv[1])
for secret, raw, sign, now in [
    (new, body, signature, t), ([old, "x"], body, signature, t + 300), ("x", body, signature, t), ([], body, signature, t),
    (new, body + " ", signature, t), (new, body, signature, t + 301), (new, body, None, t), (new, body, "t=1e9,v1=zz", t),
]:
    try:
        print(verify_webhook(raw.encode(), sign, secret, now=now)["data"]["shipment"]["statusPlace"])
    except SignatureError as error:
        print(error.reason)
`;
    const args = JSON.stringify([body, signature, secrets.old, secrets.new, t]);
    const { stdout, stderr } = run("python3", ["-c", code, args]);
    expect(`${stdout}${stderr}`.trim().split("\n")).toEqual([
      ...["Forlì", "Forlì", "mismatch", "mismatch"],
      ...["mismatch", "expired", "malformed", "malformed"],
    ]);
  });
});

/**
 * The merchants' packages as they are installed from the API's port, and the examples of their READMEs. The programs of
 * `client/examples`, which need no package, are run as the product hands them out.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { publint } from "publint";
import { sign } from "#core/webhooks/rules/signature.ts";
import { event, push } from "#test/support/clients/courier.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { WEBHOOK_SECRET } from "#test/support/data/setup.ts";
import { eventually } from "#test/support/eventually.ts";
import { type Product, productEnv, startProduct } from "#test/support/product/product.ts";
import { freePort } from "#test/support/servers/free-port.ts";

let product: Product;
/** What the page of the packages names, in turn. */
let packages: { readonly npm: string; readonly wheel: string };
const home = await mkdtemp(join(tmpdir(), "waybill-client-"));
const VENV = join(home, "venv");

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
const PROGRAMS = ["merchant.ts", "merchant.py", "courier.ts", "courier.py"].map((name) =>
  name.startsWith("merchant") ? `/v2/examples/${name}` : `/v1/examples/${name}`,
);
const PYTHONS = ["3.11", "3.12", "3.13"];
/** Where Python's versions are kept side by side, the environment names the one that is meant. */
const pythonOf = (version: string): string | null => {
  const command = [`python${version}`, "-c", "import venv, sys; print(sys.executable)"];
  const found = Bun.spawnSync(command, {
    env: { ...productEnv(), PYENV_VERSION: version },
    stderr: "ignore",
  });
  return found.exitCode === 0 ? found.stdout.toString().trim() : null;
};
const INSTALLED = new Map(PYTHONS.map((version) => [version, pythonOf(version)]));
const PYTHON = [...INSTALLED.values()].find((one) => one !== null) ?? null;
const PYTHON_EXAMPLES = examplesOf(
  await readFile("client/python/README.md", "utf8"),
  "python",
  "py",
);

beforeAll(async () => {
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  for (const { file, code } of [...EXAMPLES, ...PYTHON_EXAMPLES]) {
    await writeFile(join(home, file), code);
  }
  const setup = labelSetup();
  Object.assign(setup.couriers?.[0] ?? {}, { signatureRequired: true });
  product = await startProduct(setup);
  packages = await packagesOf(product.api);
  succeed("npm", ["install", "--no-audit", "--no-fund", packages.npm]);
  if (PYTHON) installPython(PYTHON, VENV);
  for (const path of PROGRAMS) {
    const answer = await fetch(`${path.startsWith("/v1") ? product.ingest : product.api}${path}`);
    await writeFile(join(home, path.split("/").at(-1) ?? ""), await answer.text());
  }
}, 300_000);

afterAll(async () => {
  await product.end();
  await rm(home, { recursive: true, force: true });
}, 300_000);

/** As the courier must sign. */
const SIGNED = { secrets: ["sig_gls_1"] };

function environment(more: Readonly<Record<string, string>> = {}) {
  const own = productEnv();
  return {
    ...own,
    PATH: `${VENV}/bin:${join(MODULES, ".bin")}:${own["PATH"]}`,
    WAYBILL_URL: product?.api ?? "",
    WAYBILL_API_KEY: "key_acme_main",
    WAYBILL_WEBHOOK_SECRET: WEBHOOK_SECRET,
    ...more,
  };
}

function run(program: string, args: readonly string[], cwd = home, more: RunOptions = {}) {
  const { input, env = {} } = more;
  const ran = spawnSync(program, args, {
    cwd,
    env: environment(env),
    encoding: "utf8",
    ...(input !== undefined && { input }),
  });
  return { status: ran.status, stdout: ran.stdout, stderr: ran.stderr };
}

/** Longer than a program waits by itself before a third attempt. */
const RETRY_AFTER_SECONDS = 5;

interface Call {
  readonly path: string;
  readonly key: string | string[] | undefined;
  readonly atMs: number;
}

/** A proxy before the API: logins work the second time, other calls reach it the third time, and only the fourth is answered. */
async function unsteadyWay(to: string) {
  const calls: Call[] = [];
  const server = createServer(async (request, response) => {
    const { url: path = "", method = "" } = request;
    const key = request.headers["idempotency-key"];
    calls.push({ path, key, atMs: performance.now() });
    const count = calls.filter((call) => call.path === path).length;
    const isLogin = path === "/v2/auth/token";
    const body = await Array.fromAsync(request);
    if (count === 1) return response.writeHead(502).end("<h1>Bad gateway</h1>");
    if (count === 2 && !isLogin) {
      return response.writeHead(429, { "retry-after": String(RETRY_AFTER_SECONDS) }).end();
    }
    const headers = request.headers as Record<string, string>;
    const answer = await fetch(to + path, { method, headers, body: Buffer.concat(body) });
    const bytes = await answer.bytes();
    response.writeHead(answer.status, { "content-length": bytes.length });
    if (isLogin || count > 3) return response.end(bytes);
    return response.write(bytes.subarray(0, bytes.length / 2), () => response.destroy());
  });
  const port = await freePort();
  await new Promise<void>((done) => server.listen(port, "127.0.0.1", done));
  return {
    calls,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}

/** @returns what it printed */
function succeed(program: string, args: readonly string[], cwd = home): string {
  const { status, stdout, stderr } = run(program, args, cwd);
  expect(`${program} ${args.join(" ")}: ${status} ${status === 0 ? "" : stderr}`).toEndWith(": 0 ");
  return stdout.trim();
}

/** The two addresses that the page says to install. */
async function packagesOf(api: string) {
  const page = await (await fetch(`${api}/v2/clients/`)).text();
  const [, npm = ""] = /npm install (\S+\.tgz)/.exec(page) ?? [];
  const [, wheel = ""] = /pip install (\S+\.whl)/.exec(page) ?? [];
  return { npm, wheel };
}

/** In a new virtual environment. What the wheel depends on is the copy that pip itself brings: the machine needs no index of packages. */
function installPython(python: string, venv: string): void {
  succeed(python, ["-m", "venv", venv]);
  const program = `
import importlib.metadata, pathlib, re, shutil, sysconfig
from pip._vendor import urllib3
site = pathlib.Path(sysconfig.get_path("purelib"))
shutil.copytree(pathlib.Path(urllib3.__file__).parent, site / "urllib3")
info = site / f"urllib3-{urllib3.__version__}.dist-info"
info.mkdir()
(info / "METADATA").write_text(f"Metadata-Version: 2.1\\nName: urllib3\\nVersion: {urllib3.__version__}\\n")
`;
  succeed(join(venv, "bin/python"), ["-c", program]);
  succeed(join(venv, "bin/pip"), ["install", "--quiet", "--no-index", packages.wheel]);
}

interface RunOptions {
  /** Standard input. */
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
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

/** What both forms of the package say of themselves. */
const SAY = "console.log(typeof createClient, WaybillError.name, typeof verifyWebhook);";
const USES = {
  "uses.mjs": `import { createClient, WaybillError } from "waybill-client";
import { verifyWebhook } from "waybill-client/webhooks";
${SAY}`,
  "uses.cjs": `const { createClient, WaybillError } = require("waybill-client");
const { verifyWebhook } = require("waybill-client/webhooks");
${SAY}`,
};
const SAYS = "function WaybillError function";

describe("the package for npm", () => {
  test("is installed alone: it depends on nothing", async () => {
    const installed = await readdir(join(home, "node_modules"));
    expect(installed.filter((name) => !name.startsWith("."))).toEqual([manifest.name]);
  });

  test("has its code in both forms with its types, the README, the licence, and nothing else", async () => {
    const folder = join(home, "node_modules", manifest.name);
    const files = (await readdir(folder, { recursive: true, withFileTypes: true }))
      .filter((file) => file.isFile())
      .map((file) => join(file.parentPath, file.name).slice(folder.length + 1));
    const sources = (await readdir("client/src", { recursive: true }))
      .filter((file) => file.endsWith(".ts"))
      .map((file) => file.replace(/\.ts$/, ""));
    const code = ["commonjs", "module"].flatMap((form) => [
      `dist/${form}/package.json`,
      ...sources.flatMap((name) => [`dist/${form}/${name}.d.ts`, `dist/${form}/${name}.js`]),
    ]);
    expect(files.sort()).toEqual(["LICENSE", "README.md", "package.json", ...code].sort());
    const program = await readFile(join(folder, manifest.bin.waybill), "utf8");
    expect(program).toStartWith("#!/usr/bin/env node\n");
    expect(succeed("npx", ["--no-install", "waybill", "--help"])).toStartWith("usage: waybill");
  });

  test("is what publint and attw ask of a package", async () => {
    const tarball = await (await fetch(packages.npm)).arrayBuffer();
    const { messages } = await publint({ pack: { tarball }, strict: true });
    expect(messages).toEqual([]);
    const analysis = await checkPackage(createPackageFromTarballData(new Uint8Array(tarball)));
    expect(analysis).toMatchObject({ types: { kind: "included" }, problems: [] });
  });

  test("runs on this machine's Node.js, on Bun, and out of a bundler", async () => {
    const files = Object.entries(USES);
    for (const [file, code] of files) await writeFile(join(home, file), code);
    const bundling = ["build", "uses.mjs", "--target=browser", "--outfile=bundled.mjs"];
    succeed("bun", bundling);
    const calls = [
      "node uses.mjs",
      "node uses.cjs",
      "bun uses.mjs",
      "bun uses.cjs",
      "node bundled.mjs",
    ];
    for (const call of calls) expect([call, succeed("sh", ["-c", call])]).toEqual([call, SAYS]);
  });

  test.each(["node@22", "node@24"])("runs on %s as module and as CommonJS", (runtime) => {
    const command = ["--yes", `--package=${runtime}`, "-c", "node uses.mjs && node uses.cjs"];
    expect(succeed("npx", command)).toBe(`${SAYS}\n${SAYS}`);
  });

  test("runs on Deno", () => {
    const command = ["--yes", "deno@2", "run", "--node-modules-dir=manual", "uses.mjs"];
    expect(succeed("npx", command)).toBe(SAYS);
  });
});

describe("the wheel", () => {
  for (const [version, python] of INSTALLED) {
    test.skipIf(python === null)(`is installed on Python ${version}, with what it needs`, () => {
      const venv = join(home, `venv-${version}`);
      installPython(python ?? "", venv);
      const code = "import waybill_client; print(waybill_client.__file__, *waybill_client.__all__)";
      const [file = "", ...names] = succeed(join(venv, "bin/python"), ["-c", code]).split(" ");
      expect(file).toStartWith(venv);
      expect(names).toContain("WaybillError");
      expect(succeed(join(venv, "bin/pip"), ["check"])).toBe("No broken requirements found.");
    });
  }
});

test.each([
  ["node16", "node16"],
  ["ESNext", "bundler"],
])(
  "the examples have the types that the package declares, with module %s and its resolution %s",
  async (module, moduleResolution) => {
    const compilerOptions = {
      target: "ES2022",
      module,
      moduleResolution,
      strict: true,
      noEmit: true,
      skipLibCheck: true,
      types: ["node"],
      typeRoots: [join(MODULES, "@types")],
    };
    const files = [...EXAMPLES.map(({ file }) => file), "merchant.ts", "courier.ts"];
    await writeFile(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions, files }));
    expect(run("tsc", ["-p", "."])).toEqual({ status: 0, stdout: "", stderr: "" });
  },
);

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
    expect((await push(product.ingest, events, SIGNED)).status).toBe(200);
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
    expect((await push(product.ingest, events, SIGNED)).status).toBe(200);
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

  test("tokens are renewed, a busy API is asked again after Retry-After, and an error says what is wrong, on one connection", () => {
    const code = `
import http.server, json, threading
from waybill_client import Client, WaybillError
calls = []
class Api(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, {"token": str(len(calls)), "expires_in": 86400})
    def do_GET(self):
        refused = [401, 503, 422][min(len([1 for path, *_ in calls if path != "/v2/auth/token"]), 2)]
        violation = {"path": "limit", "code": "OUT_OF_RANGE", "message": "Must be at least 1."}
        self.answer(refused, {"code": "VALIDATION_FAILED", "detail": "1 violation.", "violations": [violation], "requestId": "r-1"})
    def answer(self, status, body):
        raw = json.dumps(body).encode()
        calls.append((self.path, self.headers.get("Authorization"), self.client_address))
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        if status == 503: self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(raw)
    def log_message(self, *args): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    Client(f"http://127.0.0.1:{server.server_port}", "key").request("GET", "/v2/sandbox/1")
except WaybillError as error:
    print(error.status, error.code, error, error.violations[0]["code"], error.request_id)
for path, token, _ in calls: print(path, token)
print(len({address for *_, address in calls}))
`;
    const { stdout, stderr } = run("python3", ["-c", code]);
    expect(`${stdout}${stderr}`.trim().split("\n")).toEqual([
      "422 VALIDATION_FAILED 1 violation. limit: Must be at least 1. OUT_OF_RANGE r-1",
      ...["/v2/auth/token None", "/v2/sandbox/1 Bearer 0"],
      ...["/v2/auth/token None", "/v2/sandbox/1 Bearer 2", "/v2/sandbox/1 Bearer 2"],
      "1",
    ]);
  });

  test("neither key nor token follows a redirect", () => {
    const code = `
import http.server, threading
from waybill_client import Client, WaybillError
calls = []
class Proxy(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        calls.append(self.server)
        self.send_response(307)
        self.send_header("Location", f"http://127.0.0.1:{other.server_port}/")
        self.end_headers()
    def log_message(self, *args): pass
proxy, other = (http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) for _ in range(2))
for server in (proxy, other): threading.Thread(target=server.serve_forever, daemon=True).start()
try:
    Client(f"http://127.0.0.1:{proxy.server_port}", "key").request("GET", "/v2/orders")
except WaybillError as error:
    print(error.status, error.code, calls == [proxy])
`;
    const { stdout, stderr } = run("python3", ["-c", code]);
    expect(`${stdout}${stderr}`.trim()).toBe("307 UNKNOWN True");
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

describe.each([
  ["TypeScript", "bun", "ts"],
  ["Python", "python3", "py"],
])("the whole programs in %s, as the service hands them out", (language, program, ending) => {
  const isMissing = Bun.which(program) === null;
  const numbers = [1, 2, 3].map((n) => `${language}-program-${n}`);
  const said = (name: string, args: readonly string[], options: RunOptions = {}) => {
    const { status, stdout, stderr } = run(program, [`${name}.${ending}`, ...args], home, options);
    return { status, lines: stdout.trim().split("\n"), stderr };
  };
  const courier = {
    WAYBILL_TOKEN: "tok_gls_1",
    WAYBILL_SIGNING_SECRET: "sig_gls_1",
    WAYBILL_COURIER: "GLS_ITA",
  };
  const send = (events: readonly object[], env: Readonly<Record<string, string>> = {}) =>
    said("courier", [], {
      input: events.map((one) => `${JSON.stringify(one)}\n`).join(""),
      env: { ...courier, WAYBILL_URL: product.ingest, ...env },
    });

  test.skipIf(isMissing)("a merchant imports, and the same import again creates nothing", () => {
    const shipments = numbers.map((trackingNumber) => ({
      trackingNumber,
      courier: "GLS_ITA",
      shipDate: "2026-11-10",
    }));
    const input = JSON.stringify([...shipments, { ...shipments[0], courier: "NOBODY" }]);
    for (const _ of ["once", "again"]) {
      const { status, lines, stderr } = said("merchant", ["import"], { input });
      expect([status, lines]).toEqual([0, ["completed 3 created 1 refused"]]);
      expect(stderr).toContain("INVALID_COURIER");
    }
  });

  test.skipIf(isMissing)(
    "a courier sends signed batches of 500 at most, and learns what is wrong with an event",
    () => {
      const events = Array.from({ length: 501 }, (_, n) =>
        event({ trackingNumber: numbers[n] ?? `${language}-nobody` }),
      );
      const bad = { ...event(), occurredAt: "yesterday" };
      expect(send([...events, bad], { VALIDATE: "1" })).toMatchObject({ status: 0 });
      const { lines, stderr } = send([...events, bad]);
      expect(lines).toEqual([
        "accepted 3, duplicate 0, unknown 497, invalid 0",
        "accepted 0, duplicate 0, unknown 1, invalid 1",
      ]);
      expect(stderr).toContain("BAD_FORMAT");
      expect(send(events.slice(0, 1)).lines).toEqual([
        "accepted 0, duplicate 1, unknown 0, invalid 0",
      ]);
      const forged = send(events.slice(0, 1), { WAYBILL_SIGNING_SECRET: "another" });
      expect([forged.status === 0, forged.lines]).toEqual([false, [""]]);
      expect(forged.stderr).toContain("BAD_SIGNATURE");
    },
  );

  test.skipIf(isMissing)("a merchant reconciles what the courier has sent", async () => {
    const lines = await eventually(() => {
      const all = said("merchant", ["reconcile", "2026-11-01 00:00:00"]).lines;
      const moved = numbers.filter((number) =>
        all.some((line) => line.startsWith(`${number} IN_`)),
      );
      return moved.length === numbers.length && all;
    }, "the changes are there");
    const since = /^next time from (.+)$/.exec(lines.at(-1) ?? "")?.[1] ?? "";
    expect(lines.at(-2)).toEndWith(since);
  });

  test.skipIf(isMissing)("a merchant prints a label, and gets the same one again", async () => {
    const input = JSON.stringify(labelBody({ reference: `${language}-1` }));
    const [name = ""] = said("merchant", ["print"], { input }).lines;
    expect((await readFile(join(home, name))).subarray(0, 5).toString()).toBe("%PDF-");
    expect(said("merchant", ["print"], { input }).lines).toEqual([name]);
  });

  test.skipIf(isMissing)(
    "a merchant confirms labels, and is shown the same transmission again",
    async () => {
      const input = JSON.stringify(labelBody({ reference: `${language}-2` }));
      const id = /\d+/.exec(said("merchant", ["print"], { input }).lines[0] ?? "")?.[0] ?? "";
      const first = said("merchant", ["confirm", "GENERIC", id]);
      const again = said("merchant", ["confirm", "GENERIC", id]);
      const counts = ["1 confirmed, 0 confirmed before", "0 confirmed, 1 confirmed before"];
      expect([first.lines[0], again.lines[0]]).toEqual(counts);
      expect(first.lines[1]).toMatch(new RegExp(`^T\\d{9} ${id} http`));
      expect(again.lines[1]).toBe(first.lines[1]);
      const slip = await fetch(first.lines[1]?.split(" ").at(-1) ?? "");
      expect(slip.headers.get("content-type")).toBe("application/pdf");
      const { status, stderr } = said("merchant", ["confirm", "GENERIC", id, "999999"]);
      expect([status, stderr.trim()]).toEqual([1, "not found: 999999"]);
    },
  );

  test.skipIf(isMissing)(
    "a merchant repeats under the same key what a 5xx, a 429 or a lost connection answers",
    async () => {
      await using way = await unsteadyWay(product.api);
      const env = environment({ WAYBILL_URL: way.url });
      const child = Bun.spawn([program, `merchant.${ending}`, "print"], {
        cwd: home,
        env,
        stdout: "pipe",
        stdin: new Blob([JSON.stringify(labelBody({ reference: `${language}-3` }))]),
      });
      const lines = (await new Response(child.stdout).text()).trim().split("\n");
      expect([await child.exited, lines.length]).toEqual([0, 1]);
      expect(lines[0]).toMatch(/^label-\d+-1\.pdf$/);
      const logins = way.calls.filter(({ path }) => path === "/v2/auth/token");
      const prints = way.calls.filter(({ path }) => path === "/v2/labels");
      expect([logins.length, prints.length]).toEqual([2, 4]);
      expect(new Set(prints.map(({ key }) => key)).size).toBe(1);
      expect(prints[0]?.key).toMatch(/^[0-9a-f]{64}$/);
      // Longer than the wait before a third attempt without it.
      expect((prints[2]?.atMs ?? 0) - (prints[1]?.atMs ?? 0)).toBeGreaterThanOrEqual(
        1_000 * RETRY_AFTER_SECONDS,
      );
    },
    300_000,
  );

  test.skipIf(isMissing)(
    "a merchant receives a webhook once, and none that is forged",
    async () => {
      const lines = await received([program, `merchant.${ending}`, "receive"]);
      expect(lines.at(-1)).toBe("TEST0000000001 IN_TRANSIT");
    },
  );
});

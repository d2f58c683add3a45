/** The control panel's application as files: its shell, what the shell allows, and how much the first page takes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PAGE_PATHS } from "#panel/web/paths.ts";
import { webBundle } from "#panel/web-bundle.ts";
import { openTestPanel, type TestPanel } from "#test/support/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

/** Issue "The control panel", "Speed": gzipped, for the first route. */
const FIRST_ROUTE_BYTES = 350_000;

let runtime: TestRuntime;
let panel: TestPanel;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await openTestPanel(runtime);
}, 60_000);

afterAll(async () => {
  await panel?.end();
  await runtime?.end();
});

const get = (path: string, headers: Record<string, string> = {}) =>
  panel.handle(new Request(`http://localhost${path}`, { headers }));

/** The files that the shell itself names. */
async function firstFiles(): Promise<string[]> {
  const page = await (await get("/")).text();
  return [...page.matchAll(/(?:href|src)="(\/assets\/[^"]+)"/g)].map(([, path = ""]) => path);
}

describe("the shell", () => {
  test("stands at the address of every page, without credentials and without data", async () => {
    for (const path of PAGE_PATHS) {
      const answer = await get(path.replace(/:\w+/, "1"));
      expect([path, answer.status]).toEqual([path, 200]);
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(await answer.text()).toContain('<div id="root"></div>');
    }
  });

  test("stands at no address that the application has no page for, and at each that it has one", async () => {
    const router = await Bun.file(new URL("../../panel/web/router.tsx", import.meta.url)).text();
    const routed = [...router.matchAll(/^ {2}path: "([^"]+)",$/gm)].map(([, path = ""]) =>
      path.replaceAll("$", ":"),
    );
    expect(routed.toSorted()).toEqual(PAGE_PATHS.toSorted());
  });

  test("allows nothing of other hosts and no inline script, and its nonce is never given twice", async () => {
    const policies = new Set<string>();
    for (let at = 0; at < 2; at += 1) {
      const answer = await get("/");
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self';");
      expect(policy).not.toMatch(/unsafe|https?:|\*/);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const nonce = /'nonce-([^']+)'/.exec(policy)?.[1] ?? "none";
      expect(await answer.text()).toContain(`nonce="${nonce}"`);
      policies.add(policy);
    }
    expect(policies.size).toBe(2);
  });

  test("is where the links of older alert mails lead", async () => {
    const answer = await get("/panel/webhooks/ep_1%2F..");
    expect([answer.status, answer.headers.get("location")]).toEqual([308, "/webhooks/ep_1%2F.."]);
  });

  test("leaves the paths that stood there before alone", async () => {
    for (const path of ["/ips.txt", "/healthz", "/webhooks/asyncapi.json"]) {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(await answer.text()).not.toContain('id="root"');
    }
    expect((await get("/t/unknown")).status).toBe(404);
    expect((await get("/panel/api/overview")).status).toBe(401);
  });

  test("stands at an address that does not exist too, as 404, for browsers only", async () => {
    const person = await get("/nothing/here", { accept: "text/html,*/*" });
    expect([person.status, (await person.text()).includes('id="root"')]).toEqual([404, true]);
    const program = await get("/nothing/here", { accept: "*/*" });
    expect([program.status, await program.json()]).toMatchObject([404, { code: "NOT_FOUND" }]);
  });
});

describe("the application's files", () => {
  test("are named by their content, kept for ever, and zipped for those who take it", async () => {
    const [path = ""] = await firstFiles();
    const plain = await get(path);
    const zipped = await get(path, { "accept-encoding": "gzip, br" });
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    for (const answer of [plain, zipped]) {
      expect(answer.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(answer.headers.get("vary")).toBe("accept-encoding");
    }
    const unzipped = Bun.gunzipSync(await zipped.arrayBuffer());
    expect(Buffer.compare(unzipped, await plain.bytes())).toBe(0);
    expect((await get("/assets/nothing.js")).status).toBe(404);
    expect((await get("/assets/..%2f..%2fpackage.json")).status).toBe(404);
  });

  test(`of the first route take less than ${FIRST_ROUTE_BYTES / 1_000} kB`, async () => {
    const waiting = await firstFiles();
    const seen = new Set<string>();
    let bytes = 0;
    for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
      if (seen.has(path)) continue;
      seen.add(path);
      bytes += (await (await get(path, { "accept-encoding": "gzip" })).bytes()).length;
      const text = await (await get(path)).text();
      // What a script imports at once; `import(…)` is loaded when it is needed.
      for (const [, name = ""] of text.matchAll(/(?:from|import)"(\/assets\/[^"]+)"/g)) {
        waiting.push(name);
      }
    }
    expect(seen.size).toBeGreaterThanOrEqual(2);
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(FIRST_ROUTE_BYTES);
  });

  test("are bundled once, and kept for the next start", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "waybill-web-"));
    const build = `const { webBundle } = await import("#panel/web-bundle.ts");
      console.log((await webBundle(process.argv[1])).script);`;
    const run = () =>
      Bun.$`bun -e ${build} ${dataDir}`.cwd(join(import.meta.dir, "..", "..")).text();
    const first = await run();
    const [kept = ""] = await readdir(join(dataDir, "panel-web"));
    const file = join(dataDir, "panel-web", kept, first.trim());
    await Bun.write(file, "kept");
    expect(await run()).toBe(first);
    expect(await Bun.file(file).text()).toBe("kept");
    expect((await webBundle(runtime.config.dataDir)).script).toBe(first.trim());
    await rm(dataDir, { recursive: true });
  });
});

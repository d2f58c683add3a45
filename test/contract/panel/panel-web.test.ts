/** The control panel's application as files: its shell, what the shell allows, and how much the first page takes. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { webBundle } from "#panel/server/pages/web-bundle.ts";
import { PAGE_PATHS } from "#panel/web/paths.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestPanel, type TestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";

/** Of scripts and styles, gzipped, with the words of either language. */
const FIRST_ROUTE_BYTES = 250_000;

let runtime: TestRuntime;
let panel: TestPanel;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  panel = await openTestPanel(runtime);
}, 300_000);

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
    const router = await Bun.file(new URL("../../../panel/web/router.tsx", import.meta.url)).text();
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

describe("the first calls of a page", () => {
  test("are asked for with the page by those who are logged in, and by nobody else", async () => {
    const callsOf = async (path: string, headers = {}) => {
      const page = await (await get(path, headers)).text();
      return [...page.matchAll(/rel="preload" as="fetch" crossorigin href="([^"]+)"/g)].map(
        ([, call]) => call,
      );
    };
    const session = { cookie: "waybill_session=1" };
    expect(await callsOf("/overview", session)).toEqual(["/panel/api/me", "/panel/api/overview"]);
    expect(await callsOf("/webhooks/1", session)).toEqual(["/panel/api/me"]);
    expect(await callsOf("/quality/1", session)).toEqual([]);
    expect(await callsOf("/overview")).toEqual([]);
  });
});

describe("the application's files", () => {
  test("are named by their content, kept for ever, and compressed for those who take it", async () => {
    const [path = ""] = await firstFiles();
    const plain = await get(path);
    expect(plain.headers.get("content-encoding")).toBeNull();
    const body = await plain.bytes();
    const codings = [
      ["gzip", "gzip", gunzipSync],
      ["gzip, deflate, br, zstd", "br", brotliDecompressSync],
      ["br;q=0, gzip", "gzip", gunzipSync],
    ] as const;
    for (const [accepted, coding, decode] of codings) {
      const coded = await get(path, { "accept-encoding": accepted });
      expect([accepted, coded.headers.get("content-encoding")]).toEqual([accepted, coding]);
      expect(Buffer.compare(decode(await coded.bytes()), body)).toBe(0);
      expect(coded.headers.get("content-type")).toBe(plain.headers.get("content-type"));
      expect(coded.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      expect(coded.headers.get("vary")).toBe("accept-encoding");
    }
    expect((await get("/assets/nothing.js")).status).toBe(404);
    expect((await get("/assets/..%2f..%2fpackage.json")).status).toBe(404);
  });

  test(`of the first route take less than ${FIRST_ROUTE_BYTES / 1_000} kB`, async () => {
    const { assets } = await webBundle(runtime.config.dataDir);
    // One of them is loaded before anything is drawn: the longer.
    const words = [...assets.keys()].filter((name) => /^(en|it)-/.test(name));
    expect(words.length).toBe(2);
    const wordsOf = (name: string) => assets.get(name)?.coded.gzip.length ?? 0;
    const longer = words.toSorted((one, other) => wordsOf(other) - wordsOf(one))[0];
    const waiting = [...(await firstFiles()), `/assets/${longer}`];
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
    const script = await (await get([...seen].find((path) => path.endsWith(".js")) ?? "")).text();
    // The page itself is part of it with its charts, and the library for other charts is not.
    expect(script).toContain("/panel/api/overview/stream");
    expect(script).toContain("data-series");
    expect(script).not.toContain("recharts-wrapper");
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(FIRST_ROUTE_BYTES);
  });

  test("hold every style of a component that the scripts name, and none of the others", async () => {
    const { assets, styles } = await webBundle(runtime.config.dataDir);
    const textOf = (name: string) => new TextDecoder().decode(assets.get(name)?.body);
    const classesOf = (text: string) => new Set(text.match(/\bm_[\da-f]{7,8}\b/g));
    const names = [...assets.keys()].filter((name) => name.endsWith(".js"));
    const used = classesOf(names.map(textOf).join(""));
    const kept = classesOf(styles.map(textOf).join(""));
    const packages = ["core", "dates", "charts", "notifications"];
    const whole = await Promise.all(
      packages.map((name) => Bun.file(`node_modules/@mantine/${name}/styles.css`).text()),
    );
    const styled = classesOf(whole.join(""));
    expect([...used].filter((name) => styled.has(name) && !kept.has(name))).toEqual([]);
    expect(kept.size).toBeLessThan(styled.size);
    expect(textOf(styles[0] ?? "")).toContain("--mantine-color-body");
  });

  test("are bundled once by processes that start together on one folder, and kept for the next start", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "waybill-web-"));
    const build = `const { webBundle } = await import("#panel/server/pages/web-bundle.ts");
      console.log((await webBundle(process.argv[1])).script);`;
    const run = () =>
      Bun.$`bun -e ${build} ${dataDir}`.cwd(join(import.meta.dir, "..", "..", "..")).text();
    const [first = "", ...others] = await Promise.all([run(), run(), run()]);
    expect(others).toEqual([first, first]);
    const [kept = "", ...besides] = await readdir(join(dataDir, "panel-web"));
    expect(besides).toEqual([]);
    const file = join(dataDir, "panel-web", kept, first.trim());
    await Bun.write(file, "kept");
    expect(await run()).toBe(first);
    expect(await Bun.file(file).text()).toBe("kept");
    expect((await webBundle(runtime.config.dataDir)).script).toBe(first.trim());
    await rm(dataDir, { recursive: true });
  });
});

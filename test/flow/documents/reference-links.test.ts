/** Every address that the references and the errors show can be followed, on other ports and under a public address too. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { startApi } from "#api/main.ts";
import type { Running, StartRole } from "#core/runtime/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { startPanel } from "#panel/main.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/product/runtime.ts";
import { freePort } from "#test/support/servers/free-port.ts";

let runtime: TestRuntime;
const roles: Running[] = [];
/** The panel as recipients and merchants reach it. */
let outside: Bun.Server<undefined>;

const urlOf = (role: string) => roles.find(({ name }) => name === role)?.url ?? "";

beforeAll(async () => {
  const port = await freePort();
  runtime = await openTestRuntime(testSetup(), { PUBLIC_URL: `http://localhost:${port}` });
  const starts: StartRole[] = [startIngest, startApi, startPanel];
  for (const start of starts) roles.push(await start(runtime, roles));
  outside = Bun.serve({
    port,
    hostname: "localhost",
    fetch: ({ url }) => {
      const { pathname, search } = new URL(url);
      return fetch(urlOf("panel") + pathname + search, { redirect: "manual", decompress: false });
    },
  });
}, 300_000);
afterAll(async () => {
  await outside.stop(true);
  for (const { stop } of roles.reverse()) await stop();
  await runtime.end();
}, 300_000);

interface Found {
  readonly status: number;
  readonly text: string;
  readonly isPage: boolean;
}

function reader() {
  const pages = new Map<string, Promise<Found>>();
  return (address: string): Promise<Found> => {
    const known = pages.get(address) ?? read(address);
    pages.set(address, known);
    return known;
  };
}

async function read(address: string): Promise<Found> {
  const answer = await fetch(address, { headers: { accept: "text/html" } });
  const isPage = answer.headers.get("content-type")?.startsWith("text/html") === true;
  return { status: answer.status, text: await answer.text(), isPage };
}

/** Addresses that lead nowhere, with the page that shows them. */
async function deadEnds(starts: readonly string[]): Promise<string[]> {
  const get = reader();
  const dead: string[] = [];
  const seen = new Set<string>();
  const open = starts.map((address) => ({ address, from: "start" }));
  for (let next = open.pop(); next; next = open.pop()) {
    const { href, hash } = new URL(next.address);
    if (seen.has(href)) continue;
    seen.add(href);
    const page = await get(href.split("#")[0] ?? "");
    // The viewer reads what follows `#/` by itself.
    const isPart = hash !== "" && !hash.startsWith("#/");
    const isThere = page.status === 200 && (!isPart || page.text.includes(`id="${idOf(hash)}"`));
    if (!isThere) dead.push(`${next.from} -> ${href} ${page.status}`);
    if (!page.isPage) continue;
    const links = [...page.text.matchAll(/<a [^>]*href="([^"]+)"/g)].map(([, to = ""]) => to);
    open.push(
      ...links
        .map((to) => new URL(to.replaceAll("&amp;", "&"), href))
        .filter(({ hostname }) => ["127.0.0.1", "localhost"].includes(hostname))
        .map((to) => ({ address: to.href, from: href })),
    );
  }
  expect(seen.size).toBeGreaterThan(40);
  return dead;
}

function idOf(hash: string): string {
  return decodeURIComponent(hash.slice(1));
}

test("from the first pages of the three ports", async () => {
  const [ingest, api, panel] = ["ingest", "api", "panel"].map(urlOf);
  const starts = [
    ...[`${ingest}/`, `${ingest}/v1/docs`, `${ingest}/v1/calls`, `${ingest}/v1/errors`],
    ...[`${api}/`, `${api}/v2/docs`, `${api}/v2/errors`],
    ...[`${panel}/docs`, `${panel}/panel/docs`, `${panel}/panel/errors`, `${panel}/webhooks/docs`],
  ];
  expect(await deadEnds(starts)).toEqual([]);
});

test("from the API's reference to the guides under the public address", async () => {
  const { text } = await read(`${urlOf("api")}/v2/docs`);
  for (const page of ["merchants", "webhooks", "test-mode"]) {
    const address = `http://localhost:${outside.port}/docs/${page}`;
    expect(text).toContain(`href="${address}"`);
    expect((await read(address)).status).toBe(200);
  }
});

test("from an error of each port to its explanation", async () => {
  for (const path of [
    `${urlOf("ingest")}/v1/ping`,
    `${urlOf("api")}/v2/shipments`,
    `${urlOf("panel")}/panel/api/me`,
  ]) {
    const answer = await fetch(path);
    expect([path, answer.status]).toEqual([path, 401]);
    const { type, code } = (await answer.json()) as { type?: string; code: string };
    const shown = type ?? /<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1] ?? "";
    const { href } = new URL(shown, path);
    expect((await read(href)).text).toContain(`id="${code}"`);
  }
});

/** Every address that the references and the errors show can be followed, on other ports and under a public address too. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { testSetup } from "#test/support/data/setup.ts";
import { BARE, newProduct, type Product } from "#test/support/product/product.ts";
import { freePort } from "#test/support/servers/free-port.ts";

let product: Product;
/** The panel as recipients and merchants reach it. */
let outside: Bun.Server<undefined>;

beforeAll(async () => {
  const port = await freePort();
  product = await newProduct(BARE, testSetup(), { PUBLIC_URL: `http://localhost:${port}` });
  outside = Bun.serve({
    port,
    hostname: "localhost",
    fetch: ({ url }) => {
      const { pathname, search } = new URL(url);
      return fetch(product.panel + pathname + search, { redirect: "manual", decompress: false });
    },
  });
  await product.start();
}, 300_000);
afterAll(async () => {
  await product.end();
  await outside.stop(true);
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
  const { ingest, api, panel } = product;
  const starts = [
    ...[`${ingest}/`, `${ingest}/v1/docs`, `${ingest}/v1/calls`, `${ingest}/v1/errors`],
    ...[`${api}/`, `${api}/v2/docs`, `${api}/v2/errors`],
    ...[`${panel}/docs`, `${panel}/panel/docs`, `${panel}/panel/errors`, `${panel}/webhooks/docs`],
  ];
  expect(await deadEnds(starts)).toEqual([]);
});

test("from the API's reference to the guides under the public address", async () => {
  const { text } = await read(`${product.api}/v2/docs`);
  for (const page of ["merchants", "webhooks", "test-mode"]) {
    const address = `http://localhost:${outside.port}/docs/${page}`;
    expect(text).toContain(`href="${address}"`);
    expect((await read(address)).status).toBe(200);
  }
});

test("from an error of each port to its explanation", async () => {
  for (const path of [
    `${product.ingest}/v1/ping`,
    `${product.api}/v2/shipments`,
    `${product.panel}/panel/api/me`,
  ]) {
    const answer = await fetch(path);
    expect([path, answer.status]).toEqual([path, 401]);
    const { type, code } = (await answer.json()) as { type?: string; code: string };
    const shown = type ?? /<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1] ?? "";
    const { href } = new URL(shown, path);
    expect((await read(href)).text).toContain(`id="${code}"`);
  }
});

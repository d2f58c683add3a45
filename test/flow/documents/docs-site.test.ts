/** The documentation site: no link of a document is dead, and the site is built and served by the panel at the same addresses. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { documentRoutes } from "#panel/server/pages/documents.ts";
import { outcomeOf, startCommand } from "#test/support/product/command.ts";
import { anchorOf, deadLinks, linksOf, sitePages } from "#tools/docs/pages.ts";

const PAGES = sitePages();

describe("the links of documents", () => {
  test.each(["README.md", ...PAGES.map(({ source }) => source)])(
    "of %s lead somewhere",
    (source) => {
      expect(deadLinks(source, readFileSync(source, "utf8"))).toEqual([]);
    },
  );

  test("are found, and dead ones are", () => {
    const text =
      "[a](operations.md#alarms) ![b](images/none.png) [c](#no) [d](https://a.example)\n`[e](no.md)`";
    expect(linksOf("docs/x.md", text)).toHaveLength(4);
    expect(deadLinks("docs/operations.md", text)).toEqual(["images/none.png", "#no"]);
  });

  test("name headings as the panel does", () => {
    const html = Bun.markdown.html("## Freshness: `asOf`, and 2 more\n", {
      headings: { ids: true },
    });
    expect(html).toContain(`id="${anchorOf("Freshness: `asOf`, and 2 more")}"`);
  });
});

describe("the site", () => {
  let folder: string;
  let site: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "waybill-site-"));
    site = join(folder, "site");
    const { errors, status } = await outcomeOf(startCommand(["bun", "run", "docs", site], {}));
    expect([status, status === 0 ? "" : errors]).toEqual([0, ""]);
  }, 300_000);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const serve = (path: string) =>
    documentRoutes(site).handle(new Request(`http://localhost${path}`));

  test("has each page at the address that the panel has it at without a build, and every guide in its menu", async () => {
    const home = await (await serve("/docs")).text();
    for (const { name } of PAGES) {
      const answer = await serve(`/docs/${name}`);
      expect([name, answer.status]).toEqual([name, 200]);
      const address = name === "index" ? "/docs/" : `/docs/${name}`;
      expect([name, home.includes(`href="${address}"`)]).toEqual([name, true]);
    }
    expect(await (await serve("/docs/operations")).text()).toContain('id="the-ledger"');
  });

  test("draws its charts from the published figures, and hands out the files that it leads to", async () => {
    expect(await (await serve("/docs/performance")).text()).toContain(
      "Throughput beside the limit",
    );
    expect(await (await serve("/docs/reliability")).text()).toContain("Worst recovery");
    const rules = await serve("/docs/source/deploy/prometheus/rules.yaml");
    expect(await rules.text()).toContain("WaybillDown");
  });

  test("loads nothing from elsewhere, and runs only the scripts that it was built with", async () => {
    for (const { name } of PAGES) {
      const answer = await serve(`/docs/${name}`);
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toStartWith("default-src 'none'; script-src 'self' 'sha256-");
      const loaded = [
        ...(await answer.text()).matchAll(/<(?:script|link|img)[^>]+(?:src|href)="([^"]+)"/g),
      ];
      for (const [, url = ""] of loaded) {
        expect([name, url.startsWith("/docs/")]).toEqual([name, true]);
        expect([url, (await serve(url)).status]).toEqual([url, 200]);
      }
    }
  });

  test("nothing outside of its folder has an address", async () => {
    expect(readdirSync(site)).toContain("index.html");
    for (const path of [
      "/docs/..%2Fpackage.json",
      "/docs/%2e%2e/package.json",
      "/docs/none",
      "/docs/assets",
    ]) {
      const answer = await serve(path).catch((error: { status: number }) => error);
      expect([path, answer.status === 200]).toEqual([path, false]);
    }
  });
});

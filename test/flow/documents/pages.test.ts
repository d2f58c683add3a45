/** The documents as pages of the panel: no link of one is dead, each has its address and its place in the menu, and all can be searched. */
import { describe, expect, test } from "bun:test";
import { FOUND_PARTS, found, SEARCH_WORDS } from "#panel/server/pages/document-search.ts";
import { documentRoutes } from "#panel/server/pages/documents.ts";
import { deadLinks, guides, outlineOf, readGuide } from "#panel/server/pages/guides.ts";

const GUIDES = guides();
const routes = documentRoutes();
const serve = (path: string) => routes.handle(new Request(`http://localhost${path}`));
const textAt = async (path: string) => (await serve(path)).text();
const statusOf = (path: string) =>
  serve(path).then(
    ({ status }) => status,
    (error: { status: number }) => error.status,
  );

describe("the links of documents", () => {
  test.each(["README.md", ...GUIDES.map(({ source }) => source)])(
    "of %s lead somewhere",
    (source) => {
      expect(deadLinks(source, readGuide(source))).toEqual([]);
    },
  );

  test("are found, and dead ones are", () => {
    const text =
      "[a](operations/monitoring.md#alarms) ![b](images/none.png) [c](#no) [d](https://a.example) [e]\n`[e](no.md)`\n\n[e]: none.md";
    expect(outlineOf("docs/x.md", text).links).toHaveLength(5);
    const dead = ["images/none.png", "#no", "none.md"];
    expect(deadLinks("docs/operations.md", text)).toEqual(dead);
  });
});

test.each(GUIDES.map(({ source }) => source))(
  "the headings of %s have the same addresses on GitHub",
  (source) => {
    for (const { heading, id } of outlineOf(source, readGuide(source)).sections) {
      const words = heading.toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, "");
      expect(id.replace(/-\d+$/, "")).toBe(words.replaceAll(/\s/g, "-").replace(/-\d+$/, ""));
    }
  },
);

describe("the pages", () => {
  test("stand in the menu, and the page that is shown has its headings in it", async () => {
    const home = await textAt("/docs");
    for (const { name } of GUIDES) {
      const address = name === "index" ? "/docs" : `/docs/${name}`;
      expect([name, await statusOf(address)]).toEqual([name, 200]);
      expect([name, home.includes(`href="${address}"`)]).toEqual([name, true]);
    }
    for (const name of ["contributing", "architecture", "changelog", "client", "python"]) {
      expect(GUIDES.map((guide) => guide.name)).toContain(name);
    }
    const page = await textAt("/docs/operations/monitoring");
    expect(page).toContain('<a href="/docs/operations/monitoring" aria-current="page">');
    expect(page).toContain('<a href="#alarms">Alarms</a>');
    expect(page).toContain('id="traces"');
  });

  test("draw their charts from the published figures, and hand out the files that they lead to", async () => {
    expect(await textAt("/docs/performance")).toContain("Throughput beside the limit");
    expect(await textAt("/docs/reliability")).toContain("Worst recovery");
    expect(await textAt("/docs/source/deploy/prometheus/rules.yaml")).toContain("WaybillDown");
  });

  test("run no script, and load only pictures, which are there", async () => {
    let pictures = 0;
    for (const { name } of GUIDES) {
      const answer = await serve(`/docs/${name}`);
      const policy = answer.headers.get("content-security-policy") ?? "";
      expect(policy).toStartWith("default-src 'none'; style-src 'unsafe-inline'; img-src 'self'");
      const text = await answer.text();
      expect([name, /<(script|iframe|object)\b/.test(text)]).toEqual([name, false]);
      for (const [, url = ""] of text.matchAll(/<(?:link|img)[^>]+(?:src|href)="([^"]+)"/g)) {
        if (url === "data:,") continue;
        expect([name, url, await statusOf(url)]).toEqual([name, url, 200]);
        pictures += 1;
      }
    }
    expect(pictures).toBeGreaterThan(3);
  });

  test("are the only files of the repository that have an address, with those that they lead to", async () => {
    for (const path of [
      "/docs/..%2Fpackage.json",
      "/docs/%2e%2e/package.json",
      "/docs/source/package.json",
      "/docs/source/docs/..%2F..%2Fpackage.json",
      "/docs/none",
    ]) {
      expect([path, await statusOf(path)]).toEqual([path, 404]);
    }
  });
});

describe("the search", () => {
  test("leads to the parts that have every word, headings first", async () => {
    const page = await textAt("/docs/search?q=BACKUP+restore");
    const [, first] = /<main>[\s\S]*?<a href="([^"]+)">/.exec(page) ?? [];
    expect(first).toBe("/docs/operations/backup");
    expect(page).toContain('value="BACKUP restore"');
    expect(await textAt("/docs/search?q=backup+qwertyuiop")).toContain("No part of a document");
    expect(await textAt("/docs/search")).toContain("No part of a document");
  });

  test("shows what is asked for, and what it finds, as text", async () => {
    const page = await textAt(`/docs/search?q=${encodeURIComponent('"><script>x</script>')}`);
    expect(page).not.toContain("<script");
  });

  test(`shows ${FOUND_PARTS} parts, and looks at ${SEARCH_WORDS} words`, () => {
    const part = (id: number) => ({ id: `p${id}`, level: 2, heading: "Part", text: "one two" });
    const page = (parts: number) => ({
      source: "docs/a.md",
      name: "a",
      group: "Start",
      sections: Array.from({ length: parts }, (_, at) => part(at)),
    });
    expect(found("one", [page(FOUND_PARTS)])).toHaveLength(FOUND_PARTS);
    expect(found("one", [page(FOUND_PARTS + 1)])).toHaveLength(FOUND_PARTS);
    const known = Array.from({ length: SEARCH_WORDS }, () => "one").join(" ");
    expect(found(`${known} none`, [page(1)])).toHaveLength(1);
    expect(found(`${known.slice("one ".length)} none`, [page(1)])).toHaveLength(0);
  });
});

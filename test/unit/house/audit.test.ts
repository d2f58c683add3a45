/** The dependency audit of `npm run check`, against a registry of the test's own. */
import { afterEach, expect, test } from "bun:test";
import { auditShipped } from "#tools/audit/advisories.ts";

let registry: ReturnType<typeof Bun.serve> | null = null;
afterEach(async () => {
  await registry?.stop(true);
  registry = null;
});

function serve(advisories: object | null): string {
  registry = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: ({ url }) =>
      advisories !== null && new URL(url).pathname.endsWith("/advisories/bulk")
        ? Response.json(advisories)
        : new Response("", { status: 405 }),
  });
  return registry.url.href;
}

test("a grave vulnerability of a shipped package is a finding, a slight one is not", async () => {
  const advisory = (severity: string) => [
    {
      id: 1,
      url: "https://advisories.example/1",
      title: "x",
      vulnerable_versions: "*",
      severity,
      cwe: [],
      cvss: { score: 9, vectorString: null },
    },
  ];
  const url = serve({ redis: advisory("critical"), dayjs: advisory("low") });
  const audit = await auditShipped(url);
  if (audit.kind !== "audited") throw new Error(audit.reason);
  expect(audit.grave.some((text) => text.startsWith("redis "))).toBe(true);
  expect(audit.grave.some((text) => text.startsWith("dayjs "))).toBe(false);
}, 300_000);

test("a registry that keeps no advisories, or does not answer, is said and is no finding", async () => {
  expect((await auditShipped(serve(null))).kind).toBe("unanswered");
  expect((await auditShipped("http://127.0.0.1:1/")).kind).toBe("unanswered");
}, 300_000);

import { expect, test } from "bun:test";
import { envExample, VARIABLES } from "#core/platform/environment/variables.ts";

test(".env.example is what `npm run tool -- env-example` makes of the variables", async () => {
  expect(await Bun.file(".env.example").text()).toBe(envExample());
});

test("docs/configuration.md has every environment variable and no other", async () => {
  const page = await Bun.file("docs/configuration.md").text();
  const table = page.slice(page.indexOf("| Variable | Default"));
  const rows = table.trimEnd().split("\n").slice(2);
  const names = rows.flatMap((row) => row.split("|")[1]?.match(/[A-Z][A-Z_]+/g) ?? []);
  expect(names.sort()).toEqual(Object.keys(VARIABLES).sort());
});

import { expect, test } from "bun:test";
import { envExample, VARIABLES } from "#core/platform/environment/variables.ts";

test(".env.example is what `npm run tool -- env-example` makes of the variables", async () => {
  expect(await Bun.file(".env.example").text()).toBe(envExample());
});

test("README's table has every environment variable and no other", async () => {
  const readme = await Bun.file("README.md").text();
  const table = readme.slice(readme.indexOf("| Variable | Default"));
  const rows = table.slice(0, table.indexOf("\n\n")).split("\n").slice(2);
  const names = rows.flatMap((row) => row.split("|")[1]?.match(/[A-Z][A-Z_]+/g) ?? []);
  expect(names.sort()).toEqual(Object.keys(VARIABLES).sort());
});

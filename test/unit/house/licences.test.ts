import { expect, test } from "bun:test";
import { shippedPackages } from "#tools/licences/shipped.ts";

const lockOf = (packages: Record<string, object>) =>
  shippedPackages({ packages: { "": { version: "1" }, ...packages } });

test("every package that is shipped has a permissive licence, and everything but development is shipped", async () => {
  const lock = await Bun.file("package-lock.json").json();
  const { dependencies } = await Bun.file("package.json").json();
  const packages = shippedPackages(lock);
  expect(packages.filter(({ isPermissive }) => !isPermissive)).toEqual([]);
  const names = new Set(packages.map(({ name }) => name));
  expect(Object.keys(dependencies).filter((name) => !names.has(name))).toEqual([]);
});

test.each([
  ["MIT", true],
  ["(MIT OR GPL-3.0-only)", true],
  ["MIT AND ISC", true],
  ["MIT AND GPL-3.0-only", false],
  ["AGPL-3.0-only", false],
  ["SEE LICENSE IN LICENSE", false],
])("%s is permissive: %p", (license, isPermissive) => {
  expect(lockOf({ "node_modules/one": { version: "1.0.0", license } })).toEqual([
    { name: "one", version: "1.0.0", licence: license, isPermissive },
  ]);
});

test("a package without a licence is not permissive, one of development alone is not shipped", () => {
  const packages = lockOf({
    "node_modules/one/node_modules/@scope/two": { version: "2.0.0" },
    "node_modules/three": { version: "3.0.0", license: "MIT", dev: true },
  });
  expect(packages).toEqual([
    { name: "@scope/two", version: "2.0.0", licence: "", isPermissive: false },
  ]);
});

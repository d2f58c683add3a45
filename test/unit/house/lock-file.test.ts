/** The lock file serves every platform: npm leaves packages out that its registry could not show, and `npm ci` then fails. */
import { expect, test } from "bun:test";

const lock = await Bun.file("package-lock.json").json();

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const packages = Object.entries(lock.packages as Readonly<Record<string, Locked>>);

test("every optional package of a locked package is locked too", () => {
  const names = new Set(packages.map(([path]) => path));
  const missing = packages.flatMap(([owner, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).filter(
      (name) => !names.has(`node_modules/${name}`) && !names.has(`${owner}/node_modules/${name}`),
    ),
  );
  expect(missing).toEqual([]);
});

test("no package is bound to the address of one registry", () => {
  expect(packages.filter(([, { resolved }]) => resolved !== undefined)).toEqual([]);
});

/** Builds of the embedded engine that the registry did not serve when the lock file was made: npm cannot check them. */
const WITHOUT_A_HASH = [
  "@chdb/lib-darwin-arm64",
  "@chdb/lib-darwin-x64",
  "@chdb/lib-linux-arm64-gnu",
];

test("every package is checked against a hash, but for the builds of the embedded engine that are named here", () => {
  const unchecked = packages.filter(
    ([path, { integrity }]) => path !== "" && !/^sha512-/.test(integrity ?? ""),
  );
  expect(unchecked.map(([path]) => path)).toEqual(
    WITHOUT_A_HASH.map((name) => `node_modules/${name}`),
  );
});

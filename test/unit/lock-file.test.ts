/** The lock file serves every platform: npm leaves packages out that its registry could not show, and `npm ci` then fails. */
import { expect, test } from "bun:test";

const lock = await Bun.file("package-lock.json").json();

interface Locked {
  readonly version?: string;
  readonly resolved?: string;
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

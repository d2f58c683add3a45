/**
 * Runs the tests of a file in this process, over and over: what `bun:test` would do in a process of its own for every mutant. It
 * stops at the first test that fails.
 */
import { expect } from "bun:test";
import { inspect } from "node:util";

type Body = (...args: never[]) => unknown;
type Row = readonly unknown[];

interface Group {
  readonly tests: Array<Group | { readonly name: string; readonly body: () => unknown }>;
  readonly hooks: Record<"beforeAll" | "afterAll" | "beforeEach" | "afterEach", Body[]>;
  readonly above: Group | null;
}

function newGroup(above: Group | null): Group {
  const hooks = { beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] };
  return { tests: [], hooks, above };
}

/** What a test file imports from `bun:test`, and a function that runs what it has declared. */
export function newTestRunner() {
  const root = newGroup(null);
  let open = root;
  const hook = (name: keyof Group["hooks"]) => (body: Body) => void open.hooks[name].push(body);
  const describeOne = (_: string, body: Body) => {
    const group = newGroup(open);
    open.tests.push(group);
    open = group;
    body();
    open = group.above ?? root;
  };
  const testOne = (name: string, body: Body) => void open.tests.push({ name, body });
  const bunTest = {
    expect,
    setDefaultTimeout() {},
    test: withVariants(testOne),
    it: withVariants(testOne),
    describe: withVariants(describeOne),
    beforeAll: hook("beforeAll"),
    afterAll: hook("afterAll"),
    beforeEach: hook("beforeEach"),
    afterEach: hook("afterEach"),
  };
  return { bunTest, run: () => runGroup(root) };
}

function withVariants(declare: (name: string, body: Body) => void) {
  const skip = () => {};
  const each =
    (rows: readonly unknown[]) =>
    (name: string, body: Body): void => {
      for (const row of rows) {
        const args = (Array.isArray(row) ? row : [row]) as Row;
        declare(`${name} ${inspect(args)}`, () => body(...(args as never[])));
      }
    };
  const own = (name: string, body: Body) => declare(name, () => body());
  return Object.assign(own, {
    each,
    skip,
    todo: skip,
    if: (isWanted: boolean) => (isWanted ? Object.assign(own, { each }) : skip),
    skipIf: (isUnwanted: boolean) => (isUnwanted ? skip : Object.assign(own, { each })),
  });
}

/** @returns what failed; null = nothing. The hooks after it run in any case, since they end servers. */
async function runGroup(group: Group): Promise<string | null> {
  let failure = await failureOf("beforeAll", group.hooks.beforeAll);
  for (const one of group.tests) {
    if (failure) break;
    failure = "tests" in one ? await runGroup(one) : await runTest(group, one);
  }
  return (await failureOf("afterAll", group.hooks.afterAll)) ?? failure;
}

async function runTest(
  group: Group,
  { name, body }: { readonly name: string; readonly body: () => unknown },
): Promise<string | null> {
  const groups: Group[] = [];
  for (let at: Group | null = group; at; at = at.above) groups.unshift(at);
  const before = groups.flatMap(({ hooks }) => hooks.beforeEach);
  const after = groups.toReversed().flatMap(({ hooks }) => hooks.afterEach);
  const failure = await failureOf(name, [...before, body as Body]);
  return (await failureOf(`after ${name}`, after)) ?? failure;
}

async function failureOf(name: string, bodies: readonly Body[]): Promise<string | null> {
  for (const body of bodies) {
    try {
      await body();
    } catch (error) {
      return `${name}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  return null;
}

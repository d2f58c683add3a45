/** The code samples of the three OpenAPI documents, run as they are printed: curl, TypeScript and Python. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { CodeSample } from "#core/platform/openapi/code-samples.ts";
import { type Served, serve } from "#test/fuzz/serve.ts";
import { productEnv } from "#test/support/product/product.ts";

interface Call {
  /** `GET /v2/orders` */
  readonly name: string;
  readonly responses: Readonly<Record<string, object>>;
  readonly hasBody: boolean;
  readonly sources: Readonly<Record<string, string>>;
}

interface Api {
  readonly env: { readonly URL: string; readonly TOKEN: string };
  readonly calls: readonly Call[];
}

let served: Served;
let apis: readonly Api[];
let home: string;

beforeAll(async () => {
  served = await serve();
  home = await mkdtemp(join(tmpdir(), "waybill-samples-"));
  apis = [
    await read(served.ingest, "/v1/openapi.json", served.courierToken),
    await read(served.api, "/v2/openapi.json", served.token),
    await read(served.panel, "/panel/api/openapi.json", served.panelToken),
  ];
});
afterAll(async () => {
  await served.stop();
  await rm(home, { recursive: true, force: true });
});

async function read(url: string, path: string, token: string): Promise<Api> {
  const document = await (await fetch(`${url}${path}`)).json();
  const { paths } = document as { readonly paths: Record<string, Record<string, Described>> };
  const calls = Object.entries(paths).flatMap(([at, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      name: `${method.toUpperCase()} ${at}`,
      responses: operation.responses,
      hasBody: operation.requestBody !== undefined,
      sources: Object.fromEntries(
        operation["x-codeSamples"].map(({ label, source }) => [label, source]),
      ),
    })),
  );
  return { env: { URL: url, TOKEN: token }, calls };
}

interface Described {
  readonly responses: Call["responses"];
  readonly requestBody?: object;
  readonly "x-codeSamples": readonly CodeSample[];
}

/** They end when their reader does. */
const STREAMS = ["GET /panel/api/overview/stream"];
const ends = ({ name }: Call) => !STREAMS.includes(name);

/** Answers to what is well said, where the examples' ids, passwords and codes are nobody's. */
const REFUSALS: Readonly<Record<string, number>> = {
  "POST /v1/oauth/token": 401,
  "POST /v2/auth/token": 401,
  "POST /panel/api/session": 401,
  "POST /v2/parcels": 409,
};

/** @param statuses of the answers, in the order of the calls */
function expectAnswers(calls: readonly Call[], statuses: readonly number[]): void {
  const wrong = calls.flatMap(({ name, responses }, at) => {
    const status = statuses[at] ?? 0;
    const isDescribed = responses[status] !== undefined;
    const isGood = status < 300 || [404, 409, 503].includes(status) || status === REFUSALS[name];
    return isDescribed && isGood ? [] : [`${name} ${status}`];
  });
  expect(wrong).toEqual([]);
  expect(statuses).toHaveLength(calls.length);
}

async function output(command: readonly string[], env: object): Promise<string> {
  const child = Bun.spawn([...command], {
    env: { ...productEnv(), ...env, NO_PROXY: "*" },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [text, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect(errors).toBe("");
  return text;
}

const numbers = (text: string) => text.trim().split("\n").map(Number);

/** How a language runs the samples of an API; the statuses of their answers. */
const RUNS: Readonly<Record<string, (env: Api["env"], sources: string[]) => Promise<number[]>>> = {
  async curl(env, sources) {
    const quiet = "curl() { command curl -o /dev/null -w '%{http_code}\\n' \"$@\"; }";
    return numbers(await output(["bash", "-c", [quiet, ...sources].join("\n")], env));
  },

  async TypeScript(env, sources) {
    const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
    const statuses: number[] = [];
    const noting = async (...request: Parameters<typeof fetch>) => {
      const response = await fetch(...request);
      statuses.push(response.status);
      return response;
    };
    for (const source of sources) {
      const run = AsyncFunction("fetch", "process", "console", source);
      await run(noting, { env }, { log() {} });
    }
    return statuses;
  },

  async Python(env, sources) {
    const file = join(home, "sources.json");
    await writeFile(file, JSON.stringify(sources));
    return numbers(await output(["python3", "-c", PYTHON, file], env));
  },
};

const PYTHON = `
import contextlib, io, json, sys, urllib.error
for source in json.load(open(sys.argv[1])):
    try:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(source, {})
        print(printed.getvalue().split()[0])
    except urllib.error.HTTPError as error:
        print(error.code)
`;
const LANGUAGES = Object.keys(RUNS).filter((name) => name !== "Python" || Bun.which("python3"));

test("every parameter that is needed and every body has an example", () => {
  const samples = apis.flatMap(({ calls }) => calls);
  const isWithout = ({ sources, hasBody }: Call) =>
    /[/=]\{\w+\}/.test(sources["curl"] ?? "") || hasBody !== / --data/.test(sources["curl"] ?? "");
  expect(samples.filter(isWithout).map(({ name }) => name)).toEqual([]);
  expect(samples.length).toBeGreaterThan(130);
});

describe("the samples of every call are answered as the document says", () => {
  // The panel's come last: they deactivate the courier and the channel.
  for (const [at, name] of ["/v1", "/v2", "panel"].entries()) {
    for (const language of LANGUAGES) {
      test(`${name}: ${language}`, async () => {
        const { env, calls } = apis[at] as Api;
        const ending = calls.filter(ends);
        const sources = ending.map((call) => call.sources[language] ?? "");
        const statuses = (await RUNS[language]?.(env, sources)) ?? [];
        expectAnswers(ending, statuses);
      }, 300_000);
    }
  }
});

test("the TypeScript samples have no fault of type", async () => {
  const files = apis.flatMap(({ calls }) => calls);
  for (const [at, { sources }] of files.entries()) {
    await writeFile(join(home, `${at}.ts`), `${sources["TypeScript"]}\nexport {};\n`);
  }
  const compilerOptions = {
    target: "ES2024",
    module: "NodeNext",
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    types: ["node"],
    typeRoots: [resolve("node_modules/@types")],
  };
  await writeFile(join(home, "package.json"), '{"type":"module"}');
  await writeFile(join(home, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  expect(await output([resolve("node_modules/.bin/tsc"), "-p", home], {})).toBe("");
}, 300_000);

/** schemathesis, a fuzzer of HTTP APIs by their OpenAPI documents, in a Python environment of its own. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { productEnv } from "#test/support/product/product.ts";
import type { Served } from "./serve.ts";

const VERSION = "4.32.5";
const ROOT = new URL("../../", import.meta.url).pathname;
const ENVIRONMENT = join(ROOT, ".data", `schemathesis-${VERSION}`);
const HOOKS = join(ROOT, "test", "fuzz");
const PROGRAM = join(ENVIRONMENT, "bin", "schemathesis");
const INSTALLED = join(ENVIRONMENT, "installed");

const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "negative_data_rejection",
  "positive_data_acceptance",
  "unsupported_method",
  "allow_header_conformance",
  "valid_elements_are_taken",
];

export interface FuzzResult {
  readonly api: "merchant API" | "courier API" | "panel API";
  /** Requests sent. */
  readonly cases: number;
  /** What no check accepts. */
  readonly findings: number;
  readonly report: string;
}

/** An installation that an earlier run has finished. */
export function isInstalled(): boolean {
  return existsSync(INSTALLED);
}

/** @returns null when it is installed, else why it cannot be */
export async function install(): Promise<string | null> {
  if (isInstalled()) return null;
  if (Bun.which("python3") === null) return "python3 is missing";
  const steps = [
    ["python3", "-m", "venv", ENVIRONMENT],
    [join(ENVIRONMENT, "bin", "pip"), "install", "--quiet", `schemathesis==${VERSION}`],
  ];
  for (const command of steps) {
    const { exitCode, stderr } = Bun.spawnSync(command, { stdout: "ignore", stderr: "pipe" });
    if (exitCode !== 0) return `${command.slice(0, 3).join(" ")} failed: ${lastLine(stderr)}`;
  }
  await Bun.write(INSTALLED, VERSION);
  return null;
}

/** @param cases generated a call and phase, at most */
export async function fuzz(served: Served, cases: number, seed: number): Promise<FuzzResult[]> {
  const common = { cases, seed, known: served.known };
  return [
    await fuzzOne({
      ...common,
      api: "merchant API",
      url: served.api,
      token: served.token,
      document: "/v2/openapi.json",
    }),
    await fuzzOne({
      ...common,
      api: "courier API",
      url: served.ingest,
      token: served.courierToken,
      document: "/v1/openapi.json",
    }),
    // Last: it deletes what the others look for.
    await fuzzOne({
      ...common,
      api: "panel API",
      url: served.panel,
      token: served.panelToken,
      document: "/panel/api/openapi.json",
      // It waits for processors, and none runs.
      exceptPath: "/panel/api/webhooks/{endpointId}/test",
    }),
  ];
}

interface Target {
  readonly api: FuzzResult["api"];
  readonly url: string;
  readonly document: string;
  readonly token: string;
  readonly cases: number;
  readonly seed: number;
  readonly known: Served["known"];
  readonly exceptPath?: string;
}

async function fuzzOne(target: Target): Promise<FuzzResult> {
  const { api, url, document, token, cases, seed, known, exceptPath } = target;
  const command = [
    ...[PROGRAM, "run", `${url}${document}`, "--url", url],
    ...["--header", `Authorization: Bearer ${token}`, "--checks", CHECKS.join(",")],
    ...["--phases", "examples,coverage,fuzzing", "--max-examples", String(cases)],
    ...["--seed", String(seed), "--generation-database", "none", "--continue-on-failure"],
    ...["--warnings", "off", "--no-color"],
    ...(exceptPath === undefined ? [] : ["--exclude-path", exceptPath]),
  ];
  // It keeps what it has found in the current folder and would send it again in the next run.
  const folder = await mkdtemp(join(tmpdir(), "waybill-fuzz-"));
  const child = Bun.spawn(command, {
    cwd: folder,
    env: {
      ...productEnv(),
      // The same values are drawn for the same seed.
      PYTHONHASHSEED: "0",
      PYTHONPATH: HOOKS,
      PYTHONDONTWRITEBYTECODE: "1",
      SCHEMATHESIS_HOOKS: "hooks",
      FUZZ_KNOWN: JSON.stringify(known),
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [output, errors] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  await rm(folder, { recursive: true, force: true });
  const sent = /(\d[\d,]*) generated/.exec(output)?.[1]?.replaceAll(",", "");
  if (sent === undefined) throw new Error(`schemathesis did not run:\n${output}\n${errors}`);
  const found = /(\d+) unique failures?/.exec(output)?.[1] ?? "0";
  // A run that could not test everything has found something too.
  const findings = Math.max(Number(found), child.exitCode === 0 ? 0 : 1);
  return { api, cases: Number(sent), findings, report: output };
}

function lastLine(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes).trim().split("\n").at(-1) ?? "";
}

/** `bun run doctor courier`: what a carrier's engineer checks a sender with. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Running } from "#core/runtime.ts";
import { probes } from "#ingest/doctor/probes.ts";
import { startIngest } from "#ingest/main.ts";
import { outcomeOf, startCommand } from "#test/support/command.ts";
import { event } from "#test/support/courier.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";

let runtime: TestRuntime;
let ingest: Running;
let folder: string;

beforeAll(async () => {
  const setup = testSetup();
  setup.couriers?.push({
    code: "STRICT",
    tokens: ["tok_strict"],
    signingSecrets: ["sig_strict"],
    signatureRequired: true,
  });
  runtime = await openTestRuntime(setup);
  ingest = await startIngest(runtime);
  folder = await mkdtemp(join(tmpdir(), "waybill-doctor-"));
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
  await rm(folder, { recursive: true, force: true });
});

function doctor(...args: string[]) {
  const command = ["bun", "ingest/doctor/main.ts", "courier", "--url", ingest.url ?? "", ...args];
  return outcomeOf(startCommand(command, {}));
}

const strict = ["--token", "tok_strict", "--courier", "STRICT"];

test("against the product itself every probe is as expected: grade A, exit status 0", async () => {
  const count = probes(Date.now).length;
  expect(count).toBeGreaterThanOrEqual(40);
  const { output, status } = await doctor(...strict, "--secret", "sig_strict");
  expect(output).toContain(`Grade A: ${count} of ${count} as expected.`);
  expect(status).toBe(0);
});

test("without a secret the signature is left out and said so", async () => {
  const { output, status } = await doctor("--token", "tok_gls_1", "--courier", "GLS_ITA");
  expect(output).toContain("8 signature probes need --secret.");
  expect(status).toBe(0);
});

test("a wrong secret fails with what to do, exit status 1, and shows no secret", async () => {
  const { output, status } = await doctor(...strict, "--secret", "sig_wrong");
  expect(output).toContain("FAIL  a signed message passes");
  expect(output).toContain("-> The HMAC-SHA256 of <t>.<body>");
  expect(output).not.toMatch(/Grade A/);
  expect(output).not.toContain("sig_wrong");
  expect(status).toBe(1);
});

test("a message of the carrier's own is judged event by event", async () => {
  const sample = join(folder, "message.json");
  const envelope = {
    ...{ schemaVersion: "1.0", messageId: "m", sentAt: "2026-11-20T10:00:00+01:00" },
    ...{ courier: "GLS_ITA", events: [event(), { ...event(), colour: "red" }] },
  };
  await writeFile(sample, JSON.stringify(envelope));
  const args = ["--token", "tok_gls_1", "--courier", "GLS_ITA", "--sample", sample];
  const { output, status } = await doctor(...args);
  expect(output).toContain("Your message  1/2");
  expect(output).toContain("colour: The field is not known.");
  expect(status).toBe(1);
});

test("a missing argument tells the usage", async () => {
  const { errors, status } = await doctor("--token", "x");
  expect(errors).toContain("usage: bun run doctor courier");
  expect(status).toBe(1);
});

test("a service that does not answer is told, and the doctor ends", async () => {
  const url = ["--url", "http://127.0.0.1:1"];
  const { output, status } = await doctor(...url, "--token", "x", "--courier", "X");
  expect(output).toContain("no answer");
  expect(status).toBe(1);
});

/** The short form of `npm run tool -- fuzz`: the three OpenAPI documents against the running product, where schemathesis is installed. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { fuzz, isInstalled } from "#test/fuzz/schemathesis.ts";
import { type Served, serve } from "#test/fuzz/serve.ts";

/** Of each call, beside the values at the bounds of its schema. */
const CASES = 5;
const LIMIT_MS = 900_000;

describe.skipIf(!isInstalled())("with schemathesis, which `npm run tool -- fuzz` installs", () => {
  let served: Served;

  beforeAll(async () => {
    served = await serve();
  });
  afterAll(() => served.stop());

  test(
    "what the schemas forbid is refused, what they allow is taken or refused by a listed code, and answers are as described",
    async () => {
      for (const { api, cases, findings, report } of await fuzz(served, CASES, 1)) {
        expect([api, findings, findings === 0 ? "" : report]).toEqual([api, 0, ""]);
        expect(cases).toBeGreaterThan(500);
      }
    },
    LIMIT_MS,
  );
});

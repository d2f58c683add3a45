/** Webhook attempts on their way to the analytics: kinds of errors, and the lines of the log. */
import { describe, expect, test } from "bun:test";
import { type AttemptRow, attemptErrorOf } from "#core/benchmarks/rules/attempt-row.ts";
import { decodeAttempts, encodeAttempt } from "#core/webhooks/store/attempt-log.ts";

describe("the kind of an error", () => {
  test.each([
    [null, null],
    ["status 503", null],
    ["status 302, redirects are not followed", null],
    ["timeout", "timeout"],
    ["connection: ECONNREFUSED", "connection"],
    ["connection: answer broken off", "connection"],
    ["tls: ERR_TLS_CERT_ALTNAME_INVALID", "tls"],
    ["dns: ENOTFOUND", "dns"],
    ["host resolves to a non-public address", "address"],
    ["not the configured acknowledgement", "acknowledgement"],
    ["only https:// is accepted", "other"],
    ["anything that names https://merchant.example/secret", "other"],
  ] as const)("%s is %s", (phrase, kind) => {
    expect(attemptErrorOf(phrase)).toBe(kind);
  });
});

describe("an entry of the log", () => {
  const row: AttemptRow = {
    deliveryId: "dlv_01aa",
    endpointId: "ep_1",
    channelId: 7,
    eventId: "evt_1",
    generation: 2,
    attempt: 3,
    atMs: 1_700_000_000_123,
    httpStatus: null,
    error: "timeout",
    latencyMs: 10_000,
    outcome: "WAITING",
  };

  test("holds one attempt or many, and gives them back as they were", () => {
    const rows: AttemptRow[] = [
      row,
      { ...row, httpStatus: 200, error: null, outcome: "DELIVERED" },
    ];
    expect(decodeAttempts({ fields: { a: rows.map(encodeAttempt).join("\n") } })).toEqual(rows);
    expect(decodeAttempts({ fields: { a: encodeAttempt(row) } })).toEqual([row]);
  });

  test("that is none is refused", () => {
    for (const a of ["", "[", "{}"]) expect(() => decodeAttempts({ fields: { a } })).toThrow();
    expect(() => decodeAttempts({ fields: {} })).toThrow();
  });
});

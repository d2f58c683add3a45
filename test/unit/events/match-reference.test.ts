/** Document 2, "Data rules" 2; design, "Reference matching": the rule without its index, in each of its branches. */
import { describe, expect, test } from "bun:test";
import {
  areOfOneCompany,
  type Candidate,
  matchReference,
  mayHaveEnded,
  NUMBER_REUSE_MS,
  orderHash,
  withoutEnded,
} from "#core/events/rules/match-reference.ts";

const DAY_MS = 86_400_000;

function candidate(shipmentId: number, members: Partial<Candidate> = {}): Candidate {
  return {
    shipmentId,
    companyId: 1,
    channelId: shipmentId,
    isPlaceholder: false,
    orderReference: null,
    shipDay: 20_000,
    ...members,
  };
}

const [first, second] = [candidate(1), candidate(2)];
/** Channel 1 has an account at the courier, channel 2 has another one. */
const accountsOf = (channelId: number) => [`ACCOUNT-${channelId}`];
const match = (
  event: Parameters<typeof matchReference>[0],
  byNumber: readonly Candidate[],
  byExternal: readonly Candidate[] = [],
) => {
  const found = matchReference(event, byNumber, byExternal, accountsOf);
  return found.kind === "found" ? found.candidates.map(({ shipmentId }) => shipmentId) : found.kind;
};

describe("an event without a tracking number", () => {
  const event = { externalId: "R", senderAccount: "ACCOUNT-1" };

  test("means the one shipment of its externalId, none without one, and none of two", () => {
    expect(match(event, [], [])).toBe("none");
    expect(match(event, [], [first])).toEqual([1]);
    expect(match(event, [], [first, second])).toBe("ambiguous");
  });
});

describe("an event with a tracking number", () => {
  const event = { trackingNumber: "N" };

  test("that nobody has is unknown, or a mismatch where its externalId names a shipment of another number", () => {
    expect(match(event, [])).toBe("none");
    expect(match({ ...event, externalId: "R" }, [], [first])).toBe("mismatch");
    expect(match({ ...event, externalId: "R" }, [first], [])).toEqual([1]);
  });

  test("also means the placeholder that its externalId finds, where that is the only one, and once", () => {
    const waits = candidate(2, { isPlaceholder: true });
    const both = { ...event, externalId: "R" };
    expect(match(both, [], [waits])).toEqual([2]);
    expect(match(both, [first], [waits])).toEqual([1, 2]);
    expect(match(both, [first, waits], [waits])).toEqual([1, 2]);
    expect(match(both, [], [waits, candidate(3)])).toBe("mismatch");
    expect(match(both, [first], [second])).toEqual([1]);
  });

  test("goes to the channels that have its sender account, and to all where none has it", () => {
    expect(match(event, [first, second])).toEqual([1, 2]);
    expect(match({ ...event, senderAccount: "ACCOUNT-2" }, [first, second])).toEqual([2]);
    expect(match({ ...event, senderAccount: "ELSEWHERE" }, [first, second])).toEqual([1, 2]);
    const unasked = matchReference(event, [first], [], () => {
      throw new Error("asked for accounts without one");
    });
    expect(unasked.kind).toBe("found");
  });

  test("leaves out shipments of another order reference, also archived ones, and is a mismatch where none is left", () => {
    const ordered = candidate(1, { orderReference: "R" });
    const other = candidate(2, { orderReference: "S" });
    const archived = (shipmentId: number, hash: number | null) =>
      candidate(shipmentId, {
        archived: { endedAtMs: null, ownsNumber: true, orderHash: hash },
      });
    const all = [
      ...[ordered, other, candidate(3)],
      ...[archived(4, orderHash("R")), archived(5, orderHash("S")), archived(6, null)],
    ];
    expect(match({ ...event, externalId: "R" }, all)).toEqual([1, 3, 4, 6]);
    expect(match(event, all)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(match({ ...event, externalId: "R" }, [other])).toBe("mismatch");
  });
});

test("an order reference is kept as the first 24 bits of its SHA-256, and never as 0", () => {
  expect(orderHash("ORDER-1")).toBe(
    Number.parseInt(new Bun.CryptoHasher("sha256").update("ORDER-1").digest("hex").slice(0, 6), 16),
  );
  // Its digest begins with 24 bits of 0.
  expect(orderHash("ORDER-23761846")).toBe(1);
});

describe("a number that is used again", () => {
  const shipDay = 20_000;
  const occurredAtMs = shipDay * DAY_MS + NUMBER_REUSE_MS;

  test("only several candidates may have ended, and only those shipped more than 90 days before", () => {
    expect(NUMBER_REUSE_MS).toBe(90 * DAY_MS);
    expect(mayHaveEnded([first], occurredAtMs + 1)).toEqual([]);
    expect(mayHaveEnded([first, second], occurredAtMs)).toEqual([]);
    expect(mayHaveEnded([first, second], occurredAtMs + 1)).toEqual([first, second]);
  });

  test("what ended more than 90 days before is left out, what ended then or never, or was not read, is not", () => {
    const endedAtMs = shipDay * DAY_MS + DAY_MS;
    const left = (atMs: number, ends: ReadonlyArray<readonly [number, number | null]>) =>
      withoutEnded([first, second], atMs, new Map(ends)).map(({ shipmentId }) => shipmentId);
    const lateMs = endedAtMs + NUMBER_REUSE_MS;
    expect(left(lateMs + 1, [[1, endedAtMs]])).toEqual([2]);
    expect(left(lateMs, [[1, endedAtMs]])).toEqual([1, 2]);
    expect(left(lateMs + 1, [[1, null]])).toEqual([1, 2]);
    expect(left(lateMs + 1, [])).toEqual([1, 2]);
    const both = [
      [1, endedAtMs],
      [2, endedAtMs],
    ] as const;
    expect(left(lateMs + 1, both)).toEqual([1, 2]);
  });

  test("personal data reaches several shipments of one company, and not those of two", () => {
    expect(areOfOneCompany([first, second])).toBe(true);
    expect(areOfOneCompany([first, candidate(2, { companyId: 2 })])).toBe(false);
  });
});

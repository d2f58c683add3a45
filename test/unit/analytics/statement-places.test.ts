/** Whose statement runs, and until when one counts (docs/analytics.md, "Limit of a statement"). */
import { describe, expect, test } from "bun:test";
import { Readable } from "node:stream";
import {
  PERSON_STATEMENTS,
  STATEMENTS_LIMIT,
  statementPlaces,
} from "#analytics/sql/statement-places.ts";
import { unreadAnswer } from "#analytics/sql/unread-answer.ts";
import { nextTurn } from "#core/platform/process/next-turn.ts";
import { eventually } from "#test/support/eventually.ts";

/** Asks for people by their first letters, and remembers who has started. */
function asking() {
  const placeFor = statementPlaces();
  const started: string[] = [];
  const places = new Map<string, { ran: () => void; end: () => void; at: number }>();
  const ask = (name: string) =>
    placeFor(name.charAt(0)).then((place) => {
      started.push(name);
      places.set(name, place);
    });
  const place = (name: string) => {
    const found = places.get(name);
    if (!found) throw new Error(`${name} does not run`);
    return found;
  };
  return { placeFor, ask, place, started };
}

describe("places for statements", () => {
  test("one person's statements run one after the other, and hold up nobody else's", async () => {
    const { ask, place, started } = asking();
    for (const name of ["a1", "a2", "a3", "b1", "c1"]) void ask(name);
    await nextTurn();
    expect(started).toEqual(["a1", "b1", "c1"]);
    expect(new Set(started.map((name) => place(name).at)).size).toBe(3);
    place("a1").end();
    await nextTurn();
    expect(started).toEqual(["a1", "b1", "c1", "a2"]);
  });

  test("beyond three people the next one waits for the first that ends", async () => {
    const { ask, place, started } = asking();
    for (const name of ["a1", "b1", "c1", "d1"]) void ask(name);
    await nextTurn();
    expect(started).toEqual(["a1", "b1", "c1"]);
    place("b1").ran();
    await nextTurn();
    expect(started).toEqual(["a1", "b1", "c1", "d1"]);
    expect(place("d1").at).toBe(place("b1").at);
  });

  test("a statement counts until its answer has been read: 8 of one person, 16 of all, one more is 429", async () => {
    const { ask, place, placeFor } = asking();
    const busy = { status: 429, code: "SQL_BUSY", headers: { "retry-after": "5" } };
    for (const person of ["a", "b"]) {
      for (let n = 1; n <= PERSON_STATEMENTS; n += 1) {
        await ask(`${person}${n}`);
        place(`${person}${n}`).ran();
      }
    }
    expect(() => placeFor("a")).toThrow(expect.objectContaining(busy));
    expect(() => placeFor("c")).toThrow(expect.objectContaining(busy));
    place("a1").end();
    place("a1").end();
    await ask("c1");
    expect(() => placeFor("d")).toThrow(expect.objectContaining(busy));
    expect([PERSON_STATEMENTS, STATEMENTS_LIMIT]).toEqual([8, 16]);
  });
});

describe("an answer that is not read", () => {
  test("is handed over as it is read: its source is asked for a piece ahead", async () => {
    let given = 0;
    async function* source(): AsyncGenerator<Buffer> {
      for (; given < 100; given += 1) yield Buffer.alloc(64 * 1024);
    }
    let ends = 0;
    const answer = unreadAnswer(source(), () => {
      ends += 1;
    });
    const reading = answer[Symbol.asyncIterator]();
    await reading.next();
    await nextTurn();
    expect(given).toBeLessThan(5);
    let size = 0;
    for await (const piece of answer) size += piece.length;
    expect(size).toBe(99 * 64 * 1024);
    await eventually(async () => ends === 1, "the answer has ended");
  });

  test("ends when its time is over, and when its reader goes away", async () => {
    const ends: string[] = [];
    const late = unreadAnswer(Readable.from([Buffer.from("x")]), () => void ends.push("late"), 20);
    await eventually(async () => ends.includes("late"), "the time is over");
    expect(late.errored?.message).toBe("the answer was not read in time");
    unreadAnswer(Readable.from([Buffer.from("x")]), () => void ends.push("left")).destroy();
    await eventually(async () => ends.includes("left"), "the reader has gone");
    expect(ends).toEqual(["late", "left"]);
  });
});

/**
 * Which statements run. A statement counts from the moment it is asked until its answer has been read: what is not read is kept in
 * memory. Statements of several people run side by side, and one person's one after the other, so that nobody holds up anybody else.
 */
import { Problem } from "#core/platform/errors/problem.ts";
import { limit } from "#core/platform/schema/limit.ts";

export const STATEMENTS_LIMIT = limit(
  16,
  "statements of SQL access that wait, run or have not been read",
  "429",
);
export const PERSON_STATEMENTS = limit(
  8,
  "statements of SQL access of one person that wait, run or have not been read",
  "429",
);
/** Of different people. */
export const SIDE_BY_SIDE = limit(
  3,
  "statements of SQL access running side by side",
  "the next one waits",
);

/** Of a statement that runs. */
export interface Place {
  /** Below `SIDE_BY_SIDE`; no other statement that runs has it. */
  readonly at: number;
  /** The statement runs no longer, but its answer has not been read. */
  readonly ran: () => void;
  /** It counts no longer. */
  readonly end: () => void;
}

interface Waiting {
  readonly person: string;
  readonly start: (place: Place) => void;
}

/** @returns a function that waits for a place. @throws {Problem} 429 */
export function statementPlaces(): (person: string) => Promise<Place> {
  const open = new Map<string, number>();
  const free = Array.from({ length: SIDE_BY_SIDE }, (_, at) => at);
  const running = new Set<string>();
  const waiting: Waiting[] = [];

  /** In the order in which they were asked, those whose person has none running. */
  function startNext(): void {
    for (;;) {
      const next = waiting.findIndex(({ person }) => !running.has(person));
      const at = next < 0 ? undefined : free.shift();
      if (at === undefined) return;
      for (const { person, start } of waiting.splice(next, 1)) {
        running.add(person);
        start(placeOf(person, at));
      }
    }
  }

  function placeOf(person: string, at: number): Place {
    let state: "running" | "unread" | "ended" = "running";
    const ran = () => {
      if (state !== "running") return;
      state = "unread";
      running.delete(person);
      free.push(at);
      startNext();
    };
    const end = () => {
      if (state === "ended") return;
      ran();
      state = "ended";
      const left = (open.get(person) ?? 1) - 1;
      if (left > 0) open.set(person, left);
      else open.delete(person);
    };
    return { at, ran, end };
  }

  return (person) => {
    const own = open.get(person) ?? 0;
    const all = [...open.values()].reduce((sum, count) => sum + count, 0);
    if (own >= PERSON_STATEMENTS)
      throw busy(`At most ${PERSON_STATEMENTS} statements of one person`);
    if (all >= STATEMENTS_LIMIT) throw busy(`At most ${STATEMENTS_LIMIT} statements`);
    open.set(person, own + 1);
    return new Promise((resolve) => {
      waiting.push({ person, start: resolve });
      startNext();
    });
  };
}

function busy(limit: string): Problem {
  const detail = `${limit} at once; one whose answer has not been read counts.`;
  return new Problem(429, "SQL_BUSY", detail, { headers: { "retry-after": "5" } });
}

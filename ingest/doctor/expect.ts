/** What a probe expects of an answer: null when it came, else what came instead. */
import type { Answer } from "#ingest/doctor/sender.ts";

export type Expectation = (answer: Answer) => string | null;

export function describe({ status, body }: Answer): string {
  const code = body?.["code"];
  const detail = body?.["detail"];
  return [status, code, detail].filter((part) => part !== undefined).join(" ");
}

export function status(expected: number): Expectation {
  return (answer) =>
    answer.status === expected ? null : `${expected} expected, got ${describe(answer)}`;
}

/** A problem document of this status and code. */
export function problem(expected: number, code: string): Expectation {
  return (answer) => {
    const type = answer.headers.get("content-type") ?? "";
    const same = answer.status === expected && answer.body?.["code"] === code;
    if (!same) return `${expected} ${code} expected, got ${describe(answer)}`;
    return type.startsWith("application/problem+json") ? null : `not a problem document: ${type}`;
  };
}

interface Result {
  readonly outcome: string;
  readonly errors?: readonly { readonly path: string; readonly code: string }[];
}

/** These outcomes in send order, and counters that sum to them. */
export function outcomes(...expected: readonly string[]): Expectation {
  return (answer) => {
    if (answer.status !== 200) return `200 expected, got ${describe(answer)}`;
    const got = resultsOf(answer).map(({ outcome }) => outcome);
    if (got.join() !== expected.join()) return `${expected.join()} expected, got ${got.join()}`;
    const counters = ["accepted", "duplicate", "unknownTracking", "invalid"];
    const sum = counters.reduce((total, name) => total + Number(answer.body?.[name]), 0);
    return sum === expected.length ? null : `counters sum to ${sum}`;
  };
}

/** One event, INVALID because of this. */
export function invalid(path: string, code: string): Expectation {
  return (answer) => {
    const wrong = outcomes("INVALID")(answer);
    if (wrong !== null) return wrong;
    const errors = resultsOf(answer)[0]?.errors ?? [];
    const found = errors.some((error) => error.path === path && error.code === code);
    const got = errors.map((error) => `${error.path} ${error.code}`).join(", ");
    return found ? null : `${path} ${code} expected, got ${got}`;
  };
}

function resultsOf({ body }: Answer): readonly Result[] {
  const results = body?.["results"];
  return Array.isArray(results) ? results : [];
}

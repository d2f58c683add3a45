/** `?cursor=&limit=` of the panel's lists: `{ items, nextCursor }`. */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/problem.ts";

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 200;
const CURSOR_LENGTH = 1_000;

export const listQuery = Type.Object({
  cursor: Type.Optional(Type.String({ description: "nextCursor of the page before" })),
  limit: Type.Optional(
    Type.String({ description: `default ${DEFAULT_LIMIT}, at most ${MAX_LIMIT}` }),
  ),
});

export interface ListPage {
  /** Where the page begins: behind this; null = at the first. */
  readonly after: string | null;
  readonly limit: number;
}

/** @throws {Problem} 422 */
export function listPageOf(query: {
  readonly cursor?: string | undefined;
  readonly limit?: string | undefined;
}): ListPage {
  const { cursor = "", limit = String(DEFAULT_LIMIT) } = query;
  const size = /^\d{1,4}$/.test(limit) ? Number(limit) : 0;
  if (size < 1 || size > MAX_LIMIT) {
    throw new Problem(422, "INVALID_QUERY", `limit is a number from 1 to ${MAX_LIMIT}.`);
  }
  if (cursor.length > CURSOR_LENGTH || !/^[\w-]*$/.test(cursor)) throw wrongCursor();
  return { after: cursor === "" ? null : Buffer.from(cursor, "base64url").toString(), limit: size };
}

export function wrongCursor(): Problem {
  return new Problem(422, "INVALID_QUERY", "cursor must be the nextCursor of an earlier page.");
}

export function cursorOf(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** A page of a list that is at hand whole, in the order of a key that each item has alone. */
export function pageAfter<T>(
  all: readonly T[],
  keyOf: (item: T) => string,
  after: string | null,
  limit: number,
): { readonly items: T[]; readonly nextCursor: string | null } {
  const sorted = all
    .map((item) => ({ item, key: keyOf(item) }))
    .filter(({ key }) => after === null || key > after)
    .sort((one, other) => (one.key < other.key ? -1 : 1));
  const page = sorted.slice(0, limit);
  const last = page.at(-1);
  const nextCursor = last && sorted.length > page.length ? cursorOf(last.key) : null;
  return { items: page.map(({ item }) => item), nextCursor };
}

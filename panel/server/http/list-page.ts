/**
 * `?cursor=&limit=` of the panel's lists: `{ items, nextCursor }`, and in `Link` (RFC 8288) the next page as an address. A
 * limit out of range is refused in every list.
 */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { pageLinks } from "#core/platform/http/page-links.ts";

const CURSOR_LENGTH = 1_000;
const MAX_OFFSET = 1_000_000;

interface PageSize {
  readonly usual: number;
  readonly most: number;
}

/** Of items that take reading, such as shipments. */
export const PAGE: PageSize = { usual: 50, most: 200 };
/** Of small items. */
export const LONG_PAGE: PageSize = { usual: 100, most: 1_000 };
/** Of lists that were answered whole before they had pages: all items unless a limit is given. */
export const WHOLE_LIST: PageSize = { usual: Number.POSITIVE_INFINITY, most: 1_000 };

export function queryOf({ usual, most }: PageSize) {
  const otherwise = Number.isFinite(usual) ? `default ${usual}` : "without it all items";
  return Type.Object({
    cursor: Type.Optional(
      Type.String({ description: "nextCursor of the page before, with the same filters" }),
    ),
    limit: Type.Optional(Type.String({ description: `1 to ${most}; ${otherwise}` })),
  });
}

export const listQuery = queryOf(PAGE);

/** Of lists that had `offset` before they had `cursor`. */
export function offsetQuery(size: PageSize) {
  return Type.Composite([
    queryOf(size),
    Type.Object({
      offset: Type.Optional(
        Type.String({ description: "items to skip; use cursor instead", deprecated: true }),
      ),
    }),
  ]);
}

interface ListQuery {
  readonly cursor?: string | undefined;
  readonly limit?: string | undefined;
}

export interface ListPage {
  /** Where the page begins: behind this; null = at the first. */
  readonly after: string | null;
  readonly limit: number;
}

/** @throws {Problem} 422 */
export function listPageOf({ cursor = "", limit }: ListQuery, size: PageSize = PAGE): ListPage {
  if (cursor.length > CURSOR_LENGTH || !/^[\w-]*$/.test(cursor)) throw wrongCursor();
  return {
    after: cursor === "" ? null : Buffer.from(cursor, "base64url").toString(),
    limit: limitOf(limit, size),
  };
}

/** @throws {Problem} 422 */
export function limitOf(limit: string | undefined, { usual, most }: PageSize): number {
  return limit === undefined ? usual : numberOf("limit", limit, 1, most);
}

export interface OffsetPage {
  readonly offset: number;
  readonly limit: number;
}

/** Of a list whose cursor is a position. @throws {Problem} 422 */
export function offsetPageOf(
  query: ListQuery & { readonly offset?: string | undefined },
  size: PageSize,
): OffsetPage {
  const { after, limit } = listPageOf(query, size);
  if (after === null) {
    return { offset: numberOf("offset", query.offset ?? "0", 0, MAX_OFFSET), limit };
  }
  if (query.offset !== undefined) throw invalidQuery("offset and cursor exclude each other.");
  const offset = /^\d{1,7}$/.test(after) ? Number(after) : MAX_OFFSET + 1;
  if (offset > MAX_OFFSET) throw wrongCursor();
  return { offset, limit };
}

/** @param total items of all pages */
export function cursorBehind({ offset, limit }: OffsetPage, total: number): string | null {
  return offset + limit < total ? cursorOf(String(offset + limit)) : null;
}

function numberOf(name: string, text: string, least: number, most: number): number {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : -1;
  if (value >= least && value <= most) return value;
  throw invalidQuery(`${name} is a number from ${least} to ${most}.`);
}

function invalidQuery(detail: string): Problem {
  return new Problem(422, "INVALID_QUERY", detail);
}

export function wrongCursor(): Problem {
  return invalidQuery("cursor must be the nextCursor of an earlier page.");
}

export function cursorOf(key: string): string {
  return Buffer.from(key).toString("base64url");
}

/** `Link` of an answer; null where it has no next page. */
export function linkOf(request: Request, answer: unknown): string | null {
  const { nextCursor } = (answer ?? {}) as { readonly nextCursor?: unknown };
  if (request.method !== "GET" || typeof nextCursor !== "string") return null;
  const query = { offset: null, cursor: nextCursor };
  return pageLinks(request, [{ relation: "next", query }]);
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

/**
 * A page of a list that is at hand whole and grows at its head, in its own order: it begins behind an item, not at a position.
 * @returns null behind an item that is gone
 * @throws {Problem} 422
 */
export function pageBehind<T>(
  all: readonly T[],
  keyOf: (item: T) => string,
  query: ListQuery,
): { readonly items: T[]; readonly nextCursor: string | null } | null {
  const { after, limit } = listPageOf(query);
  const at = after === null ? -1 : all.findIndex((item) => keyOf(item) === after);
  if (after !== null && at < 0) return null;
  const items = all.slice(at + 1, at + 1 + limit);
  const last = items.at(-1);
  const hasMore = last !== undefined && at + 1 + limit < all.length;
  return { items, nextCursor: hasMore ? cursorOf(keyOf(last)) : null };
}

/** A page of a list that is at hand whole, in its own order. @throws {Problem} 422 */
export function wholeList<T>(
  all: readonly T[],
  query: ListQuery,
): { readonly items: T[]; readonly nextCursor: string | null } {
  const page = offsetPageOf(query, WHOLE_LIST);
  const items = all.slice(page.offset, page.offset + page.limit);
  return { items, nextCursor: cursorBehind(page, all.length) };
}

/** Extensions of document 1 for readers: `Link` on pages (RFC 8288), `ETag` and `If-None-Match` (RFC 9110). */

import { searchParamsOf } from "#core/http/search-params.ts";
import { type JsonPieces, jsonResponse } from "#core/json-text.ts";

/** The headers of an answer under way. */
interface Sending {
  readonly headers: Record<string, string | number>;
}

export const PAGE_HEADERS = {
  Link: "The pages `first`, `prev`, `next` and `last`, those that exist, relative to this address.",
};

export const TAG_HEADERS = {
  ETag: "Of the body. With `If-None-Match` the same body is answered 304.",
};

export const NOT_MODIFIED = { 304: { description: "`If-None-Match` names the current ETag." } };

/** A query is repeated four times in `Link`: clients refuse long headers. */
const LINK_CHARACTERS = 4_096;

/** @param pages 0 without a match */
export function linkPages(request: Request, set: Sending, page: number, pages: number): void {
  const links = [
    ["first", pages > 0 ? 1 : null],
    ["prev", page > 1 && page <= pages ? page - 1 : null],
    ["next", page < pages ? page + 1 : null],
    ["last", pages > 0 ? pages : null],
  ] as const;
  const { pathname } = new URL(request.url);
  const shown = links.flatMap(([relation, to]) => {
    if (to === null) return [];
    const params = new URLSearchParams(searchParamsOf(request));
    params.set("page", String(to));
    return [`<${pathname}?${params}>; rel="${relation}"`];
  });
  const link = shown.join(", ");
  if (link !== "" && link.length <= LINK_CHARACTERS) set.headers["link"] = link;
}

/** The body with its tag, or 304 to a reader who has it. */
export function tagged(request: Request, body: unknown): Response {
  return taggedText(request, [JSON.stringify(body)]);
}

/** The same for JSON that is at hand as text. */
export function taggedText(request: Request, pieces: JsonPieces): Response {
  const hash = pieces.reduce((seed, piece) => Bun.hash.wyhash(piece, seed), 0n);
  // Weak: the same body may be encoded in several ways.
  const tag = `W/"${hash.toString(36)}"`;
  const headers = { etag: tag, "cache-control": "private, no-cache" };
  if (isKnown(request.headers.get("if-none-match"), tag)) {
    return new Response(null, { status: 304, headers });
  }
  const response = jsonResponse(pieces);
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  return response;
}

function isKnown(header: string | null, tag: string): boolean {
  if (header === null) return false;
  const opaque = (one: string) => one.trim().replace(/^W\//, "");
  return header.trim() === "*" || header.split(",").some((one) => opaque(one) === opaque(tag));
}

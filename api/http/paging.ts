/** Extensions of document 1 for readers: `Link` on pages (RFC 8288), `ETag` and `If-None-Match` (RFC 9110). */

import { pageLinks } from "#core/platform/http/page-links.ts";
import { type JsonPieces, jsonResponse } from "#core/platform/process/json-text.ts";
import { turns } from "#core/platform/process/next-turn.ts";

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

/** @param pages 0 without a match */
export function linkPages(request: Request, set: Sending, page: number, pages: number): void {
  const links = [
    { relation: "first", to: pages > 0 ? 1 : null },
    { relation: "prev", to: page > 1 && page <= pages ? page - 1 : null },
    { relation: "next", to: page < pages ? page + 1 : null },
    { relation: "last", to: pages > 0 ? pages : null },
  ] as const;
  const existing = links.filter(({ to }) => to !== null);
  const shown = existing.map(({ relation, to }) => ({ relation, query: { page: String(to) } }));
  const link = pageLinks(request, shown);
  if (link !== null) set.headers["link"] = link;
}

/** The body with its tag, or 304 to a reader who has it. */
export function tagged(request: Request, body: unknown): Promise<Response> {
  return taggedText(request, [JSON.stringify(body)]);
}

/** The same for JSON that is at hand as text; a long one is read in turns of the event loop. */
export async function taggedText(request: Request, pieces: JsonPieces): Promise<Response> {
  const turn = turns();
  let hash = 0n;
  for (const piece of pieces) {
    hash = Bun.hash.wyhash(piece, hash);
    if (turn.due()) await turn.take();
  }
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

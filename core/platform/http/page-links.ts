/** `Link` of pages (RFC 8288): the same call with another page, relative to its own address. */
import { limit } from "#core/platform/schema/limit.ts";
import { searchParamsOf } from "./search-params.ts";

/** A query is repeated for each relation: clients refuse long headers. */
const LINK_CHARACTERS = limit(
  4_096,
  "length of the header `Link` of a page, in characters",
  "not sent",
);

interface PageLink {
  readonly relation: "first" | "prev" | "next" | "last";
  /** Parameters that differ from those of the request; null = none. */
  readonly query: Readonly<Record<string, string | null>>;
}

/** Null without a page, and where it would be too long. */
export function pageLinks(request: Request, links: readonly PageLink[]): string | null {
  const { pathname } = new URL(request.url);
  const shown = links.map(({ relation, query }) => {
    const params = new URLSearchParams(searchParamsOf(request));
    for (const [name, value] of Object.entries(query)) {
      if (value === null) params.delete(name);
      else params.set(name, value);
    }
    return `<${pathname}?${params}>; rel="${relation}"`;
  });
  const link = shown.join(", ");
  return link !== "" && link.length <= LINK_CHARACTERS ? link : null;
}

/**
 * Where a log-in leads. Anybody can write the link to the log-in page, so what it asks for is resolved as the browser resolves it,
 * which drops tabs and line ends and reads `\` as `/`, and only an address of the panel itself is taken.
 */

/** @param origin the panel's @returns an absolute address; the panel's first page where another site is asked for */
export function ownAddress(asked: string | null, origin: string): string {
  const first = `${origin}/`;
  if (asked === null || !URL.canParse(asked, first)) return first;
  const { href, origin: asking } = new URL(asked, first);
  return asking === origin ? href : first;
}

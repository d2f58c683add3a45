/** What the header Accept-Encoding says about gzip (RFC 9110, 12.5.3). */

/** Of the names of gzip the first that is listed counts, then `*`. An explicit preference for no coding is respected. */
export function acceptsGzip(header: string | null): boolean {
  if (header === null) return false;
  const qualities = new Map(header.split(",").map(codingOf));
  const gzip = qualities.get("gzip") ?? qualities.get("x-gzip") ?? qualities.get("*") ?? 0;
  return gzip > 0 && gzip >= (qualities.get("identity") ?? 0);
}

function codingOf(text: string): readonly [string, number] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const given = parameters.find((part) => part.startsWith("q="))?.slice(2);
  const quality = given === undefined ? 1 : Number(given);
  return [name, Number.isNaN(quality) ? 1 : quality];
}

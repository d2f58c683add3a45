/** What the header Accept-Encoding says about codings of content (RFC 9110, 12.5.3). */

/** Of the names of gzip the first that is listed counts, then `*`. An explicit preference for no coding is respected. */
export function acceptsGzip(header: string | null): boolean {
  return accepts(header, ["gzip", "x-gzip"]);
}

export function acceptsBrotli(header: string | null): boolean {
  return accepts(header, ["br"]);
}

function accepts(header: string | null, names: readonly string[]): boolean {
  if (header === null) return false;
  const qualities = new Map(header.split(",").map(codingOf));
  const named = names.find((name) => qualities.has(name)) ?? "*";
  const quality = qualities.get(named) ?? 0;
  return quality > 0 && quality >= (qualities.get("identity") ?? 0);
}

function codingOf(text: string): readonly [string, number] {
  const [name = "", ...parameters] = text.split(";").map((part) => part.trim().toLowerCase());
  const given = parameters.find((part) => part.startsWith("q="))?.slice(2);
  const quality = given === undefined ? 1 : Number(given);
  return [name, Number.isNaN(quality) ? 1 : quality];
}

/** Client certificates of couriers (document 2, "Authentication" 5): how subjects and fingerprints are compared. */

export interface ClientCertificate {
  /** SHA-256 in lowercase hex; null when the one who tells of the certificate does not tell it. */
  readonly fingerprint: string | null;
  /** Canonical; see `canonicalSubject`. */
  readonly subject: string | null;
}

/** `AB:CD:…` and `abcd…` are one fingerprint. */
export function plainFingerprint(text: string): string {
  return text.replaceAll(":", "").toLowerCase();
}

/**
 * TLS stacks print the parts of a name in either order, on lines or between commas: they are compared sorted. A comma
 * that belongs to a value is written `\,` by all of them.
 */
export function canonicalSubject(text: string): string {
  const parts = text.match(/(?:\\.|[^,\n\\])+/gs) ?? [];
  return parts
    .map(canonicalPart)
    .filter((part) => part !== "")
    .sort()
    .join(",");
}

function canonicalPart(part: string): string {
  const equals = part.indexOf("=");
  if (equals < 0) return part.trim();
  return `${part.slice(0, equals).trim().toUpperCase()}=${part.slice(equals + 1).trim()}`;
}

/** Either the fingerprint or the subject must be one of those bound to the courier. */
export function certificateMatches(
  certificate: ClientCertificate | null,
  bound: { readonly subjects: readonly string[]; readonly fingerprints: readonly string[] },
): boolean {
  if (certificate === null) return false;
  const { fingerprint, subject } = certificate;
  return (
    (fingerprint !== null && bound.fingerprints.includes(fingerprint)) ||
    (subject !== null && bound.subjects.includes(subject))
  );
}

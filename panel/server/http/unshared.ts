/** Headers of what is behind an address that is its own password: no store keeps it, no search engine lists it, no other site learns it. */
export const UNSHARED = {
  "cache-control": "no-store",
  "referrer-policy": "no-referrer",
  "x-robots-tag": "noindex",
} as const;

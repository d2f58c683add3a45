/** What couriers read of `docs/`: the guide, and vectors that a sender's signature is checked with. */
import { readFileSync } from "node:fs";
import { ownFile } from "#core/platform/process/own-files.ts";

const DOCS = ownFile("docs/");
/** Heading of the part of the guide that is not for couriers. */
const FOR_OPERATORS = "\n# For operators\n";

/** Markdown. */
export function guide(): string {
  const text = readFileSync(`${DOCS}couriers.md`, "utf8");
  return text.slice(0, text.indexOf(FOR_OPERATORS) + 1);
}

interface Vectors {
  readonly algorithm: string;
  readonly t: number;
  readonly vectors: ReadonlyArray<{ readonly name: string; readonly body: string }>;
}

/** JSON: the vectors of `docs/vectors/signature.json` with the bytes of their bodies. */
export function signatureVectors(): string {
  const file = readFileSync(`${DOCS}vectors/signature.json`, "utf8");
  const { vectors, ...head }: Vectors = JSON.parse(file);
  const filled = vectors.map(({ body, ...vector }) => ({
    ...vector,
    bodyBase64: readFileSync(`${DOCS}vectors/${body}`).toString("base64"),
  }));
  return JSON.stringify({ ...head, vectors: filled }, null, 2);
}

/** The documents that readers work with, and their examples. */
import { readFileSync } from "node:fs";
import { Glob } from "bun";

export interface Example {
  readonly document: string;
  readonly language: string;
  readonly code: string;
}

export const DOCUMENTS = [
  "README.md",
  "CONTRIBUTING.md",
  "client/README.md",
  "client/python/README.md",
  ...[...new Glob("docs/*.md").scanSync(".")].sort(),
  ...[...new Glob("docs/operations/*.md").scanSync(".")].sort(),
];

/** In order. What is fenced without a language is output, or a file to look at. */
export function examplesIn(document: string): Example[] {
  const text = readFileSync(document, "utf8");
  return [...text.matchAll(/^ *```([a-z]+)\n([\s\S]*?)^ *```$/gm)].map(
    ([, language = "", code = ""]) => ({ document, language, code }),
  );
}

/** Commands of a line of a shell: assignments and pipes in it, comments and continued lines taken out. */
export function commandsOf(code: string): string[] {
  const lines = code.replaceAll("\\\n", " ").split("\n");
  return lines.map((line) => line.replace(/(^|\s)# .*$/, "").trim()).filter((line) => line !== "");
}

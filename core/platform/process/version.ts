/** Which version this is. package.json names it, of the repository, in an image and beside a binary alike. */
import { readFileSync } from "node:fs";
import { ownFile } from "./own-files.ts";

interface Manifest {
  readonly version: string;
  /** npm's name for the commit that something was built from; whoever builds an image or a binary adds it. */
  readonly gitHead?: string;
}

const manifest: Manifest = JSON.parse(readFileSync(ownFile("package.json"), "utf8"));

export const VERSION: string = manifest.version;
/** Null where the code runs from its repository, or the build was not told. */
export const COMMIT: string | null = manifest.gitHead ?? null;

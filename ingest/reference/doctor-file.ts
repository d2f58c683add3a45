/** The doctor as one file that Node.js and Bun run without anything else. */

import { existsSync } from "node:fs";
import { ownFile } from "#core/platform/process/own-files.ts";

const ENTRY = ownFile("ingest/doctor/main.ts");
/** A standalone binary has it bundled beside it, and none of its sources. */
export const BUILT_DOCTOR = "ingest/doctor/doctor.mjs";
const BANNER = "#!/usr/bin/env node";

/** Bundles it when it is first asked for, on threads of Bun's own; after a failure the next call tries again. */
export function doctorFile(): () => Promise<string> {
  let bundling: Promise<string> | null = null;
  return () => {
    bundling ??= bundle().catch((error) => {
      bundling = null;
      throw error;
    });
    return bundling;
  };
}

/** @throws if the sources are incomplete */
export async function bundle(): Promise<string> {
  const built = ownFile(BUILT_DOCTOR);
  if (existsSync(built)) return Bun.file(built).text();
  const options = { target: "node", format: "esm", banner: BANNER } as const;
  const { outputs } = await Bun.build({ entrypoints: [ENTRY], ...options });
  const [file] = outputs;
  if (!file || outputs.length > 1) throw new Error("the doctor is not one file");
  return file.text();
}

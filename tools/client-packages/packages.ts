/**
 * The merchants' packages as they are installed: `waybill-client-1.2.3.tgz` for npm, with ECMAScript modules and CommonJS, and
 * `waybill_client-1.2.3-py3-none-any.whl` for Python. The same sources give the same bytes.
 */
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { ownFile } from "#core/platform/process/own-files.ts";
import { run } from "#tools/release/command.ts";
import { wheel } from "./wheel.ts";

/** Relative to `client`. What is listed under `files` of its package.json is made here. */
const NPM_FILES = ["package.json", "README.md", "LICENSE"];

/** The two forms of the code, and the compiler options of each besides the client's tsconfig.json. */
const FORMS = {
  module: [],
  commonjs: [
    ...["--module", "commonjs", "--moduleResolution", "bundler"],
    ...["--verbatimModuleSyntax", "false"],
  ],
} as const;

/** @param out an existing folder */
export async function buildClientPackages(out: string): Promise<void> {
  await Promise.all([buildNpmPackage(resolve(out)), buildWheel(out)]);
}

async function buildNpmPackage(out: string): Promise<void> {
  const client = ownFile("client");
  const staged = await mkdtemp(join(tmpdir(), "waybill-client-package-"));
  try {
    await Promise.all(
      Object.entries(FORMS).map(async ([type, options]) => {
        const folder = join(staged, "dist", type);
        await mkdir(folder, { recursive: true });
        await writeFile(join(folder, "package.json"), `${JSON.stringify({ type })}\n`);
        const bun = process.execPath;
        const compiler = ownFile("node_modules/typescript/bin/tsc");
        await run([bun, compiler, "-p", client, "--outDir", folder, ...options], client);
      }),
    );
    for (const file of NPM_FILES) await cp(join(client, file), join(staged, file));
    await run([process.execPath, "pm", "pack", "--quiet", "--destination", out], staged);
  } finally {
    await rm(staged, { recursive: true, force: true });
  }
}

async function buildWheel(out: string): Promise<void> {
  const { name, bytes } = await wheel(ownFile("client/python"));
  await writeFile(join(out, name), bytes);
}

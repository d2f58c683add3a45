/** A wheel of a package that is Python alone (PEP 427), of what its `pyproject.toml` says. */
import { createHash } from "node:crypto";
import { basename, join } from "node:path";
import { Glob } from "bun";
import { zipSync } from "fflate";

interface Project {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly readme: string;
  readonly license: string;
  readonly "license-files": readonly string[];
  readonly "requires-python": string;
  readonly dependencies: readonly string[];
  readonly keywords: readonly string[];
  readonly classifiers: readonly string[];
}

export interface Wheel {
  /** `waybill_client-1.2.3-py3-none-any.whl` */
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Zip archives know no time before 1980; the same sources shall give the same bytes. */
const FILE_TIME = new Date(1980, 0, 1);
const WHEEL = "Wheel-Version: 1.0\nGenerator: waybill\nRoot-Is-Purelib: true\nTag: py3-none-any\n";

/** @param folder with `pyproject.toml` and the package beside it */
export async function wheel(folder: string): Promise<Wheel> {
  const { project } = Bun.TOML.parse(await Bun.file(join(folder, "pyproject.toml")).text()) as {
    readonly project: Project;
  };
  const module = project.name.replaceAll("-", "_");
  const stem = `${module}-${project.version}`;
  const info = `${stem}.dist-info`;
  const read = async (path: string) => [path, await Bun.file(join(folder, path)).bytes()] as const;
  const code = await Array.fromAsync(new Glob(`${module}/*.{py,typed}`).scan(folder));
  const files = new Map(await Promise.all(code.sort().map(read)));
  for (const file of project["license-files"]) {
    files.set(`${info}/licenses/${basename(file)}`, (await read(file))[1]);
  }
  const readme = (await read(project.readme))[1];
  files.set(`${info}/METADATA`, Buffer.concat([Buffer.from(metadata(project)), readme]));
  files.set(`${info}/WHEEL`, Buffer.from(WHEEL));
  files.set(`${info}/RECORD`, Buffer.from(record(files, `${info}/RECORD`)));
  return {
    name: `${stem}-py3-none-any.whl`,
    bytes: zipSync(Object.fromEntries(files), { mtime: FILE_TIME }),
  };
}

/** Core metadata 2.4, up to the description. */
function metadata(project: Project): string {
  const lines = [
    "Metadata-Version: 2.4",
    `Name: ${project.name}`,
    `Version: ${project.version}`,
    `Summary: ${project.description}`,
    `Keywords: ${project.keywords.join(",")}`,
    `License-Expression: ${project.license}`,
    ...project["license-files"].map((file) => `License-File: ${basename(file)}`),
    ...project.classifiers.map((one) => `Classifier: ${one}`),
    `Requires-Python: ${project["requires-python"]}`,
    ...project.dependencies.map((one) => `Requires-Dist: ${one}`),
    "Description-Content-Type: text/markdown",
  ];
  return `${lines.join("\n")}\n\n`;
}

/** Of itself it has neither hash nor size. */
function record(files: ReadonlyMap<string, Uint8Array>, self: string): string {
  const rows = [...files].map(([path, bytes]) => {
    const hash = createHash("sha256").update(bytes).digest("base64url");
    return `${path},sha256=${hash},${bytes.length}\n`;
  });
  return `${rows.join("")}${self},,\n`;
}

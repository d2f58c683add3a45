/** What a release publishes: the image, and the merchants' packages for npm and Python. */
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";
import { attempt, run } from "./command.ts";

/** Programs that build a Python package, the first of which is taken that answers. */
const PYTHON_BUILDERS = [
  { asks: ["uv", "--version"], builds: ["uv", "build", "--out-dir"] },
  { asks: ["python3", "-m", "build", "--version"], builds: ["python3", "-m", "build", "--outdir"] },
];

/** @returns what is to be said of it, a line each */
export async function buildArtefacts(
  root: string,
  out: string,
  version: string,
): Promise<string[]> {
  const tree = join(out, "image");
  await run(["npm", "run", "tool", "--", "image-tree", tree], root);
  await cp(join(tree, "sbom.json"), join(out, "sbom.json"));
  await run(["npm", "pack", "--pack-destination", out], join(root, "client"));
  return [await buildImage(root, version), await buildPython(root, out)];
}

async function buildImage(root: string, version: string): Promise<string> {
  const name = `waybill:${version}`;
  if ((await attempt(["docker", "version", "--format", "{{.Server.Version}}"], root)) === null) {
    return `no container engine answers: build the image with "docker build -t ${name} ." at v${version}`;
  }
  const label = `org.opencontainers.image.version=${version}`;
  await run(["docker", "build", "--quiet", "--label", label, "--tag", name, "."], root);
  return `image ${name}`;
}

async function buildPython(root: string, out: string): Promise<string> {
  const folder = join(root, "client/python");
  for (const { asks, builds } of PYTHON_BUILDERS) {
    if ((await attempt(asks, folder)) === null) continue;
    await run([...builds, out], folder);
    // uv writes one into the folder that it is given.
    await rm(join(out, ".gitignore"), { force: true });
    return "Python package built";
  }
  return 'neither uv nor "python3 -m build" is there: the Python package was not built';
}

/** What a release publishes: the image, and the merchants' packages for npm and Python. */
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { attempt, run } from "./command.ts";

/** @returns what is to be said of the image */
export async function buildArtefacts(root: string, out: string, version: string): Promise<string> {
  const tree = join(out, "image");
  await run(["npm", "run", "tool", "--", "image-tree", tree], root);
  await cp(join(tree, "sbom.json"), join(out, "sbom.json"));
  await run(["npm", "run", "tool", "--", "client-packages", out], root);
  return buildImage(root, version);
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

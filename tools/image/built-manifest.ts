/** The package.json of something that is built: with the commit, so that it can say what it is (`core/platform/process/version.ts`). */
import { readFile } from "node:fs/promises";

/** @param given the commit, where the repository is not here (a container's build); empty = the one that is checked out, if any */
export async function builtManifest(given = ""): Promise<string> {
  const manifest = JSON.parse(await readFile("package.json", "utf8"));
  const gitHead = given === "" ? await checkedOut() : given;
  return `${JSON.stringify(gitHead === null ? manifest : { ...manifest, gitHead }, null, 2)}\n`;
}

async function checkedOut(): Promise<string | null> {
  const git = Bun.which("git");
  if (git === null) return null;
  const head = Bun.spawn([git, "rev-parse", "HEAD"], { stderr: "ignore" });
  const text = (await new Response(head.stdout).text()).trim();
  return (await head.exited) === 0 ? text : null;
}

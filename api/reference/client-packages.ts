/** `GET /v2/clients/`: the merchants' packages, to be installed from here. */
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { html } from "#core/platform/http/html.ts";
import { originOf } from "#core/platform/http/peer.ts";
import { PUBLIC_CACHE, pageResponse, referencePage } from "#core/platform/http/reference-page.ts";
import { ownFile } from "#core/platform/process/own-files.ts";

/** In an image and beside a binary the packages are there already, and what builds them is not. */
export const BUILT_CLIENTS = "client/packages";
const PATH = "/v2/clients/";
/** What is not named so is missing before anything is built. */
const PACKAGE_NAME = /^waybill[-_]client-.+\.(tgz|whl)$/;

/** A connection that waits for the first build is not idle. */
const BUILD_SECONDS = 240;

/** Bytes by file name. */
type Packages = ReadonlyMap<string, Uint8Array<ArrayBuffer>>;

let packages: Promise<Packages> | null = null;

/** Read once for all roles of the process; after a failure the next call tries again. */
function clientPackages(): Promise<Packages> {
  packages ??= readOrBuild().catch((error: unknown) => {
    packages = null;
    throw error;
  });
  return packages;
}

async function readOrBuild(): Promise<Packages> {
  const built = await read(ownFile(BUILT_CLIENTS));
  return built.size > 0 ? built : build();
}

async function read(folder: string): Promise<Packages> {
  const names = await readdir(folder).catch(() => []);
  return new Map(
    await Promise.all(
      names.sort().map(async (name) => [name, await Bun.file(join(folder, name)).bytes()] as const),
    ),
  );
}

/** By the tool, which needs the development packages. @throws with what it says */
async function build(): Promise<Packages> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-clients-"));
  try {
    const command = [process.execPath, ownFile("tools/main.ts"), "client-packages", folder];
    const child = Bun.spawn(command, { stdin: "ignore", stdout: "ignore", stderr: "pipe" });
    const errors = await new Response(child.stderr).text();
    if ((await child.exited) !== 0) throw new Error(`the clients cannot be built: ${errors}`);
    return await read(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param config whose trusted proxies say by which scheme they were asked */
export function clientPackageRoutes(config: Pick<Config, "trustedProxies">) {
  return publicRoutes("client packages")
    .onBeforeHandle(({ request, server }) => void server?.timeout(request, BUILD_SECONDS))
    .get(PATH, async ({ request, server }) => {
      const base = new URL(PATH, originOf(request, server, config));
      return pageResponse(indexPage([...(await clientPackages()).keys()], base.href), PUBLIC_CACHE);
    })
    .get(`${PATH}:file`, async ({ params }) => {
      const named = PACKAGE_NAME.test(params.file) ? await clientPackages() : null;
      const bytes = named?.get(params.file);
      if (bytes === undefined) throw new Problem(404, "NOT_FOUND", `There is no ${params.file}.`);
      return new Response(bytes, {
        headers: { "content-type": "application/octet-stream", ...PUBLIC_CACHE },
      });
    });
}

/** Its links are also what `pip install --find-links` reads. */
function indexPage(names: readonly string[], base: string): string {
  const installed = (name: string) =>
    `${name.endsWith(".whl") ? "pip" : "npm"} install ${base}${name}`;
  return referencePage(
    "Clients of the merchant API",
    html`<ul>${names.map((name) => html`<li><a href="${PATH}${name}">${name}</a></li>`)}</ul>
<pre>${names.map((name) => `${installed(name)}\n`)}</pre>`,
  );
}

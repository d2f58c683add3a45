/** Whole programs that integrating engineers start from: files of `client/examples`, with nothing to install. */
import { readFileSync } from "node:fs";
import { ownFile } from "#core/platform/process/own-files.ts";
import { publicRoutes } from "./access.ts";
import { publicText } from "./compression.ts";
import { PUBLIC_CACHE } from "./reference-page.ts";

type Program = "merchant" | "courier";

/**
 * @param path that the names of the files follow
 * @param headers that every answer of the port has
 */
export function exampleRoutes(
  path: string,
  program: Program,
  headers: Readonly<Record<string, string>> = {},
) {
  const all = {
    "content-type": "text/plain; charset=utf-8",
    "x-content-type-options": "nosniff",
    ...PUBLIC_CACHE,
    ...headers,
  };
  const textOf = (file: string) => {
    const text = readFileSync(ownFile(`client/examples/${file}`), "utf8");
    return publicText(() => text);
  };
  const [typescript, python] = [textOf(`${program}.ts`), textOf(`${program}.py`)];
  return publicRoutes(`examples ${path}`)
    .get(`${path}/${program}.ts`, ({ request }) => typescript(request, all))
    .get(`${path}/${program}.py`, ({ request }) => python(request, all));
}

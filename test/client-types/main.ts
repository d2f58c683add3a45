/** `npm run tool -- client-types`: writes what the merchants' packages have of the API. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { command } from "#core/platform/process/command-line.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi } from "#test/support/product/api.ts";
import { CLIENT_CODE_FOLDER, clientCode } from "./generate.ts";
import { PYTHON_TYPES_FILE, pythonTypes } from "./python-types.ts";

export const tool = command({
  name: "npm run tool -- client-types",
  forms: [""],
  about: "Writes what the merchants' packages have of the OpenAPI document.",
  options: {},
  async run() {
    const api = await openTestApi(testSetup());
    const code = await clientCode(api);
    await rm(CLIENT_CODE_FOLDER, { recursive: true, force: true });
    for (const [file, text] of code) await Bun.write(join(CLIENT_CODE_FOLDER, file), text);
    await Bun.write(PYTHON_TYPES_FILE, pythonTypes(api));
    await api.end();
  },
});

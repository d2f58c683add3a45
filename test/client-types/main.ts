import { command } from "#core/platform/process/command-line.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi } from "#test/support/product/api.ts";
import { CLIENT_TYPES_FILE, clientTypes } from "./generate.ts";
import { PYTHON_TYPES_FILE, pythonTypes } from "./python-types.ts";

export const tool = command({
  name: "npm run tool -- client-types",
  forms: [""],
  about: "Writes the types of the merchants' packages from the OpenAPI document.",
  options: {},
  async run() {
    const api = await openTestApi(testSetup());
    await Bun.write(CLIENT_TYPES_FILE, await clientTypes(api));
    await Bun.write(PYTHON_TYPES_FILE, pythonTypes(api));
    await api.end();
  },
});

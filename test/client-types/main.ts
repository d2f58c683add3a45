/** `npm run tool -- client-types`: writes the types of the merchants' packages. */

import { testSetup } from "#test/support/data/setup.ts";
import { openTestApi } from "#test/support/product/api.ts";
import { CLIENT_TYPES_FILE, clientTypes } from "./generate.ts";
import { PYTHON_TYPES_FILE, pythonTypes } from "./python-types.ts";

const api = await openTestApi(testSetup());
await Bun.write(CLIENT_TYPES_FILE, await clientTypes(api));
await Bun.write(PYTHON_TYPES_FILE, pythonTypes(api));
await api.end();

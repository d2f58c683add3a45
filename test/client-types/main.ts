/** `bun run client-types`: writes the types of the merchants' package. */
import { openTestApi } from "#test/support/api.ts";
import { testSetup } from "#test/support/setup.ts";
import { CLIENT_TYPES_FILE, clientTypes } from "./generate.ts";

const api = await openTestApi(testSetup());
await Bun.write(CLIENT_TYPES_FILE, await clientTypes(api));
await api.end();

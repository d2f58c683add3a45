/** Writes the table of docs/operations/settings.md. */
import { PAGE, withSettings } from "./settings-table.ts";

await Bun.write(PAGE, withSettings(await Bun.file(PAGE).text()));

/** Writes the tables of docs/limits.md. */
import { limitsPage, PAGE } from "./limits-page.ts";

await Bun.write(PAGE, await limitsPage());

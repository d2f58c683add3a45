/** Prints `.env.example` (`bun run env-example`). */
import { envExample } from "#core/variables.ts";

process.stdout.write(envExample());

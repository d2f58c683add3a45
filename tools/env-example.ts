/** Prints `.env.example` (`bun run env-example`). */
import { envExample } from "#core/platform/environment/variables.ts";

process.stdout.write(envExample());

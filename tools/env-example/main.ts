/** Writes `.env.example`. */
import { envExample } from "#core/platform/environment/variables.ts";

await Bun.write(".env.example", envExample());

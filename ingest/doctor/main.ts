/** The file that the service hands out (`GET /v1/doctor.mjs`), which needs no more than Node.js 20 or Bun. */
import { courierDoctor } from "#ingest/doctor/courier-doctor.ts";

process.exitCode = await courierDoctor("node doctor.mjs")(process.argv.slice(2), process.env);

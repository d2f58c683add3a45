/**
 * `npm run tool -- fuzz [--cases N] [--seed N]`: draws requests from the three OpenAPI documents, sends them to a running copy and
 * compares what comes back with what the documents say. Needs python3 and, the first time, PyPI; says so without them.
 */
import { parseArgs } from "node:util";
import { fuzz, install } from "./schemathesis.ts";
import { serve } from "./serve.ts";

const { values } = parseArgs({
  options: {
    cases: { type: "string", default: "100" },
    seed: { type: "string", default: "1" },
  },
});

const missing = await install();
if (missing !== null) {
  process.stdout.write(`skipped: schemathesis cannot be installed (${missing})\n`);
  process.exit(0);
}
const served = await serve();
const results = await fuzz(served, Number(values.cases), Number(values.seed));
await served.stop();
for (const { api, cases, findings, report } of results) {
  if (findings > 0) process.stdout.write(report);
  process.stdout.write(`${api}: ${cases} cases, ${findings} findings\n`);
}
process.exit(results.every(({ findings }) => findings === 0) ? 0 : 1);

import { command, numberOption } from "#core/platform/process/command-line.ts";
import { fuzz, install } from "./schemathesis.ts";
import { serve } from "./serve.ts";

export const tool = command({
  name: "npm run tool -- fuzz",
  forms: ["[--cases N] [--seed N]"],
  about: `Draws requests from the three OpenAPI documents, sends them to a running copy and compares what comes back with what the
documents say. Needs python3 and, the first time, PyPI; says so without them.`,
  options: {
    cases: { type: "string", value: "N", about: "of each call and phase, at most; 100 by default" },
    seed: { type: "string", value: "N", about: "the same values for the same seed; 1 by default" },
  },
  async run({ values: { cases = "100", seed = "1" }, say }) {
    const [most, drawn] = [numberOption("cases", cases), numberOption("seed", seed, 0)];
    const missing = await install();
    if (missing !== null) {
      say(`skipped: schemathesis cannot be installed (${missing})`);
      return 0;
    }
    const served = await serve();
    const results = await fuzz(served, most, drawn);
    await served.stop();
    for (const { api, cases: sent, findings, report } of results) {
      if (findings > 0) process.stdout.write(report);
      say(`${api}: ${sent} cases, ${findings} findings`);
    }
    process.exit(results.every(({ findings }) => findings === 0) ? 0 : 1);
  },
});

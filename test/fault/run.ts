import { spawn } from "node:child_process";
import { once } from "node:events";
import { command, numberOption } from "#core/platform/process/command-line.ts";
import { productEnv } from "#test/support/product/product.ts";

export const tool = command({
  name: "npm run tool -- fault",
  forms: ["[--minutes N]"],
  about:
    "Runs the fault suites for as long as wanted, half of it on one Redis server and half on a cluster.",
  options: {
    minutes: { type: "string", value: "N", about: "0 by default: as short as they can be" },
  },
  async run({ values: { minutes = "0" } }) {
    const env = { ...productEnv(), FAULT_MINUTES: String(numberOption("minutes", minutes, 0)) };
    const args = ["test", "--timeout=120000", "test/fault"];
    const [code] = await once(spawn("bun", args, { env, stdio: "inherit" }), "exit");
    return code ?? 1;
  },
});

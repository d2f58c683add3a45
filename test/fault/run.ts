/** The fault suites for as long as wanted, half of it on one Redis server and half on a cluster: `npm run tool -- fault --minutes N`. */
import { spawn } from "node:child_process";
import { parseArgs } from "node:util";
import { productEnv } from "#test/support/product/product.ts";

const { values } = parseArgs({ options: { minutes: { type: "string", default: "0" } } });
const env = { ...productEnv(), FAULT_MINUTES: String(Number(values.minutes) || 0) };
const child = spawn("bun", ["test", "--timeout=120000", "test/fault"], { env, stdio: "inherit" });
child.on("exit", (code) => {
  process.exitCode = code ?? 1;
});

#!/usr/bin/env node
/** `waybill` of this package: `listen` alone. The product's program of the same name has it too, beside its own commands. */
import { listenCommand, USAGE } from "./listen-command.ts";

const { argv, env } = process;
const [name = "", ...args] = argv.slice(2);
if (name === "listen" || name === "--help" || name === "-h") {
  // CommonJS has no await here.
  void listenCommand(name === "listen" ? args : [name], env).then((status) => {
    process.exitCode = status;
  });
} else {
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}

/** Exits with 0 if a role of this machine is ready: the health check of containers. The argument is its port. */
import { argv } from "node:process";

const LIMIT_MS = 4_000;

const [port = ""] = argv.slice(2);
const answer = await fetch(`http://127.0.0.1:${port}/readyz`, {
  signal: AbortSignal.timeout(LIMIT_MS),
}).catch(() => null);
process.exit(answer?.ok ? 0 : 1);

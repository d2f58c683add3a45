/** Exits with 0 if a role of this machine is ready: the health check of containers. The argument is its port; HOST counts as for the role. */
import { argv, env } from "node:process";
import { urlOf } from "#core/platform/environment/url-of.ts";

const LIMIT_MS = 4_000;

const [port = ""] = argv.slice(2);
const host = env["HOST"] || "127.0.0.1";
/** Ingest may serve HTTPS itself, by a certificate of another name. */
const answers = await Promise.all(
  (["http", "https"] as const).map((scheme) =>
    fetch(`${urlOf(host, Number(port), scheme)}/readyz`, {
      signal: AbortSignal.timeout(LIMIT_MS),
      tls: { rejectUnauthorized: false },
    }).catch(() => null),
  ),
);
process.exit(answers.some((answer) => answer?.ok) ? 0 : 1);

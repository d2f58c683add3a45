/** One JSON line per event on standard output. No secret, token, e-mail address, phone or name goes in (invariant 8). */
import { pino } from "pino";
import { currentRequestId } from "#core/platform/http/request-id.ts";
import { currentSpan } from "./tracing.ts";

export type Log = pino.Logger;

/** @param destination standard output, unless a test reads the lines */
export function createLog(level: string, destination?: pino.DestinationStream): Log {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime, mixin };
  return destination ? pino(options, destination) : pino(options);
}

/** Warnings of a command, on standard error: its result is on standard output, and `--json` makes it one document. */
export function commandLog(): Log {
  return createLog("warn", pino.destination({ dest: 2, sync: true }));
}

/** What every line of a request has. */
function mixin(): object {
  const requestId = currentRequestId();
  const span = currentSpan();
  if (span !== null) return { requestId, traceId: span.traceId };
  return requestId === undefined ? {} : { requestId };
}

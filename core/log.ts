/** One JSON line per event on standard output. No secret, token, e-mail address, phone or name goes in (invariant 8). */
import { pino } from "pino";

export type Log = pino.Logger;

export function createLog(level: string): Log {
  return pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime });
}

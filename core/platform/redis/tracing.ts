/** Tells node-redis whether anybody listens to its tracing channels, as Node does and Bun does not. */
import { tracingChannel } from "node:diagnostics_channel";

const PARTS = ["start", "end", "asyncStart", "asyncEnd", "error"] as const;

/**
 * Without an answer node-redis takes it that somebody does, and turns every argument of every command into text for
 * nobody: a tenth of the CPU time of a commit. Repeating it changes nothing; where the answer is there already, it stays.
 */
export function answerTracing(): void {
  const channel = tracingChannel("waybill");
  if (channel.hasSubscribers !== undefined) return;
  Object.defineProperty(Object.getPrototypeOf(channel), "hasSubscribers", {
    configurable: true,
    get(this: typeof channel) {
      return PARTS.some((part) => this[part].hasSubscribers);
    },
  });
}

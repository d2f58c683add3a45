/** How long a stop takes at most, once the ports have closed. A process ends as soon as nothing that it accepted is left. */
import { limit } from "#core/platform/schema/limit.ts";

/**
 * From the end of a request's body to its answer. A change of the configuration takes longest: it waits up to 30 s for its turn and 5 s
 * for the hosts of webhooks (`test/unit/platform/stop-limits.test.ts` compares the longest waits).
 */
export const ANSWER_LIMIT_MS = limit(
  40_000,
  "answer to a request that was accepted before a stop",
  "the connection is closed",
);
export const LAST_BODY_LIMIT_MS = limit(
  5_000,
  "bodies that are still arriving when a process closes its ports",
  "503 with `Retry-After`; nothing of them was accepted",
);
export const ROLES_STOP_LIMIT_MS = limit(
  LAST_BODY_LIMIT_MS + ANSWER_LIMIT_MS,
  "stop of all roles of a process",
  "what hangs is left to its redelivery",
);
/** The rest belongs to the embedded Redis, which must not outlive us. */
export const STOP_LIMIT_MS = limit(
  ROLES_STOP_LIMIT_MS + 10_000,
  "stop of a process after its drain",
  "what hangs is left to its redelivery",
);

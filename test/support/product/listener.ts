/** Who hears announcements of other clients (`core/platform/redis/wake.ts`). */
import type { Redis } from "#core/platform/redis/client.ts";
import { announce, openWaker } from "#core/platform/redis/wake.ts";
import { eventually } from "#test/support/eventually.ts";

/** Counts announcements. */
export function countAnnouncements() {
  let count = 0;
  return {
    heard: () => count,
    hear() {
      count += 1;
    },
  };
}

/** Waits for announcements of another client. */
export function listenTo(other: Redis, waiting: Redis) {
  const { heard, hear } = countAnnouncements();
  const waker = openWaker(waiting, "messages", hear);
  return {
    async isHeard(why: string): Promise<void> {
      const before = heard();
      await eventually(() => {
        announce(other, "messages");
        return heard() > before;
      }, why);
    },
    close: waker.close,
  };
}

/** The depot of the demo's couriers: releases what the merchants ask for and tells of it as the couriers do. */
import { createCourierClient } from "./courier-client.ts";
import { DEMO_COURIERS, releasedWords } from "./couriers.ts";
import { type Depot, startDepot } from "./depot.ts";

export interface DemoDepot extends Depot {
  /** Where events go, once it is known. */
  readonly tellBy: (ingestUrl: string) => void;
}

export function startDemoDepot(now: () => number): DemoDepot {
  const abort = new AbortController();
  let client: ReturnType<typeof createCourierClient> | null = null;
  const depot = startDepot({
    now,
    wordsOf: releasedWords,
    async tell(code, event) {
      const courier = DEMO_COURIERS.find((one) => one.code === code);
      if (courier) await client?.push(courier, [event]);
    },
  });
  return {
    ...depot,
    tellBy(ingestUrl) {
      client = createCourierClient(ingestUrl, abort.signal, now);
    },
    async stop() {
      abort.abort();
      await depot.stop();
    },
  };
}

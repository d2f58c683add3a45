/** The jobs part of the processors: imports and their callbacks. */
import { limit } from "#core/platform/schema/limit.ts";
import type { Running, Runtime } from "#core/runtime/runtime.ts";
import { createTransport, readCa } from "#core/webhooks/store/transport/transport.ts";
import { callbackWork } from "./import-callbacks.ts";
import { importWork } from "./import-work.ts";
import { startWorker } from "./worker.ts";

/** Jobs in work at once; their steps take turns. */
const JOBS_AT_ONCE = 2;
/** Callbacks under way at once, each of up to 10 s. */
const CALLBACKS_IN_HAND = limit(32, "callbacks of imports under way in one process", "they wait");

/** @throws when WEBHOOK_CA_FILE cannot be read or holds no certificate. */
export async function startJobs({ redis, log, live, config, secrets }: Runtime): Promise<Running> {
  const transport = createTransport({
    allowed: config.webhookAllowedCidrs,
    ca: await readCa(config.webhookCaFile),
  });
  const imports = startWorker({
    redis,
    log,
    live,
    queue: "imports",
    atOnce: JOBS_AT_ONCE,
    work: importWork({ redis, log, live }),
  });
  const callbacks = startWorker({
    redis,
    log,
    live,
    queue: "import-callbacks",
    atOnce: CALLBACKS_IN_HAND,
    work: callbackWork({ redis, log, live, transport, vault: secrets.vault }),
  });
  return {
    name: "jobs",
    url: null,
    async stop() {
      await Promise.all([imports.stop(), callbacks.stop()]);
      transport.close();
    },
  };
}

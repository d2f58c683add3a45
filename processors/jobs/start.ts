/** The jobs part of the processors: imports. */
import type { Running, Runtime } from "#core/runtime.ts";
import { createTransport, readCa } from "#processors/webhooks/transport.ts";
import { startWorker } from "#processors/worker.ts";
import { importWork } from "./import-work.ts";

/** Jobs in work at once; each sends one command after the other. */
const JOBS_AT_ONCE = 2;

/** @throws when WEBHOOK_CA_FILE cannot be read or holds no certificate. */
export async function startJobs({ redis, log, live, config, secrets }: Runtime): Promise<Running> {
  const transport = createTransport({
    allowed: config.webhookAllowedCidrs,
    ca: await readCa(config.webhookCaFile),
  });
  const worker = startWorker({
    ...{ redis, log, live, queue: "imports", atOnce: JOBS_AT_ONCE },
    work: importWork({ redis, log, live, transport, vault: secrets.vault }),
  });
  return {
    name: "jobs",
    url: null,
    async stop() {
      await worker.stop();
      transport.close();
    },
  };
}

/**
 * Sends the callbacks of finished imports (document 1, `POST /v2/shipments/import`). They have a queue of their own, and a
 * channel has few of them under way at once: a slow receiver holds up neither imports nor other channels' callbacks.
 */

import type { Live } from "#core/configuration/store/live.ts";
import {
  type ImportJob,
  importResultText,
  noteCallback,
  readJob,
} from "#core/merchants/store/jobs/import-jobs.ts";
import type { Taken } from "#core/merchants/store/jobs/work-queue.ts";
import { jsonObject } from "#core/platform/process/json-text.ts";
import type { Log } from "#core/platform/process/log.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { limit } from "#core/platform/schema/limit.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { callbackOutcome, IMPORT_CALLBACK_TYPE } from "#core/shipments/rules/import-callback.ts";
import { sign } from "#core/webhooks/rules/signature.ts";
import { webhookHeaders } from "#core/webhooks/rules/webhook-request.ts";
import { secretsInForce } from "#core/webhooks/store/signed-headers.ts";
import type { Transport } from "#core/webhooks/store/transport/transport.ts";
import type { WorkVerdict } from "./worker.ts";

export interface CallbackDeps {
  readonly redis: Redis;
  readonly log: Log;
  readonly live: Live;
  readonly vault: Vault;
  readonly transport: Transport;
}

export const CALLBACKS_AT_ONCE = limit(
  4,
  "callbacks of imports of a channel under way in one process",
  "they wait",
);
/** When a callback is tried again that found its channel busy. */
const BUSY_WAIT_MS = 2_000;

export function callbackWork(deps: CallbackDeps): (taken: Taken) => Promise<WorkVerdict> {
  const { redis, live } = deps;
  /** Callbacks under way, by channel. */
  const underWay = new Map<number, number>();
  return async ({ partition, id }) => {
    const job = await readJob(redis, partition, id, live.now());
    if (!job) return null;
    const { channelId } = job;
    const others = underWay.get(channelId) ?? 0;
    if (others >= CALLBACKS_AT_ONCE) return live.now() + BUSY_WAIT_MS;
    underWay.set(channelId, others + 1);
    try {
      await callBack(deps, partition, job);
      return null;
    } finally {
      const left = (underWay.get(channelId) ?? 1) - 1;
      if (left > 0) underWay.set(channelId, left);
      else underWay.delete(channelId);
    }
  };
}

/**
 * Best effort: one try, repeated only where a killed process may have cut it short. Polling is the source of truth. The
 * request is signed with the secret of every webhook endpoint of the channel, since nothing tells which of them the
 * receiver belongs to; a channel without endpoints has no secret.
 */
async function callBack(
  { redis, log, live, vault, transport }: CallbackDeps,
  partition: number,
  job: ImportJob,
): Promise<void> {
  const { jobId, channelId, status, webhookUrl } = job;
  if (webhookUrl === null || job.callback !== null) return;
  const { publicUrl, channels } = live.configuration();
  const result = await importResultText(redis, partition, job, publicUrl);
  const head = { jobId: JSON.stringify(jobId), status: JSON.stringify(status), result };
  const body = jsonObject(head).join("");
  const sentAtMs = live.now();
  const event = { eventId: jobId, type: IMPORT_CALLBACK_TYPE, attempt: 1, sentAtMs };
  const endpoints = channels.get(channelId)?.endpoints ?? [];
  const secrets = endpoints.flatMap((endpoint) => secretsInForce(endpoint, vault, sentAtMs));
  const headers = webhookHeaders(event, { standardWebhooks: false });
  if (secrets.length > 0) headers["X-Service-Signature"] = sign(secrets, body, sentAtMs);
  const sent = await transport.post(webhookUrl, headers, body, { allowHttp: true });
  const outcome = callbackOutcome(sent, sentAtMs);
  await noteCallback(redis, partition, job, outcome);
  if (outcome.status !== "delivered") {
    log.info({ job: jobId, answer: sent.kind }, "the callback of an import failed");
  }
}

/** `POST /v2/shipments/import` (document 1, "Shipments"): up to 5,000 shipments, created by a background job. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { IMPORT_BODY_BYTES } from "#api/http/body-limits.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { noteWarnings, warningsOf } from "#api/http/warnings.ts";
import {
  acceptJob,
  type ImportChunk,
  importChunks,
} from "#core/merchants/store/jobs/import-jobs.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { hostOf, vetHosts } from "#core/platform/network/vetted-address.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import {
  addUnknownMembers,
  type Warning,
  warnings,
} from "#core/platform/schema/unknown-members.ts";
import { ITEM_ERRORS } from "#core/shipments/rules/import-result.ts";
import { SHIPMENTS_PER_IMPORT, ShipmentInput } from "#core/shipments/rules/shipment.ts";
import { faultOfWebhookUrl, WEBHOOK_URL_LENGTH } from "#core/webhooks/rules/webhook-url.ts";
import { EXAMPLE_ITEM } from "./create.ts";
import { readShipments } from "./read-shipments.ts";

/** Items are judged one by one in the background. */
export const ImportBody = Type.Object({
  shipments: Type.Array(Type.Unknown({ publishedAs: ShipmentInput }), {
    minItems: 1,
    maxItems: SHIPMENTS_PER_IMPORT,
    description: "items as in POST /v2/shipments; an invalid one fails alone",
  }),
  webhookUrl: Type.Optional(
    Type.String({
      maxLength: WEBHOOK_URL_LENGTH,
      format: "http-uri",
      description:
        "is called once, best effort, when the job ends; signed like a webhook, with the secrets of the channel's webhook endpoints",
    }),
  ),
});
const checker = compileSchema(ImportBody);

export const AcceptedImport = Type.Object({
  jobId: Type.String(),
  status: Type.Literal("processing"),
  statusUrl: Type.String({ description: "relative to /v2" }),
  totalShipments: Type.Integer(),
  warnings,
});
type AcceptedImport = Static<typeof AcceptedImport>;

const operation = repeatable({
  access: { scope: "shipments:write" },
  id: "importShipments",
  summary: "Create up to 5,000 shipments by a background job",
  description: `An invalid item fails alone, with VALIDATION_ERROR. The job reports the outcome. To \`webhookUrl\`, whose host must be public, \`{jobId, status, result}\` is sent once at the end, signed like a webhook with the secrets of the channel's webhook endpoints. A request that fails is not repeated; the job's \`callback\` says what came of it. ${ITEM_ERRORS}`,
  body: {
    schema: ImportBody,
    limitBytes: IMPORT_BODY_BYTES,
    read: readImport,
    example: { shipments: [EXAMPLE_ITEM] },
  },
  rules: [
    {
      path: "webhookUrl",
      code: "BAD_FORMAT",
      rule: "a host must be named, and no user or password",
    },
    {
      path: "webhookUrl",
      code: "NOT_ALLOWED",
      rule: "the host must resolve only to public addresses",
    },
  ],
  answers: {
    202: json("The job is queued.", AcceptedImport, {
      jobId: "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
      status: "processing",
      statusUrl: "/jobs/7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
      totalShipments: 1,
    }),
  },
  errors: ["IMPORT_QUEUE_FULL"],
});

const RETRY_AFTER_SECONDS = "10";

export function importRoute(deps: ApiDeps) {
  const { config, redis, live } = deps;
  return merchantRoutes(deps).post(
    "/v2/shipments/import",
    async ({ body, request, caller, set }): Promise<AcceptedImport> => {
      const { chunks, total, webhookUrl } = body;
      await checkUrl(config, webhookUrl);
      const parts = [webhookUrl, ...chunks];
      return onceByKey(deps, { request, caller, set }, parts, async () => {
        const { companyId, id: channelId } = caller.channel;
        const warnings = warningsOf(request);
        const job = { companyId, channelId, chunks, total, webhookUrl, warnings };
        const jobId = await acceptJob(redis, job, live.now());
        if (jobId === null) throw tooManyJobs();
        set.status = 202;
        const statusUrl = `/jobs/${jobId}`;
        return { jobId, status: "processing" as const, statusUrl, totalShipments: total };
      });
    },
    route(operation),
  );
}

interface Import {
  readonly chunks: readonly ImportChunk[];
  readonly total: number;
  readonly webhookUrl: string | null;
}

/**
 * Items are serialized for the job as soon as they are read. An item whose text is not valid Unicode fails on its own
 * later: its JSON is plain ASCII.
 * @throws {Problem} 400, 408, 413, 422
 */
async function readImport(request: Request): Promise<Import> {
  const items = importChunks();
  const unknown: Warning[] = [];
  const limits = { bytes: IMPORT_BODY_BYTES, items: SHIPMENTS_PER_IMPORT };
  const body = await readShipments(request, limits, ["webhookUrl"], unknown, (item) => {
    addUnknownMembers(ShipmentInput, item, `shipments[${items.count()}]`, unknown);
    items.add(item);
  });
  if (!checker.check(body)) throw validationFailed(listFaults(checker.errors(body)), body);
  const { webhookUrl = null, shipments } = body;
  const faults = illFormedText({ webhookUrl });
  if (faults.length > 0) throw validationFailed(faults);
  noteWarnings(request, unknown);
  return { chunks: items.chunks(), total: shipments.length, webhookUrl };
}

/**
 * As for webhook endpoints: every address of the host must be public. A name that cannot be resolved at the moment is let
 * pass; it is resolved again for the call, and the job says what came of that.
 * @throws {Problem} 422
 */
async function checkUrl(
  { webhookAllowedCidrs }: Pick<Config, "webhookAllowedCidrs">,
  webhookUrl: string | null,
): Promise<void> {
  if (webhookUrl === null) return;
  const path = "webhookUrl";
  const message = faultOfWebhookUrl(webhookUrl, ["https:", "http:"]);
  if (message !== null) throw validationFailed([{ path, code: "BAD_FORMAT", message }]);
  const { refused } = await vetHosts([hostOf(new URL(webhookUrl))], webhookAllowedCidrs);
  if (refused.size === 0) return;
  const notPublic = "The host must resolve only to public addresses.";
  throw validationFailed([{ path, code: "NOT_ALLOWED", message: notPublic }]);
}

function tooManyJobs(): Problem {
  return new Problem(503, "IMPORT_QUEUE_FULL", "The channel has too many unfinished imports.", {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}

/** `POST /panel/api/webhooks/{endpointId}/test`: one test event (document 3, "Test event"), in a chosen status. */

import { type Static, Type } from "@sinclair/typebox";
import type { Configuration } from "#core/configuration/store/configuration.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { type Status, type StatusPair, StatusSchema } from "#core/statuses/rules/status.ts";
import { WebhookPayload } from "#core/webhooks/rules/webhook-payload.ts";
import { SAMPLE_PAIR } from "#core/webhooks/rules/webhook-sample.ts";
import { requestTestEvent } from "#core/webhooks/store/webhook-tests.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { noteChange, panelRoutes } from "#panel/server/panel-routes.ts";
import { endpointOf, refuseFaults } from "./webhook-access.ts";

const TestInput = Type.Object(
  {
    status: Type.Optional({
      ...StatusSchema,
      description: `status of the sample shipment; default ${SAMPLE_PAIR.status}`,
    }),
    statusDetail: Type.Optional(
      Type.Integer({ minimum: 0, description: "a detail of this status; default 0 = none" }),
    ),
  },
  { additionalProperties: false },
);
type TestInput = Static<typeof TestInput>;

const Tested = Type.Object({
  delivered: Type.Boolean(),
  httpStatus: Type.Union([Type.Integer(), Type.Null()]),
  durationMs: Type.Number(),
  error: Type.Union([Type.String(), Type.Null()]),
  payload: Type.Union([Type.Unsafe<WebhookPayload>(WebhookPayload), Type.Null()], {
    description: "the body that was sent; null if the endpoint was deleted meanwhile",
  }),
  answer: Type.Union(
    [
      Type.Object({
        headers: Type.Record(Type.String(), Type.String(), {
          description: "the first 20; values of cookies and credentials are masked",
        }),
        body: Type.Union([Type.String(), Type.Null()], { description: "its first 1,024 bytes" }),
      }),
      Type.Null(),
    ],
    { description: "what the receiver answered; null when no answer came" },
  ),
});

const StatusDetails = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.Integer(),
      status: Type.Unsafe<Status | null>(
        Type.Union([StatusSchema, Type.Null()], { description: "null = of any status" }),
      ),
      description: Type.Record(Type.String(), Type.String(), { description: "by language" }),
    }),
  ),
});

export function webhookTestRoutes(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "webhook tests")
    .post(
      "/panel/api/webhooks/:endpointId/test",
      async ({ params, body, request }) => {
        const configuration = await live.refresh();
        endpointOf(configuration, params.endpointId);
        const pair = pairOf(configuration, body);
        const result = await requestTestEvent(redis, params.endpointId, pair);
        if (!result) {
          throw new Problem(503, "NOBODY_SENDS", "No process sends webhooks at the moment.");
        }
        const { payload: _, answer: __, ...outcome } = result;
        noteChange(request, null, { ...pair, ...outcome });
        return { ...result };
      },
      route({
        access: { can: "webhooks:write", of: "endpoint" },
        response: Tested,
        summary: "Send the test event: one attempt, with its result and what was sent",
        body: jsonBody(TestInput, { status: "DELIVERED" }, { optional: true }),
        errors: ["NOBODY_SENDS"],
      }),
    )
    .get(
      "/panel/api/status-details",
      async () => {
        const { statusDetails } = await live.refresh();
        return {
          items: [...statusDetails.values()].map(({ id, status = null, description = {} }) => ({
            id,
            status,
            description,
          })),
        };
      },
      route({
        access: { can: "me", of: "caller" },
        response: StatusDetails,
        summary: "Status details, with the status that each belongs to",
      }),
    );
}

/** @throws {Problem} 422 for a detail that is not registered, or belongs to another status */
function pairOf(
  { statusDetails }: Configuration,
  { status = SAMPLE_PAIR.status, statusDetail = 0 }: TestInput,
): StatusPair {
  const registered = statusDetails.get(statusDetail);
  if (statusDetail !== 0 && !registered) refuseFaults([fault(`No status detail ${statusDetail}.`)]);
  const { status: owner = status } = registered ?? {};
  if (owner !== status) refuseFaults([fault(`Status detail ${statusDetail} is one of ${owner}.`)]);
  return { status, detail: statusDetail };
}

function fault(message: string): Fault {
  return { path: "statusDetail", code: "NOT_ALLOWED", message };
}

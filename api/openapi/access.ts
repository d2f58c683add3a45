/** The token call, jobs and the sandbox in the interface description. */
import { Type } from "@sinclair/typebox";
import { SANDBOX_BODY_BYTES, TOKEN_BODY_BYTES } from "#api/body-limits.ts";
import { JobView } from "#api/jobs/job.ts";
import { ParcelJobView } from "#api/jobs/parcel-job-view.ts";
import { SandboxPatch, SandboxPut, SandboxView } from "#api/sandbox/sandbox.ts";
import { id, inPath, type Operation, text } from "./operation.ts";

const TokenRequest = Type.Object({ apiKey: Type.String({ minLength: 1, maxLength: 255 }) });
const TokenAnswer = Type.Object({
  token: Type.String(),
  scopes: Type.Array(Type.String()),
  token_type: Type.Literal("Bearer"),
  expires_in: Type.Integer({ description: "seconds" }),
  rate_limit: Type.Object({
    refill_rate: Type.Integer({ description: "requests added a minute, all at once" }),
    bucket_size: Type.Integer(),
  }),
  cache: Type.Boolean({ description: "served from the cache" }),
});

const Job = Type.Union([JobView, ParcelJobView]);

const entity = {
  id: 1,
  stringValue: "a",
  intValue: 1,
  boolValue: true,
  floatValue: 1.5,
  dateTimeValue: null,
  createdAt: "2026-11-20T09:00:00.000Z",
  updatedAt: null,
};
const sandbox = { name: "SandboxEntity", schema: SandboxView, example: entity };
const sandboxId = [inPath("id", id, 1)];
const { id: _id, createdAt: _created, updatedAt: _updated, ...values } = entity;

export const ACCESS_OPERATIONS: readonly Operation[] = [
  {
    id: "createToken",
    method: "post",
    path: "/v2/auth/token",
    tag: "Authentication",
    summary: "Exchange an API key for an access token",
    description: "The token is valid for 24 hours and may be used until then.",
    scope: "public",
    body: { name: "TokenRequest", schema: TokenRequest, example: { apiKey: "key_acme_main" } },
    answers: {
      200: {
        description: "The token, its scopes and the channel's request budget.",
        headers: { "X-Auth-Cache": "HIT or MISS" },
        content: {
          name: "Token",
          schema: TokenAnswer,
          example: {
            token: "eyJhbGciOiJIUzI1NiJ9.e30.c2lnbmF0dXJl",
            scopes: ["shipments:read", "orders:read"],
            token_type: "Bearer",
            expires_in: 86_400,
            rate_limit: { refill_rate: 150, bucket_size: 300 },
            cache: false,
          },
        },
      },
    },
    limitBytes: TOKEN_BODY_BYTES,
    errors: [401, 403, 429],
  },
  {
    id: "readJob",
    method: "get",
    path: "/v2/jobs/{jobId}",
    tag: "Jobs",
    summary: "Read a background job",
    scope: "jobs:read",
    parameters: [inPath("jobId", text, "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11")],
    answers: {
      200: {
        description: "The job; `result` is null until it has ended.",
        content: {
          name: "Job",
          schema: Job,
          example: {
            jobId: "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
            type: "shipments_import",
            status: "completed",
            totalItems: 2,
            processedItems: 2,
            failedItems: 1,
            result: {
              summary: { totalRequested: 2, totalSuccess: 1, totalFailed: 1 },
              successes: [{ index: 0, id: 4096, trackingNumber: "AB1", trackingUrl: null }],
              errors: [
                {
                  index: 1,
                  trackingNumber: "AB1",
                  errors: [
                    {
                      code: "DUPLICATE_SHIPMENT",
                      message: "The channel has a shipment with this courier and tracking number.",
                      field: "trackingNumber",
                      existingId: 4096,
                    },
                  ],
                },
              ],
            },
            error: null,
            createdAt: "2026-11-20T09:00:00.000Z",
            completedAt: "2026-11-20T09:00:02.000Z",
            callback: null,
          },
        },
      },
    },
    errors: [404],
  },
  {
    id: "readSandboxEntity",
    method: "get",
    path: "/v2/sandbox/{id}",
    tag: "Sandbox",
    summary: "Read the sandbox entity",
    scope: "sandbox:read",
    parameters: sandboxId,
    answers: { 200: { description: "The entity.", content: sandbox } },
    errors: [404],
  },
  {
    id: "replaceSandboxEntity",
    method: "put",
    path: "/v2/sandbox/{id}",
    tag: "Sandbox",
    summary: "Replace every field of the sandbox entity",
    scope: "sandbox:write",
    parameters: sandboxId,
    body: { name: "SandboxPut", schema: SandboxPut, example: values },
    limitBytes: SANDBOX_BODY_BYTES,
    answers: { 200: { description: "The entity as it now is.", content: sandbox } },
    errors: [400, 404, 422],
  },
  {
    id: "updateSandboxEntity",
    method: "patch",
    path: "/v2/sandbox/{id}",
    tag: "Sandbox",
    summary: "Change fields of the sandbox entity",
    description:
      "A null leaves a field as it is, except `dateTimeValue`, which may be null itself and becomes it.",
    scope: "sandbox:write",
    parameters: sandboxId,
    body: { name: "SandboxPatch", schema: SandboxPatch, example: { intValue: 2 } },
    limitBytes: SANDBOX_BODY_BYTES,
    answers: { 200: { description: "The entity as it now is.", content: sandbox } },
    errors: [400, 404, 422],
  },
  {
    id: "deleteSandboxEntity",
    method: "delete",
    path: "/v2/sandbox/{id}",
    tag: "Sandbox",
    summary: "Delete the sandbox entity",
    scope: "sandbox:write",
    parameters: sandboxId,
    answers: { 204: { description: "Deleted." } },
    errors: [404],
  },
];

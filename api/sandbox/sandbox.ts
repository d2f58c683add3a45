/** `/v2/sandbox/{id}` (document 1, "Sandbox"): an entity for integration tests, with its four methods. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { SANDBOX_BODY_BYTES } from "#api/http/body-limits.ts";
import { checkedBody, readJson } from "#api/http/read-json.ts";
import {
  changeSandbox,
  readSandbox,
  type SandboxEntity,
  type SandboxValues,
} from "#core/merchants/store/sandbox.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { described, idInPath } from "#core/platform/openapi/operation.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";

const stringValue = Type.String({ maxLength: 10_000 });
const intValue = Type.Integer({
  minimum: Number.MIN_SAFE_INTEGER,
  maximum: Number.MAX_SAFE_INTEGER,
});
const boolValue = Type.Boolean();
const floatValue = Type.Number();
const dateTimeValue = Type.Union([Type.Null(), Type.String({ format: "offset-date-time" })]);
const maybe = <T extends TSchema>(schema: T) => Type.Optional(Type.Union([Type.Null(), schema]));

/** Replaces every field; the one that may be null may be absent. */
export const SandboxPut = Type.Object({
  stringValue,
  intValue,
  boolValue,
  floatValue,
  dateTimeValue: Type.Optional(dateTimeValue),
});
/** Null leaves a field as it is, except the one that may be null itself. */
export const SandboxPatch = Type.Object({
  stringValue: maybe(stringValue),
  intValue: maybe(intValue),
  boolValue: maybe(boolValue),
  floatValue: maybe(floatValue),
  dateTimeValue: Type.Optional(dateTimeValue),
});
export const SandboxView = Type.Object({
  id: Type.Integer(),
  stringValue,
  intValue,
  boolValue,
  floatValue,
  dateTimeValue,
  createdAt: Type.String({ description: "ISO 8601" }),
  updatedAt: Type.Union([Type.String(), Type.Null()]),
});
type SandboxView = Static<typeof SandboxView>;

const putChecker = compileSchema(SandboxPut);
const patchChecker = compileSchema(SandboxPatch);

const example: SandboxView = {
  id: 1,
  stringValue: "a",
  intValue: 1,
  boolValue: true,
  floatValue: 1.5,
  dateTimeValue: null,
  createdAt: "2026-11-20T09:00:00.000Z",
  updatedAt: null,
};
const { id: _id, createdAt: _created, updatedAt: _updated, ...values } = example;
const content = { schema: SandboxView, example };
const common = { parameters: [idInPath(1)], errors: ["SANDBOX_NOT_FOUND"] as const };

const OPERATIONS = {
  read: described({
    ...common,
    id: "readSandboxEntity",
    summary: "Read the sandbox entity",
    answers: { 200: { description: "The entity.", content } },
  }),
  replace: described({
    ...common,
    id: "replaceSandboxEntity",
    summary: "Replace every field of the sandbox entity",
    body: { schema: SandboxPut, limitBytes: SANDBOX_BODY_BYTES, example: values },
    answers: { 200: { description: "The entity as it now is.", content } },
  }),
  change: described({
    ...common,
    id: "updateSandboxEntity",
    summary: "Change fields of the sandbox entity",
    description:
      "A null leaves a field as it is, except `dateTimeValue`, which may be null itself and becomes it.",
    body: { schema: SandboxPatch, limitBytes: SANDBOX_BODY_BYTES, example: { intValue: 2 } },
    answers: { 200: { description: "The entity as it now is.", content } },
  }),
  remove: described({
    ...common,
    id: "deleteSandboxEntity",
    summary: "Delete the sandbox entity",
    answers: { 204: { description: "Deleted." } },
  }),
};

const PATH = "/v2/sandbox/:id";
const ID_FORM = /^[1-9]\d{0,14}$/;

export function sandboxRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  const writable = { scope: "sandbox:write", parse: "none" } as const;
  return new Elysia()
    .use(authenticated(deps))
    .get(
      PATH,
      async ({ params, caller }) =>
        viewOf(await readSandbox(redis, caller.channel, idOf(params.id))),
      { scope: "sandbox:read", ...OPERATIONS.read },
    )
    .put(
      PATH,
      async ({ params, request, caller }) => {
        const values = await readPut(request);
        const id = idOf(params.id);
        return viewOf(await changeSandbox(redis, caller.channel, id, values, live.now()));
      },
      { ...writable, ...OPERATIONS.replace },
    )
    .patch(
      PATH,
      async ({ params, request, caller }) => {
        const values = await readPatch(request);
        const id = idOf(params.id);
        return viewOf(await changeSandbox(redis, caller.channel, id, values, live.now()));
      },
      { ...writable, ...OPERATIONS.change },
    )
    .delete(
      PATH,
      async ({ params, caller }) => {
        const id = idOf(params.id);
        viewOf(await changeSandbox(redis, caller.channel, id, null, live.now()));
        return new Response(null, { status: 204 });
      },
      { ...writable, ...OPERATIONS.remove },
    );
}

/** Any text that is no id is the id of no entity. */
function idOf(text: string): number {
  return ID_FORM.test(text) ? Number(text) : 0;
}

async function readPut(request: Request): Promise<SandboxValues> {
  const body = checkedBody(await readJson(request, SANDBOX_BODY_BYTES), putChecker);
  const { stringValue, intValue, boolValue, floatValue, dateTimeValue = null } = body;
  return { stringValue, intValue, boolValue, floatValue, dateTimeValue };
}

async function readPatch(request: Request): Promise<Partial<SandboxValues>> {
  const body = checkedBody(await readJson(request, SANDBOX_BODY_BYTES), patchChecker);
  const { stringValue, intValue, boolValue, floatValue, dateTimeValue } = body;
  return {
    ...(stringValue != null && { stringValue }),
    ...(intValue != null && { intValue }),
    ...(boolValue != null && { boolValue }),
    ...(floatValue != null && { floatValue }),
    ...(dateTimeValue !== undefined && { dateTimeValue }),
  };
}

/** @throws {Problem} 404 */
function viewOf(entity: SandboxEntity | null): SandboxView {
  if (!entity) throw new Problem(404, "SANDBOX_NOT_FOUND", "There is no such entity.");
  const { createdAtMs, updatedAtMs, ...values } = entity;
  return {
    ...values,
    createdAt: new Date(createdAtMs).toISOString(),
    updatedAt: updatedAtMs === null ? null : new Date(updatedAtMs).toISOString(),
  };
}

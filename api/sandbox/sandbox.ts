/** `/v2/sandbox/{id}` (document 1, "Sandbox"): an entity for integration tests, with its four methods. */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { SANDBOX_BODY_BYTES } from "#api/http/body-limits.ts";
import { cleanBody, readJson } from "#api/http/read-json.ts";
import {
  changeSandbox,
  readSandbox,
  type SandboxEntity,
  type SandboxValues,
} from "#core/merchants/store/sandbox.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath } from "#core/platform/openapi/operation.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";

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
  warnings,
});
type SandboxView = Static<typeof SandboxView>;

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
  read: declared({
    access: { scope: "sandbox:read" },
    ...common,
    id: "readSandboxEntity",
    summary: "Read the sandbox entity",
    answers: { 200: { description: "The entity.", content } },
  }),
  replace: declared({
    access: { scope: "sandbox:write" },
    ...common,
    id: "replaceSandboxEntity",
    summary: "Replace every field of the sandbox entity",
    body: bodyWithNulls(SandboxPut, values),
    answers: { 200: { description: "The entity as it now is.", content } },
  }),
  change: declared({
    access: { scope: "sandbox:write" },
    ...common,
    id: "updateSandboxEntity",
    summary: "Change fields of the sandbox entity",
    description:
      "A null leaves a field as it is, except `dateTimeValue`, which may be null itself and becomes it.",
    body: bodyWithNulls(SandboxPatch, { intValue: 2 }),
    answers: { 200: { description: "The entity as it now is.", content } },
  }),
  remove: declared({
    access: { scope: "sandbox:write" },
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
  return merchantRoutes(deps)
    .get(
      PATH,
      async ({ params, caller }) =>
        viewOf(await readSandbox(redis, caller.channel, idOf(params.id))),
      route(OPERATIONS.read),
    )
    .put(
      PATH,
      async ({ params, body: { dateTimeValue = null, ...others }, caller }) => {
        const values = { ...others, dateTimeValue };
        const id = idOf(params.id);
        return viewOf(await changeSandbox(redis, caller.channel, id, values, live.now()));
      },
      route(OPERATIONS.replace),
    )
    .patch(
      PATH,
      async ({ params, body, caller }) => {
        const values = changesOf(body);
        const id = idOf(params.id);
        return viewOf(await changeSandbox(redis, caller.channel, id, values, live.now()));
      },
      route(OPERATIONS.change),
    )
    .delete(
      PATH,
      async ({ params, caller }) => {
        const id = idOf(params.id);
        viewOf(await changeSandbox(redis, caller.channel, id, null, live.now()));
        return new Response(null, { status: 204 });
      },
      route(OPERATIONS.remove),
    );
}

/** Any text that is no id is the id of no entity. */
function idOf(text: string): number {
  return ID_FORM.test(text) ? Number(text) : 0;
}

/** A null member is none that is absent. */
function bodyWithNulls<T extends TSchema>(schema: T, example: Static<T>) {
  const checker = compileSchema(schema);
  const read = async (request: Request) =>
    cleanBody(request, await readJson(request, SANDBOX_BODY_BYTES), checker);
  return { schema, example, limitBytes: SANDBOX_BODY_BYTES, read };
}

function changesOf({
  stringValue,
  intValue,
  boolValue,
  floatValue,
  dateTimeValue,
}: Static<typeof SandboxPatch>): Partial<SandboxValues> {
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

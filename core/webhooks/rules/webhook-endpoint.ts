/** What an operator gives to make or change a webhook endpoint (document 3, "Endpoint configuration"). */

import { type Static, type TSchema, Type } from "@sinclair/typebox";
import { optionalMembers, patchMembers } from "#core/configuration/rules/entity.ts";
import { ENDPOINT_SETTINGS } from "#core/configuration/rules/settings.ts";
import { type CompiledSchema, compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import { AlertEmail } from "#core/setup/rules/setup.ts";
import { faultsOfHeaders } from "./custom-headers.ts";
import { faultOfWebhookUrl, WEBHOOK_URL_LENGTH } from "./webhook-url.ts";

const strict = { additionalProperties: false } as const;

const url = Type.String({
  minLength: 1,
  description: `https:// only, no credentials, at most ${WEBHOOK_URL_LENGTH} characters; the host must resolve only to public addresses`,
});
const events = Type.Optional(
  Type.Array(Type.Literal("shipment.updated"), {
    minItems: 1,
    maxItems: 1,
    description: "today only shipment.updated",
  }),
);

export const EndpointInput = Type.Object(
  {
    url,
    alertEmail: AlertEmail,
    events,
    active: Type.Optional(
      Type.Boolean({
        description: "false: made switched off; nothing is sent until it is enabled",
      }),
    ),
    ...optionalMembers(ENDPOINT_SETTINGS),
  },
  strict,
);
export type EndpointInput = Static<typeof EndpointInput>;

/** Members that are absent stay as they are. */
export const EndpointPatch = Type.Object(
  {
    url: Type.Optional(url),
    alertEmail: Type.Optional(AlertEmail),
    events,
    ...patchMembers(ENDPOINT_SETTINGS),
  },
  strict,
);
export type EndpointPatch = Static<typeof EndpointPatch>;

const inputChecker = compileSchema(EndpointInput);
const patchChecker = compileSchema(EndpointPatch);

/** Every fault of a new endpoint; empty when it can be saved, its host apart. */
export function faultsOfEndpoint(body: unknown): Fault[] {
  return faultsOf(inputChecker, body);
}

/** Every fault of a change. @param known names of the custom headers that are stored */
export function faultsOfPatch(body: unknown, known: readonly string[] = []): Fault[] {
  return faultsOf(patchChecker, body, known);
}

function faultsOf(
  checker: CompiledSchema<TSchema>,
  body: unknown,
  known: readonly string[] = [],
): Fault[] {
  const found = checker.check(body) ? [] : listFaults(checker.errors(body));
  const headers = (body as { readonly headers?: unknown } | null)?.headers;
  const faults = [...found, ...faultsOfHeaders(headers, known)];
  const text = (body as { readonly url?: unknown } | null)?.url;
  if (typeof text !== "string" || faults.some(({ path }) => path === "url")) return faults;
  const message = faultOfWebhookUrl(text);
  return message === null ? faults : [...faults, { path: "url", code: "BAD_FORMAT", message }];
}

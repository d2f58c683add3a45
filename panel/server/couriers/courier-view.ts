/** A courier as it is configured, without a secret. */
import { type Static, Type } from "@sinclair/typebox";
import { settingsIn, shownMembers } from "#core/configuration/rules/entity.ts";
import { COURIER_SETTINGS } from "#core/configuration/rules/settings.ts";
import { type NotedComparison, readComparisons } from "#core/configuration/store/comparisons.ts";
import type { Stored } from "#core/configuration/store/entities.ts";
import { readFirstSigned } from "#core/events/store/first-signed.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Vault } from "#core/platform/secrets/secrets.ts";
import { managedBy } from "#core/setup/rules/merge-said.ts";
import { version } from "#panel/server/http/version.ts";
import { closedAt, closedAtOf } from "#panel/server/setup/closed-at.ts";
import { managedBySchema } from "#panel/server/setup/managed-by.ts";
import { viewAccess } from "./courier-access.ts";

const Access = Type.Object({
  id: Type.String(),
  source: Type.Union([Type.Literal("setup"), Type.Literal("panel")]),
  createdAt: Type.Union([Type.String({ description: "ISO 8601" }), Type.Null()]),
});

export const CourierView = Type.Object({
  code: Type.String(),
  ...shownMembers(COURIER_SETTINGS),
  acceptingEvents: Type.Boolean(),
  rateLimit: Type.Object({ perSecond: Type.Number(), burst: Type.Integer() }),
  oauth: Type.Boolean({ description: "whether it has an OAuth client" }),
  oauthClientId: nullableText,
  mtls: Type.Boolean({ description: "whether it is bound to a client certificate" }),
  certificates: Type.Object(
    { subjects: Type.Array(Type.String()), fingerprints: Type.Array(Type.String()) },
    { description: "one of which every request must come with; both empty = none is asked for" },
  ),
  tokens: Type.Array(Access, { description: "in force" }),
  signingSecrets: Type.Array(Access, { description: "in force" }),
  catalogueCodes: Type.Integer({ description: "codes of its catalogue" }),
  comparison: Type.Union(
    [
      Type.Object({
        at: Type.String({ description: "UTC" }),
        lines: Type.Integer(),
        same: Type.Integer({
          description: "lines that were received as the other tracking has them",
        }),
      }),
      Type.Null(),
    ],
    { description: "the last first-day comparison; null = none" },
  ),
  firstSignedAt: Type.Union(nullableText.anyOf, {
    description: "when the first event in a signed message was accepted, ISO 8601; null = none",
  }),
  managedBy: managedBySchema,
  closedAt,
  version,
});

/** What is known of couriers beside their configuration. */
export interface CourierFacts {
  readonly comparisons: ReadonlyMap<string, NotedComparison>;
  readonly firstSigned: ReadonlyMap<string, number>;
}

export async function readCourierFacts(redis: Redis): Promise<CourierFacts> {
  const [comparisons, firstSigned] = await Promise.all([
    readComparisons(redis),
    readFirstSigned(redis),
  ]);
  return { comparisons, firstSigned };
}

export function courierView(
  vault: Vault,
  courier: Stored<"courier">,
  { comparisons, firstSigned }: CourierFacts,
): Static<typeof CourierView> {
  const { code, acceptingEvents, perSecond, burst, oauth, mtls } = courier;
  const signedAtMs = firstSigned.get(code);
  return {
    code,
    ...settingsIn(COURIER_SETTINGS, courier),
    acceptingEvents,
    rateLimit: { perSecond, burst },
    oauth: Boolean(oauth),
    oauthClientId: oauth?.clientId ?? null,
    mtls: Boolean(mtls),
    certificates: {
      subjects: [...(mtls?.subjects ?? [])],
      fingerprints: [...(mtls?.fingerprints ?? [])],
    },
    tokens: viewAccess(vault, courier, "tokens"),
    signingSecrets: viewAccess(vault, courier, "signing-secrets"),
    catalogueCodes: courier.catalogue.length,
    comparison: comparedView(comparisons.get(code)),
    managedBy: managedBy(courier.setupSaid),
    firstSignedAt: signedAtMs === undefined ? null : new Date(signedAtMs).toISOString(),
    closedAt: closedAtOf(courier),
    version: courier.version,
  };
}

function comparedView(compared: NotedComparison | undefined) {
  if (!compared) return null;
  const { atMs, lines, same } = compared;
  return { at: new Date(atMs).toISOString(), lines, same };
}

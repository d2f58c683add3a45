/** `GET /v2/labels/transmissions/{id}`, an extension of document 1: a transmission again, with its slip and its labels. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { readTransmission } from "#core/merchants/store/labels.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";

export const TransmissionAgain = Type.Object({
  transmissionId: Type.Integer(),
  transmissionNumber: Type.String({ description: "the number printed on the slip" }),
  slipUrl: Type.String({ description: "the address of its slip (PDF)" }),
  courier: Type.String(),
  labelIds: Type.Array(Type.Integer()),
  pickupDate: nullableText,
  pickupTime: nullableText,
  createdAt: Type.String({ description: "ISO 8601" }),
});
type TransmissionAgain = Static<typeof TransmissionAgain>;

const operation = declared({
  access: { scope: null },
  id: "readTransmission",
  summary: "Read a transmission again",
  description: "Transmissions are kept for 400 days.",
  extension: true,
  parameters: [idInPath(17)],
  answers: {
    200: {
      ...json("The transmission.", TransmissionAgain, {
        transmissionId: 17,
        transmissionNumber: "T000000017",
        slipUrl: "https://track.example/slips/3cZkq0",
        courier: "GENERIC",
        labelIds: [81],
        pickupDate: "2026-11-21",
        pickupTime: null,
        createdAt: "2026-11-20T18:00:00.000+01:00",
      }),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
  errors: ["TRANSMISSION_NOT_FOUND"],
});

export function transmissionRoute(deps: ApiDeps) {
  const { redis, config } = deps;
  return merchantRoutes(deps).get(
    "/v2/labels/transmissions/:id",
    async ({ params, request, caller: { company, channel } }): Promise<Response> => {
      const owner = { companyId: company.id, channelId: channel.id };
      const transmission = await readTransmission(redis, owner, idOf(params.id));
      if (!transmission) {
        throw new Problem(404, "TRANSMISSION_NOT_FOUND", "There is no such transmission.");
      }
      const { id, slipToken, labelIds, head } = transmission;
      const [pickupDate = null, pickupTime = null] = head.pickup?.split(" ") ?? [];
      const view: TransmissionAgain = {
        transmissionId: id,
        transmissionNumber: head.transmissionNumber,
        slipUrl: `${config.publicUrl}/slips/${slipToken}`,
        courier: head.courier,
        labelIds: [...labelIds],
        pickupDate,
        pickupTime,
        createdAt: romeIso(head.createdAtMs),
      };
      return tagged(request, view);
    },
    route(operation),
  );
}

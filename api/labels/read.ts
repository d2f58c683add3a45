/** `GET /v2/labels/{id}`, an extension of document 1: a label again, after its answer was lost or days later. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { LabelView } from "#core/merchants/rules/label.ts";
import { transmissionNumberOf } from "#core/merchants/rules/slip.ts";
import { readLabelContents, readLabels } from "#core/merchants/store/labels.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";
import { labelView } from "./create.ts";

export const LabelAgain = Type.Object({
  ...LabelView.properties,
  createdAt: Type.String({ description: "ISO 8601" }),
  transmission: Type.Union(
    [
      Type.Object({
        transmissionId: Type.Integer(),
        transmissionNumber: Type.String(),
        slipUrl: Type.String(),
      }),
      Type.Null(),
    ],
    { description: "the transmission that holds it; null while it is not confirmed" },
  ),
});
type LabelAgain = Static<typeof LabelAgain>;

const operation = declared({
  access: { scope: null },
  id: "readLabel",
  summary: "Read a label again",
  description: "Labels are kept for 400 days. A label that is still being made is not found.",
  extension: true,
  parameters: [idInPath(81)],
  answers: {
    200: {
      ...json("The label.", LabelAgain, {
        id: 81,
        trackingNumbers: [{ number: "GEN000000000081", description: "parcel 1 of 1" }],
        courier: "GENERIC",
        reference: "1001",
        labels: ["JVBERi0xLjMK"],
        labelFormat: "PDF",
        extShipmentId: null,
        isExisting: true,
        createdAt: "2026-11-20T09:00:00.000+01:00",
        transmission: null,
      }),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
  errors: ["LABEL_NOT_FOUND"],
});

export function readLabelRoute(deps: ApiDeps) {
  const { redis, config } = deps;
  return merchantRoutes(deps).get(
    "/v2/labels/:id",
    async ({ params, request, caller: { company, channel } }): Promise<Response> => {
      const owner = { companyId: company.id, channelId: channel.id };
      const [label] = await readLabels(redis, owner, [idOf(params.id)]);
      if (!label) throw new Problem(404, "LABEL_NOT_FOUND", "There is no such label.");
      const { id, record, transmission } = label;
      const labels = await readLabelContents(redis, owner, id);
      const view: LabelAgain = {
        ...labelView({ id, record, labels, isExisting: true }),
        createdAt: romeIso(record.createdAtMs),
        transmission: transmission && {
          transmissionId: transmission.id,
          transmissionNumber: transmissionNumberOf(transmission.id),
          slipUrl: `${config.publicUrl}/slips/${transmission.slipToken}`,
        },
      };
      return tagged(request, view);
    },
    route(operation),
  );
}

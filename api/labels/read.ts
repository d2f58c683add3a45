/** `GET /v2/labels/{id}`, an extension of document 1: a label again, after its answer was lost or days later. */

import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { readLabelContents, readLabels } from "#core/merchants/store/labels.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { EXAMPLE_LABEL, LabelAgain, labelAgain } from "./label-again.ts";
import { labelNotFound } from "./label-problem.ts";

const operation = declared({
  access: { scope: null },
  id: "readLabel",
  summary: "Read a label again",
  description:
    "Labels are kept for 400 days. A label that is still being made is not found. One that was voided has no sheets any more.",
  extension: true,
  parameters: [idInPath(81)],
  answers: {
    200: { ...json("The label.", LabelAgain, EXAMPLE_LABEL), headers: TAG_HEADERS },
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
      if (!label) throw labelNotFound();
      const labels = await readLabelContents(redis, owner, label.id);
      return tagged(request, labelAgain(label, labels, config.publicUrl));
    },
    route(operation),
  );
}

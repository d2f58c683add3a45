/** `DELETE /v2/labels/{id}`, an extension of document 1: a label that nobody will hand over, where the carrier can void it. */

import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { readLabels, type StoredLabel, voidLabel } from "#core/merchants/store/labels.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { idOf } from "#core/platform/schema/path-id.ts";
import { findCarrier } from "./carriers.ts";
import { waitForLock } from "./confirm.ts";
import { EXAMPLE_LABEL, LabelAgain, labelAgain } from "./label-again.ts";
import {
  failed,
  LABEL_PROBLEMS,
  labelNotFound,
  labelProblem,
  unknownCarrier,
} from "./label-problem.ts";

const operation = declared({
  access: { scope: null },
  id: "voidLabel",
  summary: "Void a label",
  description:
    "For a label that is not confirmed yet. Its sheets go, and its reference can have a new label. 422 if the carrier refuses or cannot void labels. The same call again answers the same. After a call whose outcome nobody knows, repeat it: the carrier may have voided the label already.",
  extension: true,
  parameters: [idInPath(81)],
  answers: {
    200: json("The label is void.", LabelAgain, {
      ...EXAMPLE_LABEL,
      labels: [],
      voidedAt: "2026-11-20T10:00:00.000+01:00",
    }),
  },
  errors: [
    "LABEL_NOT_FOUND",
    "LABEL_CONFIRMED",
    "UNKNOWN_CARRIER",
    "CARRIER_REFUSED",
    "CONFIRMATION_IN_PROGRESS",
    "CARRIER_UNREACHABLE",
    "CARRIER_UNREADABLE",
  ],
  problems: { ...LABEL_PROBLEMS, statuses: [400, 409, 422, 423, 502] },
});

export function voidLabelRoute(deps: ApiDeps) {
  const { redis, config, live } = deps;
  return merchantRoutes(deps).delete(
    "/v2/labels/:id",
    async ({ params, caller }): Promise<LabelAgain> => {
      const owner = { companyId: caller.company.id, channelId: caller.channel.id };
      const read = async () => (await readLabels(redis, owner, [idOf(params.id)]))[0];
      const label = await read();
      if (!label) throw labelNotFound();
      const { courier } = label.record;
      const found = findCarrier(config, caller, courier);
      if (!found) throw unknownCarrier();
      // A confirmation that is under way may hold the label.
      const lock = await waitForLock(redis, owner, courier);
      try {
        const current = await read();
        if (!current) throw labelNotFound();
        if (current.transmission) throw labelConfirmed();
        if (current.voidedAtMs === null) await askCarrier(found.carrier, current);
        const outcome = await voidLabel(redis, owner, current, live.now());
        if (outcome === "confirmed") throw labelConfirmed();
        const voided = await read();
        if (!voided) throw labelNotFound();
        return labelAgain(voided, [], config.publicUrl);
      } finally {
        await lock.release();
      }
    },
    route(operation),
  );
}

/** @throws {Problem} 422, 502 */
async function askCarrier(
  carrier: NonNullable<ReturnType<typeof findCarrier>>["carrier"],
  label: StoredLabel,
): Promise<void> {
  const answer = await carrier.void(label);
  if (answer.kind === "ok") return;
  const { status, code, message } = failed(answer);
  throw labelProblem(status, code, message);
}

function labelConfirmed() {
  const detail = "A transmission holds the label.";
  return labelProblem(409, "LABEL_CONFIRMED", detail);
}

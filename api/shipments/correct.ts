/** `PATCH /v2/shipments/{id}`, an extension of document 1: corrects what the merchant said of a shipment. */
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { addFurtherTexts } from "#core/search/store/search-lines.ts";
import { ShipmentCorrection } from "#core/shipments/rules/correct.ts";
import { correctShipment } from "#core/shipments/store/correct-shipment.ts";
import { registerAgain } from "#core/shipments/store/register-shipments.ts";
import { detailOf, EXAMPLE_DETAIL } from "./detail.ts";
import { ownShipment } from "./own-shipment.ts";
import { ShipmentChanged, type ShipmentDetail } from "./shipment-detail.ts";

/** Of a shipment that moves to the archive meanwhile. */
const ROUNDS = 5;

const operation = declared({
  access: { scope: "shipments:write" },
  id: "correctShipment",
  summary: "Correct the recipient, the order reference or the texts of a shipment",
  description:
    "Members that are absent stay as they are, and an empty text clears one. A new order reference finds the shipment in the search at once; courier events find it by the new one and the earlier ones. `statusUpdatedAt` does not move and no webhook is sent: what is sent later shows the shipment as it is then. `corrections` of the shipment lists when which members were corrected, and by which key. Labels that were made and messages that were sent stay as they are. An archived shipment is brought back. The same call again changes nothing.",
  extension: true,
  parameters: [idInPath(4096)],
  rules: [{ path: "", code: "REQUIRED", rule: "at least one member that is not null" }],
  body: jsonBody(ShipmentCorrection, {
    consignee: { street: "Via Roma 10", phone: "+39 333 1234567" },
    orderReference: "1001-B",
  }),
  answers: {
    200: json("The shipment as it now is.", ShipmentChanged, {
      ...EXAMPLE_DETAIL,
      orderReference: "1001-B",
      corrections: [
        {
          date: "2026-11-23 09:00:00",
          fields: ["consignee.street", "consignee.phone", "orderReference"],
          apiKey: "main",
        },
      ],
    }),
  },
  errors: [
    ...["SHIPMENT_NOT_FOUND", "RECIPIENT_ERASED", "TOO_MANY_REFERENCES"],
    "ARCHIVE_UNAVAILABLE",
  ] as const,
});

export function correctRoute(deps: ApiDeps) {
  return merchantRoutes(deps).patch(
    "/v2/shipments/:id",
    async ({ params, body, caller }): Promise<ShipmentDetail> => {
      if (Object.keys(body).length === 0) throw nothingToCorrect();
      await correctAnywhere(deps, caller, params.id, body);
      return detailOf(deps, caller, params.id);
    },
    route(operation),
  );
}

/** @throws {Problem} 404, 409, 503 */
async function correctAnywhere(
  { redis, archive, live }: ApiDeps,
  { channel, configuration, apiKey }: Caller,
  idText: string,
  correction: ShipmentCorrection,
): Promise<void> {
  const by = { atMs: live.now(), apiKey: apiKey.code };
  for (let round = 0; round < ROUNDS; round += 1) {
    const { record } = await ownShipment({ redis, archive }, channel, idText);
    const outcome = await correctShipment(redis, record.id, correction, by);
    if (outcome === "erased") throw recipientErased();
    if (outcome === "too many references") throw tooManyReferences();
    if (outcome === "missing") continue;
    // Also where nothing changed: a call that failed before this is finished by the same call again.
    if (correction.orderReference !== undefined) {
      await registerAgain(redis, configuration, [record.id]);
      const { companyId, channelId, id: shipmentId, courier } = record;
      const text = correction.orderReference;
      await addFurtherTexts(redis, [{ companyId, channelId, shipmentId, courier, text }]);
    }
    return;
  }
  throw new Error("the shipment kept moving while it was corrected");
}

function nothingToCorrect(): Problem {
  const message = "At least one member to correct is required.";
  return validationFailed([{ path: "", code: "REQUIRED", message }]);
}

function recipientErased(): Problem {
  const detail = "The recipient's data was erased; nothing personal can be added again.";
  return new Problem(409, "RECIPIENT_ERASED", detail);
}

function tooManyReferences(): Problem {
  const detail = "The order reference was corrected too often; go back to an earlier one.";
  return new Problem(409, "TOO_MANY_REFERENCES", detail);
}

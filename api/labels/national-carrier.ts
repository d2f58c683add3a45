/**
 * The national carrier's labels, through its HTTP gateway (`NATIONAL_CARRIER_URL`). The contract:
 *
 * - `POST /labels` with `Idempotency-Key`, the order as JSON -> 2xx `{trackingNumbers: [{number, description}],
 *   extShipmentId, labels}`, one label a parcel in the asked format.
 * - `GET /labels/{key}` -> the same for what has been made under the key, 404 where nothing has.
 * - `DELETE /labels/{key}` -> 2xx when the label is void, 404 where nothing has been made under the key; 400, 409 and 422 with
 *   `{message}` refuse, 405 and 501 say that labels cannot be voided.
 * - `POST /confirmations` with `Idempotency-Key` -> 2xx `{refused: [{labelId, code, message}]}`; a label confirmed before is
 *   no refusal. The key stays the same until we have recorded an outcome: a gateway that answers a key it has answered with
 *   2xx as it did then opens one transmission, whatever dies in between.
 * - `POST /addresses`, see `api/addresses/registry-provider.ts`; `POST /stock-release`, see `api/shipments/release-carrier.ts`.
 */

import { type Static, Type } from "@sinclair/typebox";
import { callGateway } from "#api/http/gateway.ts";
import { type MadeLabel, parcelsOf } from "#core/merchants/rules/label.ts";
import { contractOf } from "#core/merchants/rules/label-carrier.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import type { CarrierAnswer, LabelCarrier, LabelOrder } from "./label-carrier.ts";

const TEXT_LENGTH = 255;
const text = Type.String({ minLength: 1, maxLength: TEXT_LENGTH });

const GatewayLabel = Type.Object({
  trackingNumbers: Type.Array(
    Type.Object({
      number: text,
      description: Type.Optional(Type.String({ maxLength: TEXT_LENGTH })),
    }),
    { minItems: 1, maxItems: 200 },
  ),
  extShipmentId: Type.Optional(Type.Union([text, Type.Null()])),
  labels: Type.Array(Type.String({ minLength: 1 }), { minItems: 1, maxItems: 99 }),
});
const labelChecker = compileSchema(GatewayLabel);

const GatewayConfirmation = Type.Object({
  refused: Type.Array(
    Type.Object({
      labelId: Type.Integer(),
      code: Type.Optional(Type.String({ maxLength: TEXT_LENGTH })),
      message: Type.Optional(Type.String({ maxLength: 500 })),
    }),
  ),
});
const confirmationChecker = compileSchema(GatewayConfirmation);

/** Whatever the answer says beside its status. */
const anyChecker = compileSchema(Type.Unknown());

export function nationalCarrier(
  config: Pick<Config, "nationalCarrier" | "nationalCarrierUrl">,
): LabelCarrier {
  const url = config.nationalCarrierUrl;
  return {
    needsWeight: true,
    async make(order) {
      const { request, sender, format } = order;
      const answer = await callGateway(url, {
        method: "POST",
        path: "/labels",
        checker: labelChecker,
        key: keyOf(order),
        body: {
          ...request,
          contract: contractOf(request.courier, config.nationalCarrier),
          parcels: parcelsOf(request),
          sender,
          labelFormat: format,
        },
      });
      return madeOf(answer, order) as CarrierAnswer<MadeLabel>;
    },
    async recover(order) {
      const answer = await callGateway(url, {
        method: "GET",
        path: `/labels/${keyOf(order)}`,
        checker: labelChecker,
      });
      return madeOf(answer, order);
    },
    async confirm({ key, courier, labels, pickupDate, pickupTime }) {
      const answer = await callGateway(url, {
        method: "POST",
        path: "/confirmations",
        key,
        checker: confirmationChecker,
        body: {
          courier,
          pickupDate,
          pickupTime,
          labels: labels.map(({ id, record }) => ({
            labelId: id,
            extShipmentId: record.extShipmentId,
            trackingNumbers: record.trackingNumbers.map(({ number }) => number),
          })),
        },
      });
      if (answer.kind !== "ok") return answer;
      const refused = (answer.value?.refused ?? []).map(({ labelId, code, message }) => ({
        labelId,
        code: code ?? "CARRIER_REFUSED",
        message: message ?? "The carrier refused without a reason.",
      }));
      return { kind: "ok", value: refused };
    },
    async void({ id }) {
      const answer = await callGateway(url, {
        method: "DELETE",
        path: `/labels/${keyOf({ id })}`,
        checker: anyChecker,
      });
      return answer.kind === "ok" ? { kind: "ok", value: null } : answer;
    },
  };
}

/** The label's id stays the same as long as nobody knows what came of the call. */
function keyOf({ id }: Pick<LabelOrder, "id">): string {
  return `label-${id}`;
}

/** A label in another form than asked for would be printed as garbage. */
function madeOf(
  answer: CarrierAnswer<Static<typeof GatewayLabel> | null>,
  { request, format }: LabelOrder,
): CarrierAnswer<MadeLabel | null> {
  if (answer.kind !== "ok" || answer.value === null) return answer as CarrierAnswer<null>;
  const { trackingNumbers, extShipmentId = null, labels } = answer.value;
  const count = parcelsOf(request).length;
  if (labels.length !== count || !labels.every((label) => isLabel(label, format))) {
    return { kind: "away", unreadable: true, called: true };
  }
  const described = trackingNumbers.map(({ number, description = "" }) => ({
    number,
    description,
  }));
  return { kind: "ok", value: { trackingNumbers: described, extShipmentId, labels } };
}

/** `JVBERi0` is `%PDF-` in base64. */
function isLabel(label: string, format: LabelOrder["format"]): boolean {
  return format === "ZPL" ? label.trimStart().startsWith("^XA") : label.startsWith("JVBERi0");
}

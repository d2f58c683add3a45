/** `POST /v2/shipments` (document 1, "Shipments"): up to 100 shipments, each created on its own. */
import { TypeCompiler } from "@sinclair/typebox/compiler";
import { Elysia } from "elysia";
import { authenticated } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/error-response.ts";
import { readChecked } from "#api/read-json.ts";
import { CreateBody, faultOfShipDate, type ShipmentInput } from "#core/domain/shipment.ts";
import { trackingUrl } from "#core/domain/tracking-link.ts";
import { createItems, type ItemOutcome } from "#core/redis/create-items.ts";

const checker = TypeCompiler.Compile(CreateBody);

export function createRoute(deps: ApiDeps) {
  const { redis, log, live } = deps;
  return new Elysia().use(authenticated(deps)).post(
    "/v2/shipments",
    async ({ request, caller: { configuration, channel }, set }) => {
      const { shipments } = await readChecked(request, checker);
      const nowMs = live.now();
      checkShipDates(shipments, nowMs);
      const creation = { redis, log, configuration };
      const outcomes = await createItems(creation, channel, shipments, nowMs);
      const created = outcomes.filter(({ kind }) => kind === "created").length;
      set.status = created === outcomes.length ? 201 : 207;
      return {
        summary: {
          totalRequested: outcomes.length,
          totalSuccess: created,
          totalFailed: outcomes.length - created,
        },
        items: shipments.map((input, at) => itemView(input, outcomes[at], configuration.publicUrl)),
      };
    },
    { scope: "shipments:write", parse: "none" },
  );
}

/** @throws {Problem} 422 */
function checkShipDates(shipments: readonly ShipmentInput[], nowMs: number): void {
  const faults = shipments.flatMap(({ shipDate }, at) => {
    const message = faultOfShipDate(shipDate, nowMs);
    return message === null
      ? []
      : [{ path: `shipments[${at}].shipDate`, code: "OUT_OF_RANGE" as const, message }];
  });
  if (faults.length > 0) throw validationFailed(faults);
}

function itemView(
  { trackingNumber }: ShipmentInput,
  outcome: ItemOutcome | undefined,
  publicUrl: string,
) {
  if (outcome?.kind === "created") {
    const { id, trackingToken } = outcome;
    const url = trackingUrl(publicUrl, id, trackingToken);
    return { status: "success", trackingNumber, id, trackingUrl: url };
  }
  const errors = outcome?.errors ?? [];
  return { status: "error", trackingNumber, id: null, trackingUrl: null, errors };
}

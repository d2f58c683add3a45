/** `POST /v2/shipments` (document 1, "Shipments"): up to 100 shipments, each created on its own. */

import { type Static, Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { CREATE_BODY_BYTES } from "#api/http/body-limits.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { noteWarnings } from "#api/http/warnings.ts";
import { route } from "#core/platform/http/access.ts";
import { turns } from "#core/platform/process/next-turn.ts";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { FAULTS_COUNTED, type Fault, listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import {
  addUnknownMembers,
  type Warning,
  warnings,
} from "#core/platform/schema/unknown-members.ts";
import {
  ImportSummary,
  ITEM_ERRORS,
  ItemErrorView,
  importSummary,
} from "#core/shipments/rules/import-result.ts";
import {
  CreateBody,
  faultOfShipDate,
  SHIPMENTS_PER_CREATE,
  ShipmentInput,
} from "#core/shipments/rules/shipment.ts";
import { trackingUrl } from "#core/shipments/rules/tracking-link.ts";
import { createItems, type ItemOutcome } from "#core/shipments/store/create-items.ts";
import { readShipments } from "./read-shipments.ts";

/** The body around the items, which are checked one by one. */
const outline = compileSchema(
  Type.Object({
    shipments: Type.Array(Type.Unknown(), { minItems: 1, maxItems: SHIPMENTS_PER_CREATE }),
  }),
);
const checker = compileSchema(ShipmentInput);

export const CreatedShipment = Type.Object({
  status: Type.Union([Type.Literal("success"), Type.Literal("error")]),
  trackingNumber: Type.String(),
  id: Type.Union([Type.Integer(), Type.Null()]),
  trackingUrl: nullableText,
  errors: Type.Optional(Type.Array(ItemErrorView)),
});
type CreatedShipment = Static<typeof CreatedShipment>;

export const CreatedShipments = Type.Object({
  summary: ImportSummary,
  items: Type.Array(CreatedShipment, { description: "in the order of the request" }),
  warnings,
});
type CreatedShipments = Static<typeof CreatedShipments>;

/** The item that examples create. */
export const EXAMPLE_ITEM: ShipmentInput = {
  trackingNumber: "AB123456789",
  courier: "GLS_ITA",
  shipDate: "2026-11-20",
  orderReference: "1001",
  consignee: { name: "Mario Rossi", city: "Roma", postcode: "00184", country: "IT" },
  parcels: [{ weight: 1.2, boxCode: "S" }],
};
const success: CreatedShipment = {
  status: "success",
  trackingNumber: EXAMPLE_ITEM.trackingNumber,
  id: 4096,
  trackingUrl: null,
};
const rejected: CreatedShipment = {
  status: "error",
  trackingNumber: "AB1",
  id: null,
  trackingUrl: null,
  errors: [
    {
      code: "INVALID_COURIER",
      message:
        'The courier "GSL_ITA" is not known. Did you mean GLS_ITA? Allowed: GLS_ITA, BRT_ITA.',
      field: "courier",
    },
  ],
};
const answer = (description: string, items: CreatedShipment[]) => {
  const summary = importSummary(1, items.length);
  return { description, content: { schema: CreatedShipments, example: { summary, items } } };
};

const operation = repeatable({
  access: { scope: "shipments:write" },
  id: "createShipments",
  summary: "Create up to 100 shipments",
  description: `Each item is validated and created on its own. ${ITEM_ERRORS}`,
  body: {
    schema: CreateBody,
    limitBytes: CREATE_BODY_BYTES,
    example: { shipments: [EXAMPLE_ITEM] },
  },
  rules: [
    {
      path: "shipments[].shipDate",
      code: "OUT_OF_RANGE",
      rule: "from 2000-01-01 to a year from today",
    },
  ],
  answers: {
    201: answer("Every item was created.", [success]),
    207: answer("One or more items were rejected.", [success, rejected]),
  },
});

export function createRoute(deps: ApiDeps) {
  const { redis, log, live } = deps;
  return merchantRoutes(deps).post(
    "/v2/shipments",
    async ({ request, caller, set }): Promise<CreatedShipments> => {
      const { configuration, channel } = caller;
      const nowMs = live.now();
      const shipments = await readInputs(request, nowMs);
      return onceByKey(deps, { request, caller, set }, shipments, async () => {
        const creation = { redis, log, configuration };
        const outcomes = await createItems(creation, channel, shipments, nowMs);
        const created = outcomes.filter(({ kind }) => kind === "created").length;
        set.status = created === outcomes.length ? 201 : 207;
        const { publicUrl } = configuration;
        return {
          summary: importSummary(created, outcomes.length),
          items: shipments.map((input, at) => itemView(input, outcomes[at], publicUrl)),
        };
      });
    },
    route(operation),
  );
}

/** @throws {Problem} 400, 408, 413; 422 with every violation found */
async function readInputs(request: Request, nowMs: number): Promise<ShipmentInput[]> {
  const items: unknown[] = [];
  const illFormed: Fault[] = [];
  const limits = { bytes: CREATE_BODY_BYTES, items: SHIPMENTS_PER_CREATE };
  const unknown: Warning[] = [];
  const body = await readShipments(request, limits, [], unknown, (item, mayBeIllFormed) => {
    const path = `shipments[${items.length}]`;
    addUnknownMembers(ShipmentInput, item, path, unknown);
    if (mayBeIllFormed) {
      illFormed.push(...illFormedText(item, path, FAULTS_COUNTED - illFormed.length));
    }
    items.push(item);
  });
  if (illFormed.length > 0) throw validationFailed(illFormed);
  if (!outline.check(body)) throw validationFailed(listFaults(outline.errors(body)), body);
  const turn = turns();
  const faults: Fault[] = [];
  const inputs: ShipmentInput[] = [];
  for (const [at, item] of items.entries()) {
    if (checker.check(item)) {
      inputs.push(Value.Clean(ShipmentInput, item) as ShipmentInput);
    } else if (faults.length < FAULTS_COUNTED) {
      const found = listFaults(checker.errors(item), FAULTS_COUNTED - faults.length);
      faults.push(...found.map(({ path, ...rest }) => ({ path: within(at, path), ...rest })));
    }
    if (turn.due()) await turn.take();
  }
  if (faults.length === 0) faults.push(...faultsOfShipDates(inputs, nowMs));
  if (faults.length > 0) throw validationFailed(faults, { shipments: items });
  noteWarnings(request, unknown);
  return inputs;
}

function faultsOfShipDates(inputs: readonly ShipmentInput[], nowMs: number): Fault[] {
  return inputs.flatMap(({ shipDate }, at): Fault[] => {
    const message = faultOfShipDate(shipDate, nowMs);
    return message === null
      ? []
      : [{ path: within(at, "shipDate"), code: "OUT_OF_RANGE", message }];
  });
}

/** The path of a member of an item; an empty path is the item itself. */
function within(at: number, path: string): string {
  return path === "" ? `shipments[${at}]` : `shipments[${at}].${path}`;
}

function itemView(
  { trackingNumber }: ShipmentInput,
  outcome: ItemOutcome | undefined,
  publicUrl: string,
): CreatedShipment {
  if (outcome?.kind === "created") {
    const { id, trackingToken } = outcome;
    const url = trackingUrl(publicUrl, id, trackingToken);
    return { status: "success", trackingNumber, id, trackingUrl: url };
  }
  const errors = [...(outcome?.errors ?? [])];
  return { status: "error", trackingNumber, id: null, trackingUrl: null, errors };
}

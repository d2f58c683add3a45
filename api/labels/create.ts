/** `POST /v2/labels` (document 1, "Labels"). */

import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { LIST_BODY_BYTES } from "#api/http/body-limits.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import type { ChannelCourier } from "#core/configuration/store/configuration.ts";
import { LabelRequest, LabelView, labelFaults } from "#core/merchants/rules/label.ts";
import { readLabelContents } from "#core/merchants/store/labels.ts";
import type { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { json } from "#core/platform/openapi/operation.ts";
import { findCarrier } from "./carriers.ts";
import { errorLabel } from "./error-label.ts";
import type { LabelOrder } from "./label-carrier.ts";
import { LABEL_PROBLEMS, labelBody, labelProblem, unknownCarrier } from "./label-problem.ts";
import { type Obtained, obtainLabel, withBoxes } from "./obtain-label.ts";

const BUSY_RETRY_SECONDS = "5";

const example = (isExisting: boolean): LabelView => ({
  id: 81,
  trackingNumbers: [{ number: "GEN000000000081", description: "parcel 1 of 1" }],
  courier: "GENERIC",
  reference: "1001",
  labels: ["JVBERi0xLjMK"],
  labelFormat: "PDF",
  extShipmentId: null,
  isExisting,
});

const operation = repeatable({
  access: { scope: null },
  id: "createLabel",
  summary: "Make the labels of a shipment",
  description:
    "Idempotent by (channel, carrier, reference): the carrier is called once. After a call whose outcome nobody knows, the carrier is asked for it before it is called again. Labels are kept for 400 days.",
  rules: [
    { path: "source", code: "NOT_ALLOWED", rule: "in the platform registry" },
    { path: "consignee.state", code: "BAD_FORMAT", rule: "2 letters in Italy" },
    { path: "monetary.amount", code: "REQUIRED", rule: "with cash on delivery" },
    { path: "weight", code: "REQUIRED", rule: "without parcels, where the carrier asks for it" },
    { path: "parcels[].boxCode", code: "NOT_ALLOWED", rule: "in the company's box registry" },
  ],
  body: labelBody(
    LabelRequest,
    {
      courier: "GENERIC",
      reference: "1001",
      source: "shopify",
      consignee: {
        name: "Mario Rossi",
        street: "Via Roma 1",
        city: "Roma",
        state: "RM",
        postcode: "00184",
        country: "IT",
      },
      parcels: [{ weight: 1.2, length: 30, width: 20, height: 10 }],
    },
    LIST_BODY_BYTES,
  ),
  answers: {
    200: json("The label exists.", LabelView, example(true)),
    201: json("The label has been made.", LabelView, example(false)),
  },
  errors: [
    "UNKNOWN_CARRIER",
    "CARRIER_REFUSED",
    "LABEL_IN_PROGRESS",
    "CARRIER_UNREACHABLE",
    "CARRIER_UNREADABLE",
  ],
  problems: LABEL_PROBLEMS,
});

export function createLabelRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return merchantRoutes(deps).post(
    "/v2/labels",
    async ({ body, request, caller, set }): Promise<LabelView> => {
      const found = findCarrier(deps.config, caller, body.courier);
      if (!found) throw unknownCarrier();
      const { carrier, courier } = found;
      const { boxes } = caller.company;
      const { platforms } = caller.configuration;
      const faults = labelFaults(body, { needsWeight: carrier.needsWeight, boxes, platforms });
      if (faults.length > 0) throw validationFailed(faults, body);
      const order = orderOf(withBoxes(body, boxes), caller, courier);
      const owner = { companyId: caller.company.id, channelId: caller.channel.id };
      const nowMs = live.now();
      const carryOut = async () => {
        const obtained = await obtainLabel(redis, { owner, carrier, order, nowMs });
        if (obtained.kind !== "label") throw await problemOf(obtained, order, courier, nowMs);
        set.status = obtained.isExisting ? 200 : 201;
        return labelView(obtained);
      };
      // The sheets stand with the label, where a recipient's data can be erased.
      return onceByKey(deps, { request, caller, set }, [body], carryOut, {
        keep: (view) => ({ ...view, labels: [] }),
        recall: async (view) => ({
          ...view,
          labels: await readLabelContents(redis, owner, view.id),
        }),
      });
    },
    route(operation),
  );
}

function orderOf(
  request: LabelRequest,
  { channel, company }: Caller,
  { labelFormat }: ChannelCourier,
): Omit<LabelOrder, "id"> {
  return {
    request: withCurrency(request),
    sender: request.sender ?? channel.sender ?? { businessName: company.name },
    format: labelFormat,
    language: company.language,
  };
}

/** Document 1, "Labels": `currency` defaults to EUR. */
function withCurrency(request: LabelRequest): LabelRequest {
  const { monetary } = request;
  return monetary ? { ...request, monetary: { currency: "EUR", ...monetary } } : request;
}

async function problemOf(
  obtained: Exclude<Obtained, { readonly kind: "label" }>,
  order: Omit<LabelOrder, "id">,
  courier: ChannelCourier,
  nowMs: number,
): Promise<Problem> {
  if (obtained.kind === "busy") {
    const detail = "The label is being made by another request.";
    const headers = { "retry-after": BUSY_RETRY_SECONDS };
    return labelProblem(423, "LABEL_IN_PROGRESS", detail, {}, headers);
  }
  const { failure } = obtained;
  const { status, code, message } = failure;
  if (!courier.errorLabel) return labelProblem(status, code, message);
  const { request, language, format } = order;
  const sheet = await errorLabel({ request, failure, language, format, nowMs });
  return labelProblem(status, code, message, { errorLabel: sheet });
}

export function labelView(obtained: Omit<Extract<Obtained, { kind: "label" }>, "kind">): LabelView {
  const { id, record, labels, isExisting } = obtained;
  return {
    id,
    trackingNumbers: [...record.trackingNumbers],
    courier: record.courier,
    reference: record.reference,
    labels: [...labels],
    labelFormat: record.labelFormat,
    extShipmentId: record.extShipmentId,
    isExisting,
  };
}

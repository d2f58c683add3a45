/** Labels and address checks in the interface description. */
import { LIST_BODY_BYTES } from "#api/body-limits.ts";
import { ConfirmView } from "#api/labels/confirm.ts";
import { ERROR_CODES } from "#api/reference/error-codes.ts";
import { ConfirmRequest, LabelRequest, LabelView } from "#core/domain/labels/label.ts";
import { AddressCheckRequest, AddressCheckView } from "#core/domain/orders/address-check.ts";
import { TITLES } from "#core/problem.ts";
import { ERROR_HEADERS, LabelProblem } from "./errors.ts";
import type { Answer, Operation } from "./operation.ts";

const consignee = {
  name: "Mario Rossi",
  street: "Via Roma 1",
  city: "Roma",
  state: "RM",
  postcode: "00184",
  country: "IT",
};

const label = {
  id: 81,
  trackingNumbers: [{ number: "GEN000000000081", description: "parcel 1 of 1" }],
  courier: "GENERIC",
  reference: "1001",
  labels: ["JVBERi0xLjMK"],
  labelFormat: "PDF",
  extShipmentId: null,
  isExisting: false,
};
const labelContent = (isExisting: boolean) => ({
  name: "Label",
  schema: LabelView,
  example: { ...label, isExisting },
});

const confirmation = {
  transmissionId: 17,
  transmissionNumber: "T000000017",
  courier: "GENERIC",
  confirmedIds: [81],
  alreadyConfirmedIds: [65],
  notFoundIds: [],
  errors: [],
  pickupDate: "2026-11-21",
  pickupTime: null,
  createdAt: "2026-11-20T18:00:00.000+01:00",
  transmissions: [
    {
      transmissionId: 17,
      transmissionNumber: "T000000017",
      slipUrl: "https://track.example/slips/3cZkq0",
      labelIds: [81],
    },
    {
      transmissionId: 1,
      transmissionNumber: "T000000001",
      slipUrl: "https://track.example/slips/3Yw81h",
      labelIds: [65],
    },
  ],
};
const unconfirmed = {
  ...confirmation,
  transmissionId: null,
  transmissionNumber: null,
  confirmedIds: [],
  alreadyConfirmedIds: [81, 65],
  createdAt: null,
};

function labelError(description: string, code: string, detail: string, status: number): Answer {
  return {
    description,
    headers: ERROR_HEADERS,
    mediaType: "application/problem+json",
    ...(status === 400 && { isErrorBodyToo: true }),
    codes: ERROR_CODES.filter((one) => one.status === status).map((one) => one.code),
    content: {
      name: "LabelProblem",
      schema: LabelProblem,
      example: { type: `/v2/errors#${code}`, title: TITLES[status], status, code, detail },
    },
  };
}

const LABEL_ERRORS = {
  400: labelError(
    "The body is no JSON, or the carrier code is unknown or not available on the channel.",
    "UNKNOWN_CARRIER",
    "The carrier code is not known or not available on this channel.",
    400,
  ),
  422: labelError(
    "The body is invalid (`violations`), or the carrier refuses (`errorLabel` where the channel has it switched on).",
    "CARRIER_REFUSED",
    "CAP non servito",
    422,
  ),
  423: labelError(
    "Another request has been at the same label, or at this carrier's confirmation, for more than 15 seconds.",
    "LABEL_IN_PROGRESS",
    "The label is being made by another request.",
    423,
  ),
  502: labelError(
    "The carrier cannot be reached or answers unreadably (`errorLabel` where the channel has it switched on).",
    "CARRIER_UNREACHABLE",
    "The carrier cannot be reached.",
    502,
  ),
} as const;

export const LABEL_OPERATIONS: readonly Operation[] = [
  {
    id: "createLabel",
    method: "post",
    path: "/v2/labels",
    tag: "Labels",
    summary: "Make the labels of a shipment",
    description:
      "Idempotent by (channel, carrier, reference): the carrier is called once. After a call whose outcome nobody knows, the carrier is asked for it before it is called again. Labels are kept for 400 days.",
    scope: null,
    limitBytes: LIST_BODY_BYTES,
    rules: [
      { path: "source", code: "NOT_ALLOWED", rule: "in the platform registry" },
      { path: "consignee.state", code: "BAD_FORMAT", rule: "2 letters in Italy" },
      { path: "monetary.amount", code: "REQUIRED", rule: "with cash on delivery" },
      { path: "weight", code: "REQUIRED", rule: "without parcels, where the carrier asks for it" },
      { path: "parcels[].boxCode", code: "NOT_ALLOWED", rule: "in the company's box registry" },
    ],
    body: {
      name: "LabelRequest",
      schema: LabelRequest,
      example: {
        courier: "GENERIC",
        reference: "1001",
        source: "shopify",
        consignee,
        parcels: [{ weight: 1.2, length: 30, width: 20, height: 10 }],
      },
    },
    answers: {
      200: { description: "The label exists.", content: labelContent(true) },
      201: { description: "The label has been made.", content: labelContent(false) },
      ...LABEL_ERRORS,
    },
    errors: [413],
  },
  {
    id: "confirmLabels",
    method: "post",
    path: "/v2/labels/confirm",
    tag: "Labels",
    summary: "Close the day: confirm labels to the carrier",
    description:
      "May be repeated: confirmed labels stay in their transmission, and the answer names it and its slip. `Location` is the slip of the latest transmission that contains one of the labels, `transmissions` lists them all. After a call with an unknown outcome, the same labels and pickup are sent to the carrier again under the same `Idempotency-Key`.",
    scope: null,
    rules: [
      { path: "labelCreationDate", code: "NOT_ALLOWED", rule: "not supported" },
      { path: "pickupDate", code: "REQUIRED", rule: "with a pickupTime" },
    ],
    body: {
      name: "ConfirmRequest",
      schema: ConfirmRequest,
      example: { courier: "GENERIC", labelIds: [81, 65], pickupDate: "2026-11-21" },
    },
    answers: {
      200: {
        description: "No new transmission: all labels were confirmed before or are not found.",
        headers: {
          Location:
            "Address of the slip of the latest transmission that contains one of the labels; absent if none does.",
        },
        content: { name: "Confirmation", schema: ConfirmView, example: unconfirmed },
      },
      201: {
        description: "A transmission with at least one label.",
        headers: { Location: "Address of the transmission slip (PDF)." },
        content: { name: "Confirmation", schema: ConfirmView, example: confirmation },
      },
      ...LABEL_ERRORS,
    },
    errors: [413],
  },
  {
    id: "checkAddress",
    method: "post",
    path: "/v2/addresses/check",
    tag: "Addresses",
    summary: "Check a postal address",
    description:
      "Every request answered 200 is billed once, whatever its match. Needs the product checkAddress and the channel's address check.",
    scope: null,
    body: {
      name: "AddressCheckRequest",
      schema: AddressCheckRequest,
      example: { street: "Via Roma 1", city: "Milano", state: "MI", postcode: "20121" },
    },
    answers: {
      200: {
        description: "The match; `match.status` is NONE for an address nobody knows.",
        content: {
          name: "AddressCheck",
          schema: AddressCheckView,
          example: {
            provider: "geocoder",
            match: {
              status: "PARTIAL",
              level: "MUNICIPALITY",
              differing: [],
              unchecked: ["street"],
            },
            address: {
              street: "Via Roma 1",
              city: "Milano",
              state: "MI",
              postcode: "20121",
              country: "IT",
            },
            coordinates: { latitude: 45.46427, longitude: 9.18951 },
            delivery: null,
            candidates: [],
          },
        },
      },
    },
    errors: [400, 422, 502],
  },
];

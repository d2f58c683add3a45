/** The `result` of a finished import job (document 1): the same in the job resource and in the completion call. */
import { type Static, Type } from "@sinclair/typebox";
import { nullableText as text } from "#core/platform/schema/nullable.ts";
import type { ItemErrorCode } from "./new-shipment.ts";
import { trackingUrl } from "./tracking-link.ts";

/** What to do about each. */
const ITEM_REMEDIES: Readonly<Record<ItemErrorCode, string>> = {
  INVALID_COURIER: "name a courier of GET /v2/channel",
  COURIER_NOT_CONFIGURED: "have the courier enabled for the channel",
  INVALID_LANGUAGE: "name a language of GET /v2/channel",
  INVALID_ORIGIN: "name a platform of GET /v2/channel",
  DUPLICATE_SHIPMENT: "use the shipment that `existingId` names",
  INVALID_BOX_CODE: "name a box of GET /v2/channel",
  MISSING_PARCEL_DIMENSIONS: "give a boxCode, or length, width and height",
  VALIDATION_ERROR: "correct the item (imports alone)",
  INTERNAL_ERROR: "send the item again",
};
export const ITEM_ERRORS = `Errors of items: ${Object.entries(ITEM_REMEDIES)
  .map(([code, remedy]) => `\`${code}\`: ${remedy}`)
  .join("; ")}.`;

/** What is wrong with an item, in the answer to a creation and in a job's result. */
export const ItemErrorView = Type.Object({
  code: Type.String({ description: ITEM_ERRORS }),
  message: Type.String(),
  field: Type.String({ description: "path within the item" }),
  existingId: Type.Optional(
    Type.Integer({ description: "of DUPLICATE_SHIPMENT: id of the channel's own shipment" }),
  ),
});

export const ImportSummary = Type.Object({
  totalRequested: Type.Integer(),
  totalSuccess: Type.Integer(),
  totalFailed: Type.Integer(),
});

export const ImportResult = Type.Object({
  summary: ImportSummary,
  successes: Type.Array(
    Type.Object({
      index: Type.Integer({ description: "position in the request array" }),
      id: Type.Integer(),
      trackingNumber: Type.String(),
      trackingUrl: text,
    }),
  ),
  errors: Type.Array(
    Type.Object({
      index: Type.Integer(),
      trackingNumber: text,
      errors: Type.Array(ItemErrorView),
    }),
  ),
});
type ImportResult = Static<typeof ImportResult>;

interface Success {
  readonly index: number;
  readonly id: number;
  readonly trackingNumber: string;
  readonly trackingToken: string | null;
}

export function importSummary(
  totalSuccess: number,
  totalRequested: number,
): ImportResult["summary"] {
  return { totalRequested, totalSuccess, totalFailed: totalRequested - totalSuccess };
}

export function successView(
  { index, id, trackingNumber, trackingToken }: Success,
  publicUrl: string,
): ImportResult["successes"][number] {
  return { index, id, trackingNumber, trackingUrl: trackingUrl(publicUrl, id, trackingToken) };
}

/** What a merchant corrects of a shipment, an extension of document 1: the recipient, the order's reference and free texts. */
import { type Static, Type } from "@sinclair/typebox";
import { plainReference, referenceText } from "#core/events/rules/reference.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { emailAddressOrEmpty } from "#core/platform/schema/text-forms.ts";
import { capOf } from "./new-shipment.ts";
import {
  Consignee,
  type Correction,
  ShipmentInput,
  type ShipmentMeta,
  type ShipmentRecord,
} from "./shipment.ts";

export const FORMER_REFERENCES = limit(
  10,
  "earlier order references that still find a corrected shipment",
  "409",
);
const CORRECTIONS_LISTED = limit(
  100,
  "corrections that a shipment lists",
  "the oldest is left out",
);

const { tag, note, customAttributes } = ShipmentInput.properties;

/** An empty text clears a member; members that are absent stay as they are. */
export const ShipmentCorrection = Type.Object({
  consignee: Type.Optional(
    Type.Object(
      { ...Consignee.properties, email: Type.Optional(emailAddressOrEmpty) },
      { description: "Members of the recipient that change." },
    ),
  ),
  orderReference: Type.Optional(
    Type.String({
      ...referenceText(255),
      description:
        "The order's reference. Courier events find the shipment by it, and by the earlier ones.",
    }),
  ),
  tag,
  note,
  customAttributes,
});
export type ShipmentCorrection = Static<typeof ShipmentCorrection>;

export type Corrected =
  | { readonly kind: "unchanged" }
  /** Nothing personal comes back to a shipment whose recipient was erased. */
  | { readonly kind: "erased" }
  | { readonly kind: "too many references" }
  | {
      readonly kind: "corrected";
      readonly record: Omit<ShipmentRecord, "id">;
      readonly meta: ShipmentMeta;
    };

type Texts = Readonly<Record<string, string>>;

export function correct(
  { id: _, ...record }: ShipmentRecord,
  meta: ShipmentMeta,
  correction: ShipmentCorrection,
  by: Pick<Correction, "atMs" | "apiKey">,
): Corrected {
  const { orderReference, ...personal } = correction;
  if (meta.isErased && Object.keys(personal).length > 0) return { kind: "erased" };
  const texts = (["tag", "note"] as const).filter((name) => correction[name] !== undefined);
  const after: Record<string, unknown> = { ...record };
  const fields: string[] = [];
  for (const name of ["consignee", "customAttributes"] as const) {
    const given = correction[name] as Texts | undefined;
    if (!given) continue;
    const before = (record[name] ?? {}) as Texts;
    setOrDelete(after, name, merged(before, given));
    fields.push(...changed(before, given).map((member) => `${name}.${member}`));
  }
  const flat = Object.fromEntries(texts.map((name) => [name, correction[name] ?? ""]));
  for (const [name, text] of Object.entries(flat)) setOrDelete(after, name, text);
  fields.push(...changed(record as unknown as Texts, flat));
  if (orderReference !== undefined && orderReference !== record.orderReference) {
    after["orderReference"] = orderReference;
    fields.push("orderReference");
  }
  if (fields.length === 0) return { kind: "unchanged" };
  const metaAfter = metaOf(after as unknown as ShipmentRecord, meta);
  if (metaAfter === null) return { kind: "too many references" };
  const corrections = [...(record.corrections ?? []), { atMs: by.atMs, fields, apiKey: by.apiKey }];
  after["corrections"] = corrections.slice(-CORRECTIONS_LISTED);
  return { kind: "corrected", record: after as unknown as ShipmentRecord, meta: metaAfter };
}

function merged(before: Texts, given: Texts): Texts | null {
  const all = Object.entries({ ...before, ...given }).filter(([, text]) => text !== "");
  return all.length === 0 ? null : Object.fromEntries(all);
}

function changed(before: Texts, given: Texts): string[] {
  return Object.keys(given).filter((name) => (before[name] ?? "") !== given[name]);
}

function setOrDelete(record: Record<string, unknown>, name: string, value: unknown): void {
  if (value === null || value === "") delete record[name];
  else record[name] = value;
}

/** @returns null if the shipment has had too many references */
function metaOf(record: ShipmentRecord, meta: ShipmentMeta): ShipmentMeta | null {
  const destCap = capOf(record.consignee);
  const { orderReference = null } = record;
  const { orderReference: before, formerReferences = [] } = meta;
  if (orderReference === before) return { ...meta, destCap };
  const now = orderReference === null ? null : plainReference(orderReference);
  const former = [...formerReferences, ...(before === null ? [] : [before])].filter(
    (one) => plainReference(one) !== now,
  );
  const all = [...new Set(former)];
  if (all.length > FORMER_REFERENCES) return null;
  const { formerReferences: _, ...rest } = meta;
  return {
    ...rest,
    destCap,
    orderReference,
    ...(all.length > 0 && { formerReferences: all }),
  };
}

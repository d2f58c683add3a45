/** What a template may say of a shipment, by placeholder; the reference lists them. */

import type { ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import type { Values } from "./render-template.ts";

/** Members of the consignee, and of other objects, are also there with a dot. */
export function messageValues(
  summary: ShipmentSummary,
  merchant: string,
  variables: Values | null,
): Values {
  const { consignee, monetary, customAttributes, ...flat } = summary;
  const texts = Object.entries(flat).map(([name, value]) => [name, textOf(value)]);
  const nested = Object.entries({ consignee, monetary }).flatMap(([name, members]) =>
    Object.entries(members).map(([member, value]) => [`${name}.${member}`, textOf(value)]),
  );
  return {
    ...Object.fromEntries([...texts, ...nested]),
    merchant,
    ...(variables ?? customAttributes),
  };
}

function textOf(value: string | number | boolean | null): string {
  return value === null ? "" : String(value);
}

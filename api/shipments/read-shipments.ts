/**
 * Reads a body of many shipments item by item: nothing but the items is kept, and the event loop turns between them,
 * however large the body is.
 */
import { SHIPMENT_BYTES } from "#api/http/body-limits.ts";
import { DEPTH_LIMIT, missingBody, withoutNulls } from "#api/http/read-json.ts";
import { readJsonBody } from "#core/platform/http/body/read-json.ts";
import { addUnknownMember, type Warning } from "#core/platform/schema/unknown-members.ts";

const LIST = "shipments";
/** Nesting limit of an item: the list and the body are two levels above it. */
const ITEM_DEPTH = DEPTH_LIMIT - 2;

interface Limits {
  readonly bytes: number;
  /** Further items are counted, not read. */
  readonly items: number;
}

/** A null member of an item counts as absent. */
type TakeItem = (item: unknown, mayBeIllFormed: boolean) => void;

/**
 * @param members of the body, beside `shipments`
 * @param unknown takes the names of other members
 * @returns the body with `shipments` as a list of nulls, where it was a list: as many as there were items, or one more
 * than are taken
 * @throws {Problem} 400, 408, 413
 */
export async function readShipments(
  request: Request,
  limits: Limits,
  members: readonly string[],
  unknown: Warning[],
  takeItem: TakeItem,
): Promise<unknown> {
  let count = 0;
  const take = (items: readonly unknown[], mayBeIllFormed: boolean) => {
    for (const item of items) {
      if (count < limits.items) takeItem(withoutNulls(item, ITEM_DEPTH), mayBeIllFormed);
      count += 1;
    }
  };
  const all = [LIST, ...members];
  const wanted = { list: LIST, members: all, take };
  const parsed = await readJsonBody(request, limits.bytes, { itemBytes: SHIPMENT_BYTES, wanted });
  if (parsed === null) throw missingBody();
  const { value, hasSurrogateEscapes } = parsed;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  for (const name of Object.keys(value)) {
    if (!all.includes(name)) addUnknownMember(name, all, "", unknown);
  }
  const body: Record<string, unknown> = {};
  for (const name of all) {
    const member: unknown = Object.hasOwn(value, name) ? Reflect.get(value, name) : null;
    if (member !== null) body[name] = member;
  }
  const list = body[LIST];
  if (!Array.isArray(list)) return body;
  // A small body still contains its items here.
  take(list, hasSurrogateEscapes);
  return { ...body, [LIST]: new Array(Math.min(count, limits.items + 1)).fill(null) };
}

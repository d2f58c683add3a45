/** The query of `GET /v2/shipments`: every parameter checked, all violations reported at once. */
import { validationFailed } from "#api/http/error-response.ts";
import type { ExactField } from "#core/platform/redis/keys.ts";
import type { Fault, FaultCode } from "#core/platform/schema/fault.ts";
import { isCalendarDate, parseRomeDateTime } from "#core/platform/time/rome-time.ts";
import type { SortOrder } from "#core/search/store/index-ranges.ts";
import type { ShipmentQuery } from "#core/search/store/shipment-query.ts";
import { isStatus, STATUSES, type Status } from "#core/statuses/rules/status.ts";

export interface Search {
  readonly scope: "channel" | "company";
  /** As it was given. */
  readonly courier: string | null;
  readonly filters: Omit<ShipmentQuery, "companyId" | "channelIds" | "offset" | "limit">;
  readonly page: number;
  readonly limit: number;
}

/** Document 1, "Limits": search page size. */
export const LIMIT_DEFAULT = 20;
export const LIMIT_MAX = 100;
/** Far past any company's last page; keeps positions exact numbers. */
export const PAGE_MAX = 1_000_000_000;
export const TEXT_MAX = 255;
/** One or more names, with or without spaces around the commas. */
const STATUS_NAME = `(${STATUSES.join("|")})`;
export const STATUS_LIST = new RegExp(`^ *${STATUS_NAME} *(, *${STATUS_NAME} *)*$`);
const DAY_MS = 86_400_000;

export const SORTS: Readonly<Record<string, SortOrder>> = {
  id_desc: { by: "id", descending: true },
  id_asc: { by: "id", descending: false },
  shipDate_desc: { by: "ship", descending: true },
  shipDate_asc: { by: "ship", descending: false },
  updatedAt_desc: { by: "upd", descending: true },
  updatedAt_asc: { by: "upd", descending: false },
};
const DEFAULT_SORT: SortOrder = { by: "id", descending: true };

const EXACT_FIELDS = ["orderReference", "custom1", "custom2", "custom3"] as const;

interface Reading {
  readonly params: URLSearchParams;
  readonly faults: Fault[];
}

/** @throws {Problem} 422 */
export function readSearch(params: URLSearchParams): Search {
  const faults: Fault[] = [];
  const reading: Reading = { params, faults };
  const exact = EXACT_FIELDS.flatMap((name): [ExactField, string][] => {
    const value = text(reading, name);
    return value === null ? [] : [[name, value]];
  });
  const search: Search = {
    scope: oneOf(reading, "scope", "channel", { channel: "channel", company: "company" } as const),
    courier: text(reading, "courier"),
    filters: {
      trackingNumber: text(reading, "trackingNumber"),
      exact: Object.fromEntries(exact),
      shipFrom: day(reading, "shipDateFrom"),
      shipTo: day(reading, "shipDateTo"),
      statuses: statuses(reading, "status"),
      updatedFrom: second(reading, "updatedAfter"),
      order: oneOf(reading, "sortBy", DEFAULT_SORT, SORTS),
    },
    page: integer(reading, "page", 1, PAGE_MAX),
    limit: integer(reading, "limit", LIMIT_DEFAULT, LIMIT_MAX),
  };
  if (faults.length > 0) throw validationFailed(faults, Object.fromEntries(params));
  return search;
}

function fault(reading: Reading, path: string, code: FaultCode, message: string): null {
  reading.faults.push({ path, code, message });
  return null;
}

function text(reading: Reading, name: string): string | null {
  const [value, ...more] = reading.params.getAll(name);
  if (value === undefined) return null;
  if (more.length > 0)
    return fault(reading, name, "TOO_MANY", "The parameter is given more than once.");
  if (value === "") return fault(reading, name, "TOO_SHORT", "The text must not be empty.");
  if ([...value].length > TEXT_MAX)
    return fault(reading, name, "TOO_LONG", `At most ${TEXT_MAX} characters.`);
  return value;
}

function integer(reading: Reading, name: string, fallback: number, max: number): number {
  const value = text(reading, name);
  if (value === null) return fallback;
  if (!/^[+-]?\d+$/.test(value)) fault(reading, name, "WRONG_TYPE", "A whole number.");
  else if (Number(value) < 1) fault(reading, name, "OUT_OF_RANGE", "At least 1.");
  else if (Number(value) > max) fault(reading, name, "OUT_OF_RANGE", `At most ${max}.`);
  return Number(value);
}

function oneOf<T>(
  reading: Reading,
  name: string,
  fallback: T,
  values: Readonly<Record<string, T>>,
): T {
  const value = text(reading, name);
  if (value === null) return fallback;
  if (Object.hasOwn(values, value)) return values[value] ?? fallback;
  fault(reading, name, "NOT_ALLOWED", `One of ${Object.keys(values).join(", ")}.`);
  return fallback;
}

function day(reading: Reading, name: string): number | null {
  const value = text(reading, name);
  if (value === null) return null;
  if (isCalendarDate(value)) return Date.parse(value) / DAY_MS;
  return fault(reading, name, "BAD_FORMAT", "A real date as YYYY-MM-DD.");
}

function second(reading: Reading, name: string): number | null {
  const value = text(reading, name);
  if (value === null) return null;
  const instantMs = parseRomeDateTime(value);
  if (instantMs !== null) return Math.floor(instantMs / 1000);
  return fault(reading, name, "BAD_FORMAT", "A date and time as YYYY-MM-DD HH:MM:SS, Europe/Rome.");
}

function statuses(reading: Reading, name: string): readonly Status[] | null {
  const value = text(reading, name);
  if (value === null) return null;
  if (!STATUS_LIST.test(value)) {
    return fault(reading, name, "NOT_ALLOWED", `A comma-separated list of ${STATUSES.join(", ")}.`);
  }
  const names = value.split(",").map((part) => part.trim());
  const chosen = [...new Set(names.filter(isStatus))];
  return chosen.length === STATUSES.length ? null : chosen;
}

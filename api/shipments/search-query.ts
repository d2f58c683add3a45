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

/** @throws {Problem} 422 */
export function readSearch(params: URLSearchParams): Search {
  const faults: Fault[] = [];

  function fault(path: string, code: FaultCode, message: string): null {
    faults.push({ path, code, message });
    return null;
  }

  function text(name: string): string | null {
    const [value, ...more] = params.getAll(name);
    if (value === undefined) return null;
    if (more.length > 0) return fault(name, "TOO_MANY", "The parameter is given more than once.");
    if (value === "") return fault(name, "TOO_SHORT", "The text must not be empty.");
    if ([...value].length > TEXT_MAX)
      return fault(name, "TOO_LONG", `At most ${TEXT_MAX} characters.`);
    return value;
  }

  function integer(name: string, fallback: number, max: number): number {
    const value = text(name);
    if (value === null) return fallback;
    if (!/^[+-]?\d+$/.test(value)) fault(name, "WRONG_TYPE", "A whole number.");
    else if (Number(value) < 1) fault(name, "OUT_OF_RANGE", "At least 1.");
    else if (Number(value) > max) fault(name, "OUT_OF_RANGE", `At most ${max}.`);
    return Number(value);
  }

  function oneOf<T>(name: string, fallback: T, values: Readonly<Record<string, T>>): T {
    const value = text(name);
    if (value === null) return fallback;
    if (Object.hasOwn(values, value)) return values[value] ?? fallback;
    fault(name, "NOT_ALLOWED", `One of ${Object.keys(values).join(", ")}.`);
    return fallback;
  }

  function day(name: string): number | null {
    const value = text(name);
    if (value === null) return null;
    if (isCalendarDate(value)) return Date.parse(value) / DAY_MS;
    return fault(name, "BAD_FORMAT", "A real date as YYYY-MM-DD.");
  }

  function second(name: string): number | null {
    const value = text(name);
    if (value === null) return null;
    const instantMs = parseRomeDateTime(value);
    if (instantMs !== null) return Math.floor(instantMs / 1000);
    return fault(name, "BAD_FORMAT", "A date and time as YYYY-MM-DD HH:MM:SS, Europe/Rome.");
  }

  function statuses(name: string): readonly Status[] | null {
    const value = text(name);
    if (value === null) return null;
    if (!STATUS_LIST.test(value)) {
      return fault(name, "NOT_ALLOWED", `A comma-separated list of ${STATUSES.join(", ")}.`);
    }
    const names = value.split(",").map((part) => part.trim());
    const chosen = [...new Set(names.filter(isStatus))];
    return chosen.length === STATUSES.length ? null : chosen;
  }

  const exact = EXACT_FIELDS.flatMap((name): [ExactField, string][] => {
    const value = text(name);
    return value === null ? [] : [[name, value]];
  });
  const search: Search = {
    scope: oneOf("scope", "channel", { channel: "channel", company: "company" } as const),
    filters: {
      trackingNumber: text("trackingNumber"),
      exact: Object.fromEntries(exact),
      shipFrom: day("shipDateFrom"),
      shipTo: day("shipDateTo"),
      statuses: statuses("status"),
      updatedFrom: second("updatedAfter"),
      order: oneOf("sortBy", DEFAULT_SORT, SORTS),
    },
    page: integer("page", 1, PAGE_MAX),
    limit: integer("limit", LIMIT_DEFAULT, LIMIT_MAX),
  };
  if (faults.length > 0) throw validationFailed(faults, Object.fromEntries(params));
  return search;
}

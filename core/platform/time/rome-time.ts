/**
 * Europe/Rome local time, the zone of every tracking timestamp without offset (document 1).
 * Instants are UTC milliseconds everywhere else; this is the one place that writes or reads local text.
 */

const HOUR_MS = 3_600_000;
const SECOND_MS = 1_000;
/** Hours that `repeatedHour` looks to either side. */
const REPEATED_HOUR_REACH = 6;
/** Hours whose offset is remembered; a year of hours, so that a full clear is rare. */
const OFFSET_CACHE_LIMIT = 8_784;

/** Ends with the offset, as in `20/11/2026, GMT+01:00`. */
const romeClock = new Intl.DateTimeFormat("en-GB", {
  timeZone: "Europe/Rome",
  timeZoneName: "longOffset",
});

const offsetByHour = new Map<number, number>();

/** Offset of Europe/Rome from UTC at an instant, in milliseconds: whole hours, which change only at whole UTC hours. */
function romeOffsetMs(instantMs: number): number {
  const hour = Math.floor(instantMs / HOUR_MS);
  const known = offsetByHour.get(hour);
  if (known !== undefined) return known;
  const [, hours] = /GMT\+(\d\d)/.exec(romeClock.format(hour * HOUR_MS)) ?? [];
  const offset = Number(hours) * HOUR_MS;
  if (offsetByHour.size >= OFFSET_CACHE_LIMIT) offsetByHour.clear();
  offsetByHour.set(hour, offset);
  return offset;
}

/** `YYYY-MM-DD HH:MM:SS` in Europe/Rome, without offset (document 1, "Resources and their fields"). */
export function romeDateTime(instantMs: number): string {
  const local = new Date(instantMs + romeOffsetMs(instantMs)).toISOString();
  return `${local.slice(0, 10)} ${local.slice(11, 19)}`;
}

/** `YYYY-MM-DD` of the day it is in Europe/Rome. */
export function romeDate(instantMs: number): string {
  return new Date(instantMs + romeOffsetMs(instantMs)).toISOString().slice(0, 10);
}

/** ISO 8601 with the Rome offset, for example `2026-11-20T10:00:00.000+01:00`. */
export function romeIso(instantMs: number): string {
  const offsetMs = romeOffsetMs(instantMs);
  const local = new Date(instantMs + offsetMs).toISOString().slice(0, 23);
  return `${local}+0${offsetMs / HOUR_MS}:00`;
}

/** The form of a Rome local text. */
export const LOCAL_DATE_TIME = /^(\d{4})-(\d{2})-(\d{2}) (\d{2}):(\d{2}):(\d{2})$/;

/**
 * The instant of a Rome local text `YYYY-MM-DD HH:MM:SS`, or null when the text is not a real date and time.
 * So that a catch-up never skips, a time that exists twice is read as the earlier instant, and a time the clock jumps
 * over as the last second before the jump.
 */
export function parseRomeDateTime(text: string): number | null {
  const match = LOCAL_DATE_TIME.exec(text);
  if (!match) return null;
  const asUtc = Date.parse(`${text.slice(0, 10)}T${text.slice(11)}Z`);
  if (Number.isNaN(asUtc)) return null;
  if (new Date(asUtc).toISOString().slice(0, 19) !== text.replace(" ", "T")) return null;
  const earlier = asUtc - romeOffsetMs(asUtc - 3 * HOUR_MS);
  if (earlier + romeOffsetMs(earlier) === asUtc) return earlier;
  const later = asUtc - romeOffsetMs(asUtc + 3 * HOUR_MS);
  if (later + romeOffsetMs(later) === asUtc) return later;
  return earlier - (earlier % HOUR_MS) - SECOND_MS;
}

/**
 * The hour whose local texts have been used once already, within six hours of an instant: where the autumn clock
 * change repeats them. Null at all other times of the year.
 */
export function repeatedHour(nearMs: number): { fromMs: number; toMs: number } | null {
  const hour = Math.floor(nearMs / HOUR_MS);
  for (let at = hour - REPEATED_HOUR_REACH; at <= hour + REPEATED_HOUR_REACH; at += 1) {
    const fromMs = at * HOUR_MS;
    if (romeOffsetMs(fromMs) < romeOffsetMs(fromMs - HOUR_MS)) {
      return { fromMs, toMs: fromMs + HOUR_MS };
    }
  }
  return null;
}

/**
 * The same day in another year, or the last day of February.
 * @param date `YYYY-MM-DD`
 */
export function addYears(date: string, years: number): string {
  const year = String(Number(date.slice(0, 4)) + years);
  return isCalendarDate(`${year}${date.slice(4)}`) ? `${year}${date.slice(4)}` : `${year}-02-28`;
}

/**
 * The same day some months before, or the last day of that month.
 * @param date `YYYY-MM-DD`
 */
export function monthsBefore(date: string, months: number): string {
  const [year, month] = [Number(date.slice(0, 4)), Number(date.slice(5, 7))];
  const first = new Date(Date.UTC(year, month - 1 - months));
  const last = new Date(Date.UTC(year, month - months, 0)).getUTCDate();
  return `${first.toISOString().slice(0, 8)}${String(Math.min(Number(date.slice(8)), last)).padStart(2, "0")}`;
}

/** Days from `from` to `to`, both `YYYY-MM-DD`. */
export function daysBetween(from: string, to: string): number {
  return Math.round((Date.parse(to) - Date.parse(from)) / 86_400_000);
}

const MONTH_AND_DAY =
  "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))";
const TIME_AND_OFFSET =
  "[Tt](?:[01][0-9]|2[0-3]):[0-5][0-9](?::(?:[0-5][0-9]|60)(?:[.,][0-9]{1,9})?)?(?:[Zz]|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)";

/** Pattern of a real `YYYY-MM-DD`, without anchors. */
export const CALENDAR_DATE = `(?:[0-9]{4}-${MONTH_AND_DAY}|(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)`;

/**
 * Pattern of an ISO 8601 date-time with an explicit offset that names a real instant (document 2, `occurredAt`), without
 * anchors. Of the years 2000 to 2099: any other is a sender's mistake.
 */
export const OFFSET_DATE_TIME = `(?:20[0-9]{2}-${MONTH_AND_DAY}|20(?:[02468][048]|[13579][26])-02-29)${TIME_AND_OFFSET}`;

const calendarDate = new RegExp(`^${CALENDAR_DATE}$`);
const offsetDateTime = new RegExp(`^${OFFSET_DATE_TIME}$`);

/** True for a `YYYY-MM-DD` that is a real day. */
export function isCalendarDate(text: string): boolean {
  return calendarDate.test(text);
}

export function isOffsetDateTime(text: string): boolean {
  return offsetDateTime.test(text);
}

/** Length of a time in whole seconds with an offset in hours and minutes, and where its offset begins. */
const [ORDINARY_LENGTH, OFFSET_AT] = [25, 19];

/** As nearly all couriers write it, which needs no change before it is parsed; a leap second does. */
function isAsParsed(text: string): boolean {
  const sign = text[OFFSET_AT];
  const isOrdinary = text.length === ORDINARY_LENGTH && (sign === "+" || sign === "-");
  return isOrdinary && text[10] === "T" && text[17] !== "6";
}

/** UTC milliseconds of a text that `isOffsetDateTime` accepts. */
export function instantOf(text: string): number {
  if (isAsParsed(text)) return Date.parse(text);
  const normal = text
    .toUpperCase()
    .replace(",", ".")
    .replace(/:60(?=[.Z+-])/, ":59")
    .replace(
      /^(\d{4}-\d{2}-\d{2}T[^+-]*[+-]\d{2})(\d{2})?$/,
      (_, head: string, minutes = "00") => `${head}:${minutes}`,
    );
  return Date.parse(normal);
}

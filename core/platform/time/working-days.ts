/**
 * Working days in Italy: Monday to Friday, without the public holidays of Law 260/1949. Days are numbered one after the other, and a day
 * that is no working day has the number of the next one, so that the difference of two numbers is the working days in between.
 */
import { gregorianEaster } from "date-easter";

const DAY_MS = 86_400_000;
/** Numbers count from it. */
const FIRST_YEAR = 1970;
/** `MM-DD`, every year. */
const FIXED = [
  ...["01-01", "01-06", "04-25", "05-01", "06-02"],
  ...["08-15", "11-01", "12-08", "12-25", "12-26"],
];
/** Saint Francis: a public holiday again since Law 151/2025. */
const SAINT_FRANCIS = "10-04";
const SAINT_FRANCIS_SINCE = 2026;

/** `YYYY-MM-DD`, among them Easter Monday. Easter is a Sunday. */
export function holidaysOf(year: number): string[] {
  const { month, day } = gregorianEaster(year);
  const monday = new Date(Date.UTC(year, month - 1, day + 1));
  const days = year >= SAINT_FRANCIS_SINCE ? [...FIXED, SAINT_FRANCIS] : FIXED;
  return [...days.map((date) => `${year}-${date}`), monday.toISOString().slice(0, 10)].sort();
}

/** From the year of one day to that of another. */
export function holidaysBetween(from: string, to: string): string[] {
  const [first, last] = [Number(from.slice(0, 4)), Number(to.slice(0, 4))];
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at).flatMap(
    holidaysOf,
  );
}

/** The working days of the years 1970 to 2100, days since 1970, and the number of each day. */
const calendar = { days: [] as number[], numbers: [] as number[] };
const LAST_YEAR = 2100;

function knownCalendar() {
  const { days, numbers } = calendar;
  if (numbers.length > 0) return calendar;
  const holidays = new Set(holidaysBetween(`${FIRST_YEAR}-01-01`, `${LAST_YEAR}-01-01`));
  const end = Date.UTC(LAST_YEAR + 1, 0) / DAY_MS;
  for (let day = 0; day < end; day += 1) {
    numbers.push(days.length);
    const date = new Date(day * DAY_MS);
    const weekday = date.getUTCDay();
    if (weekday === 0 || weekday === 6) continue;
    if (!holidays.has(date.toISOString().slice(0, 10))) days.push(day);
  }
  return calendar;
}

/** The number of a day `YYYY-MM-DD` of the years 1970 to 2100; of other years that of the nearest one. */
export function workingDayNumber(date: string): number {
  const { numbers } = knownCalendar();
  const day = Date.parse(date) / DAY_MS;
  return numbers[Math.min(numbers.length - 1, Math.max(0, day))] ?? 0;
}

/** The working day `YYYY-MM-DD` of a number. */
export function workingDay(number: number): string {
  const { days } = knownCalendar();
  const day = days[Math.min(days.length - 1, Math.max(0, number))] ?? 0;
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

/** Working days from `from` to `to`, both `YYYY-MM-DD`: those from the first to the day before the last. */
export function workingDaysBetween(from: string, to: string): number {
  return workingDayNumber(to) - workingDayNumber(from);
}

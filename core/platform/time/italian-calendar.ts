/** Working days in Italy: Monday to Friday without the public holidays. Dates are `YYYY-MM-DD`. */

const DAY_MS = 86_400_000;

/** Month and day; Easter Monday moves. */
const FIXED_HOLIDAYS: ReadonlySet<string> = new Set(
  "01-01 01-06 04-25 05-01 06-02 08-15 11-01 12-08 12-25 12-26".split(" "),
);
/** A public holiday again from 2026 (law 151/2025). */
const SAINT_FRANCIS = "10-04";
const SAINT_FRANCIS_SINCE = 2026;

export function isItalianHoliday(date: string): boolean {
  const year = Number(date.slice(0, 4));
  const day = date.slice(5);
  if (FIXED_HOLIDAYS.has(day)) return true;
  if (day === SAINT_FRANCIS && year >= SAINT_FRANCIS_SINCE) return true;
  return date === easterSunday(year) || date === daysAfter(easterSunday(year), 1);
}

export function isItalianWorkingDay(date: string): boolean {
  const weekday = new Date(`${date}T00:00:00Z`).getUTCDay();
  return weekday !== 0 && weekday !== 6 && !isItalianHoliday(date);
}

/** The first working day after the given day. */
export function nextItalianWorkingDay(date: string): string {
  let day = daysAfter(date, 1);
  while (!isItalianWorkingDay(day)) day = daysAfter(day, 1);
  return day;
}

function daysAfter(date: string, days: number): string {
  return new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
}

/** The Gregorian computus (Meeus, Jones, Butcher). */
function easterSunday(year: number): string {
  const golden = year % 19;
  const century = Math.floor(year / 100);
  const inCentury = year % 100;
  const skipped = century - Math.floor(century / 4) - Math.floor((8 * century + 13) / 25);
  const epact = (19 * golden + skipped + 15) % 30;
  const moon = epact - Math.floor((golden + 11 * epact) / 319);
  const weekday =
    (2 * (century % 4) + 2 * Math.floor(inCentury / 4) - (inCentury % 4) - moon + 32) % 7;
  const sum = moon + weekday + 90;
  const month = Math.floor(sum / 25);
  const day = (moon + weekday + month + 19) % 32;
  return `${year}-${String(month).padStart(2, "0")}-${String(day).padStart(2, "0")}`;
}

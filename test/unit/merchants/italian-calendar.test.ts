/** Document 1: "the next Italian working day". */
import { expect, test } from "bun:test";
import {
  isItalianHoliday,
  isItalianWorkingDay,
  nextItalianWorkingDay,
} from "#core/platform/time/italian-calendar.ts";

test("Easter Monday is a holiday, as the church calendar has it", () => {
  const mondays = ["2024-04-01", "2025-04-21", "2026-04-06", "2027-03-29", "2038-04-26"];
  for (const day of mondays) expect(isItalianHoliday(day)).toBe(true);
  expect(isItalianHoliday("2026-04-07")).toBe(false);
});

test("the national holidays are no working days, whatever weekday they fall on", () => {
  const days = ["01-01", "01-06", "04-25", "05-01", "06-02", "08-15", "11-01", "12-08", "12-25"];
  for (const day of [...days, "12-26"]) expect(isItalianWorkingDay(`2029-${day}`)).toBe(false);
});

test("Saint Francis is a holiday from 2026 on", () => {
  expect(isItalianHoliday("2025-10-04")).toBe(false);
  expect(isItalianHoliday("2027-10-04")).toBe(true);
});

test("the next working day skips weekends and holidays in a row, and is never the day itself", () => {
  expect(nextItalianWorkingDay("2026-11-20")).toBe("2026-11-23");
  expect(nextItalianWorkingDay("2026-11-23")).toBe("2026-11-24");
  expect(nextItalianWorkingDay("2026-12-24")).toBe("2026-12-28");
  expect(nextItalianWorkingDay("2027-03-26")).toBe("2027-03-30");
  expect(nextItalianWorkingDay("2026-12-31")).toBe("2027-01-04");
});

/** Working days in Italy (`working-days.ts`): Monday to Friday without the public holidays of Law 260/1949. */
import { expect, test } from "bun:test";
import {
  holidaysOf,
  workingDay,
  workingDayNumber,
  workingDaysBetween,
} from "#core/platform/time/working-days.ts";

test("the public holidays of a year are eleven days with Easter Monday, and Saint Francis since 2026", () => {
  expect(holidaysOf(2025)).toEqual([
    ...["2025-01-01", "2025-01-06", "2025-04-21", "2025-04-25", "2025-05-01", "2025-06-02"],
    ...["2025-08-15", "2025-11-01", "2025-12-08", "2025-12-25", "2025-12-26"],
  ]);
  expect(holidaysOf(2027)).toEqual([
    ...["2027-01-01", "2027-01-06", "2027-03-29", "2027-04-25", "2027-05-01", "2027-06-02"],
    ...["2027-08-15", "2027-10-04", "2027-11-01", "2027-12-08", "2027-12-25", "2027-12-26"],
  ]);
});

test("a day that is no working day has the number of the next one, across a year", () => {
  // Wednesday 24 December; Thursday and Friday are holidays, then comes a weekend.
  expect(workingDaysBetween("2025-12-24", "2025-12-25")).toBe(1);
  expect(workingDaysBetween("2025-12-25", "2025-12-29")).toBe(0);
  expect(workingDaysBetween("2025-12-24", "2026-01-02")).toBe(4);
  expect(workingDay(workingDayNumber("2025-12-24") + 1)).toBe("2025-12-29");
});

test("days outside 1970 to 2100 are taken for the nearest one", () => {
  expect(workingDayNumber("1969-01-01")).toBe(0);
  expect(workingDayNumber("2200-01-01")).toBe(workingDayNumber("2100-12-31"));
});

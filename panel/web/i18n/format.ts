/** Numbers and instants as the visitor's language writes them. Instants are shown in the documents' time zone. */
import { type Language, useText } from "./text.tsx";

const ZONE = "Europe/Rome";
const LOCALES: Readonly<Record<Language, string>> = { en: "en-GB", it: "it-IT" };
const NOTHING = "–";

type Formats = ReturnType<typeof formatsOf>;

/** Making a formatter takes longer than using it a hundred times. */
const made = new Map<Language, Formats>();

export function useFormat(): Formats {
  const { language } = useText();
  const known = made.get(language) ?? formatsOf(LOCALES[language]);
  made.set(language, known);
  return known;
}

function formatsOf(locale: string) {
  const whole = new Intl.NumberFormat(locale);
  const decimal = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
  const compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
  const percent = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });
  const date = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeZone: ZONE });
  const minute = new Intl.DateTimeFormat(locale, {
    day: "2-digit",
    month: "short",
    hour: "2-digit",
    minute: "2-digit",
    timeZone: ZONE,
  });
  const second = new Intl.DateTimeFormat(locale, {
    dateStyle: "medium",
    timeStyle: "medium",
    timeZone: ZONE,
  });
  const hour = new Intl.DateTimeFormat(locale, {
    hour: "2-digit",
    minute: "2-digit",
    timeZone: ZONE,
  });
  const month = new Intl.DateTimeFormat(locale, {
    month: "short",
    year: "2-digit",
    timeZone: ZONE,
  });
  const day = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short", timeZone: ZONE });
  /** As document 1 writes local times: Sweden's form is the same. */
  const rome = new Intl.DateTimeFormat("sv-SE", {
    dateStyle: "short",
    timeStyle: "medium",
    timeZone: ZONE,
  });
  const or = <T>(value: T | null | undefined, write: (value: T) => string) =>
    value === null || value === undefined ? NOTHING : write(value);
  /** Of ISO 8601, or UTC milliseconds. */
  const at = (form: Intl.DateTimeFormat) => (instant: string | number | null | undefined) =>
    or(instant, (one) => form.format(new Date(one)));
  return {
    whole: (value: number | null | undefined) => or(value, (one) => whole.format(one)),
    decimal: (value: number | null | undefined) => or(value, (one) => decimal.format(one)),
    interval: (value: { readonly low: number; readonly high: number } | null | undefined) =>
      or(value, ({ low, high }) => `${decimal.format(low)}–${decimal.format(high)}`),
    /** From a hundred on, a fraction tells nothing. */
    rate: (value: number) =>
      value < 100 ? decimal.format(value) : whole.format(Math.round(value)),
    compact: (value: number | null | undefined) => or(value, (one) => compact.format(one)),
    percent: (value: number | null | undefined) => or(value, (one) => percent.format(one)),
    date: at(date),
    minute: at(minute),
    second: at(second),
    hour: at(hour),
    day: at(day),
    month: at(month),
    romeText: (iso: string) => rome.format(new Date(iso)),
    duration: (seconds: number | null | undefined) =>
      or(seconds, (one) => durationOf(one, (value) => decimal.format(value))),
  };
}

const UNITS = [
  { seconds: 86_400, sign: "d" },
  { seconds: 3_600, sign: "h" },
  { seconds: 60, sign: "min" },
] as const;

function durationOf(seconds: number, write: (value: number) => string): string {
  const unit = UNITS.find((one) => seconds >= one.seconds);
  if (unit) return `${write(seconds / unit.seconds)} ${unit.sign}`;
  return seconds > 0 && seconds < 1 ? `${Math.round(seconds * 1_000)} ms` : `${write(seconds)} s`;
}

/** Texts of a fixed form. The pattern is for programs; the description says the same to people, also in a fault's message. */
import { Type } from "@sinclair/typebox";
import { EMAIL_ADDRESS, EMAIL_LENGTH, MAIL_SENDER } from "./email-address.ts";

const COUNTRY = {
  pattern: "^[A-Z]{2}$",
  description: "a country by ISO 3166-1 alpha-2, two capital letters such as IT",
} as const;

export const countryCode = Type.String(COUNTRY);
export const countryCodeOrItaly = Type.String({ ...COUNTRY, default: "IT" });

/** As the subdivisions of ISO 3166-2 are coded after the country. */
export const provinceCode = Type.String({
  pattern: "^[A-Za-z0-9]{1,3}$",
  description: "the code of a province, such as RM",
});

export const currencyCode = Type.String({
  pattern: "^[A-Z]{3}$",
  description: "a currency by ISO 4217, three capital letters such as EUR",
});

export const clockTime = Type.String({
  pattern: "^([01]\\d|2[0-3]):[0-5]\\d$",
  description: "a time of day as HH:MM, from 00:00 to 23:59",
});

export const emailAddress = Type.String({
  maxLength: EMAIL_LENGTH,
  pattern: `^${EMAIL_ADDRESS}$`,
  description: "one e-mail address, such as name@example.com",
});

/** Where an empty text says that there is none. */
export const emailAddressOrEmpty = Type.String({
  maxLength: EMAIL_LENGTH,
  pattern: `^(?:${EMAIL_ADDRESS})?$`,
  description: "one e-mail address, such as name@example.com, or an empty text",
});

/** As mail programs show it. */
export const mailSender = Type.String({
  maxLength: EMAIL_LENGTH,
  pattern: `^${MAIL_SENDER}$`,
  description: "one e-mail address, or a name without @ followed by one in angle brackets",
});

/** The merchant's own event that a recipient is notified of (document 1, "Notifications"). */
export const merchantEvent = Type.String({
  pattern: "^[a-z0-9][a-z0-9_-]{1,24}$",
  description:
    "2 to 25 small letters, digits, hyphens and underscores, beginning with a letter or digit",
});

export const entityCode = Type.String({
  minLength: 1,
  maxLength: 50,
  pattern: "^[A-Za-z0-9][A-Za-z0-9_.-]*$",
  description: "letters, digits, dots, hyphens and underscores, beginning with a letter or digit",
});

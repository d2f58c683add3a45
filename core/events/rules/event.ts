/**
 * The wire shapes of document 2: envelope and event. One schema is the definition; the checker is compiled once
 * and runs on the parsed body, since a 500-event body through a route schema is three times slower.
 */

import { type Static, Type } from "@sinclair/typebox";
import { compileSchema } from "#core/platform/schema/compile-schema.ts";
import { type Fault, listFaults } from "#core/platform/schema/fault.ts";
import { illFormedText } from "#core/platform/schema/ill-formed-text.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { textPattern } from "#core/platform/schema/text-formats.ts";
import { EVENT_NUMBER_LENGTH, referenceText, trackingNumberText } from "./reference.ts";

/** Document 2, "Limits". */
export const EVENTS_PER_MESSAGE = limit(500, "events of a message", "400");
export const BODY_LIMIT_BYTES = limit(5 * 1024 * 1024, "a message, inflated", "413");
/** Bounds of optional fields that document 2 leaves open. */
const NAME_LENGTH = 200;
const TEXT_LENGTH = 500;
const URI_LENGTH = 2_048;
const POSTAL_CODE_LENGTH = 16;
const COUNT_LIMIT = 999;
const ATTRIBUTE_KEYS = 20;
const ATTRIBUTE_KEY_LENGTH = 64;
const ATTRIBUTE_VALUE_LENGTH = 500;

const number = trackingNumberText(EVENT_NUMBER_LENGTH);
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength });
const dateTime = Type.String({ maxLength: 40, format: "offset-date-time" });
const country = Type.String({
  pattern: "^[A-Za-z]{2}$",
  description: "a country by ISO 3166-1 alpha-2, two letters such as IT",
});
const uri = Type.String({ maxLength: URI_LENGTH, format: "http-uri" });
const strict = { additionalProperties: false } as const;

export const DeliveredTo = Type.Union(
  (["RECIPIENT", "NEIGHBOUR", "MAILBOX", "PICKUP_POINT", "SAFE_PLACE", "OTHER"] as const).map(
    (name) => Type.Literal(name),
  ),
);

export const CourierEvent = Type.Object(
  {
    eventId: text(128),
    trackingNumber: Type.Optional(number),
    occurredAt: dateTime,
    status: Type.Object({ code: text(64), description: text(500) }, strict),
    externalId: Type.Optional(referenceText(128)),
    senderAccount: Type.Optional(referenceText(64)),
    location: Type.Optional(
      Type.Object(
        {
          name: Type.Optional(text(NAME_LENGTH)),
          countryCode: Type.Optional(country),
          postalCode: Type.Optional(text(POSTAL_CODE_LENGTH)),
        },
        strict,
      ),
    ),
    parcel: Type.Optional(
      Type.Object(
        {
          trackingNumber: Type.Optional(number),
          index: Type.Optional(Type.Integer({ minimum: 1, maximum: COUNT_LIMIT })),
          total: Type.Optional(Type.Integer({ minimum: 1, maximum: COUNT_LIMIT })),
        },
        strict,
      ),
    ),
    reason: Type.Optional(
      Type.Object(
        { code: Type.Optional(text(64)), description: Type.Optional(text(TEXT_LENGTH)) },
        strict,
      ),
    ),
    delivery: Type.Optional(
      Type.Object(
        {
          estimatedDeliveryDate: Type.Optional(Type.String({ format: "calendar-date" })),
          estimatedDeliveryWindow: Type.Optional(
            Type.Object({ from: Type.Optional(dateTime), to: Type.Optional(dateTime) }, strict),
          ),
          deliveredTo: Type.Optional(DeliveredTo),
          signedBy: Type.Optional(text(NAME_LENGTH)),
          podUrl: Type.Optional(uri),
          attemptNumber: Type.Optional(Type.Integer({ minimum: 1, maximum: COUNT_LIMIT })),
        },
        strict,
      ),
    ),
    pickupPoint: Type.Optional(
      Type.Object(
        {
          id: Type.Optional(text(64)),
          name: Type.Optional(text(NAME_LENGTH)),
          address: Type.Optional(text(TEXT_LENGTH)),
          postalCode: Type.Optional(text(POSTAL_CODE_LENGTH)),
          countryCode: Type.Optional(country),
          availableUntil: Type.Optional(dateTime),
        },
        strict,
      ),
    ),
    trackingNumberChange: Type.Optional(
      Type.Object({ newTrackingNumber: number, reason: Type.Optional(text(TEXT_LENGTH)) }, strict),
    ),
    recipientActionUrl: Type.Optional(uri),
    isReturn: Type.Optional(Type.Boolean()),
    attributes: Type.Optional(
      Type.Record(
        Type.String({ pattern: textPattern(ATTRIBUTE_KEY_LENGTH) }),
        Type.String({ maxLength: ATTRIBUTE_VALUE_LENGTH }),
        {
          maxProperties: ATTRIBUTE_KEYS,
          keyLength: ATTRIBUTE_KEY_LENGTH,
          additionalProperties: false,
        },
      ),
    ),
  },
  // Published, and checked by `checkEvent`. Makers of types read `anyOf` beside `properties` as another type.
  {
    ...strict,
    if: { properties: { trackingNumber: {} }, required: ["trackingNumber"] },
    else: {
      properties: { externalId: {}, senderAccount: {} },
      required: ["externalId", "senderAccount"],
    },
  },
);
export type CourierEvent = Static<typeof CourierEvent>;

/** Unknown envelope fields are ignored (document 2, "Envelope"); the events are judged one by one. */
export const Envelope = Type.Object({
  schemaVersion: Type.String({
    pattern: "^\\d{1,4}\\.\\d{1,4}$",
    description: "major and minor version such as 1.0",
  }),
  messageId: text(128),
  sentAt: dateTime,
  courier: text(64),
  events: Type.Array(Type.Unknown({ publishedAs: CourierEvent }), {
    minItems: 1,
    maxItems: EVENTS_PER_MESSAGE,
  }),
});
export type Envelope = Static<typeof Envelope>;

/** Major versions of `schemaVersion` that are accepted; any minor of them is (document 2, "Versioning"). */
const SCHEMA_MAJORS: readonly string[] = ["1"];
export const SCHEMA_VERSIONS = ["1.0"] as const;

const eventChecker = compileSchema(CourierEvent);
const envelopeChecker = compileSchema(Envelope);

/** Every fault of one event, at most `FAULTS_LISTED`; empty when the event is valid. */
export function checkEvent(value: unknown): Fault[] {
  if (!eventChecker.check(value)) return listFaults(eventChecker.errors(value));
  if (value.trackingNumber !== undefined) return [];
  if (value.externalId === undefined) {
    return [required("trackingNumber", "Either trackingNumber or externalId must be present.")];
  }
  if (value.senderAccount === undefined) {
    return [required("senderAccount", "Required when externalId is sent without trackingNumber.")];
  }
  return [];
}

/** Every fault of the envelope itself; its events are not looked into. */
export function checkEnvelope(value: unknown): Fault[] {
  return envelopeChecker.check(value) ? [] : listFaults(envelopeChecker.errors(value));
}

/** What to tell the sender of a well-formed version that is not accepted; null for one that is. */
export function unsupportedVersion({ schemaVersion }: Envelope): string | null {
  const [major = ""] = schemaVersion.split(".");
  if (SCHEMA_MAJORS.includes(major)) return null;
  return `schemaVersion ${schemaVersion} is not supported; supported: ${SCHEMA_VERSIONS.join(", ")}.`;
}

/** The same rules for a body whose texts may hold half a surrogate pair. */
export function checkEscapedEvent(value: unknown): Fault[] {
  const faults = checkEvent(value);
  return faults.length > 0 ? faults : illFormedText(value);
}

export function checkEscapedEnvelope(value: unknown): Fault[] {
  const faults = checkEnvelope(value);
  if (faults.length > 0) return faults;
  const { messageId, courier } = value as Envelope;
  return illFormedText({ messageId, courier });
}

function required(path: string, message: string): Fault {
  return { path, code: "REQUIRED", message };
}

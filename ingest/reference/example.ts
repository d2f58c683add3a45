/** A message and its answer, as the reference and the OpenAPI description show them; a test sends it. */

import type { Static } from "@sinclair/typebox";
import type { MessageReport } from "#ingest/messages/message-report.ts";

export const VALID_MESSAGE = {
  schemaVersion: "1.0",
  messageId: "batch-000123",
  sentAt: "2026-11-20T10:00:00+01:00",
  courier: "GLS_ITA",
  events: [
    {
      eventId: "5f1c-OUT-1",
      trackingNumber: "TN0001",
      occurredAt: "2026-11-20T07:31:40+01:00",
      status: { code: "OUT", description: "In consegna" },
      location: { name: "Forlì", countryCode: "IT", postalCode: "47121" },
      delivery: {
        estimatedDeliveryDate: "2026-11-20",
        estimatedDeliveryWindow: {
          from: "2026-11-20T09:00:00+01:00",
          to: "2026-11-20T11:00:00+01:00",
        },
      },
      attributes: { depot: "FO1" },
    },
    {
      eventId: "5f1c-DLV-1",
      trackingNumber: "TN0001",
      externalId: "1001",
      senderAccount: "ACC-1",
      occurredAt: "2026-11-20T09:58:12+01:00",
      status: { code: "DLV", description: "Consegnata" },
      location: { name: "Forlì", countryCode: "IT", postalCode: "47121" },
      parcel: { trackingNumber: "TN0001-1", index: 1, total: 2 },
      delivery: {
        deliveredTo: "NEIGHBOUR",
        signedBy: "Rossi",
        podUrl: "https://pod.example/5f1c.jpg",
        attemptNumber: 1,
      },
    },
  ],
} as const;

/** With an event whose time has no offset. */
export const EXAMPLE_MESSAGE = {
  ...VALID_MESSAGE,
  events: [
    ...VALID_MESSAGE.events,
    {
      eventId: "9a02-DLV-1",
      trackingNumber: "TN0002",
      occurredAt: "2026-11-20T10:00:00",
      status: { code: "DLV", description: "Consegnata" },
    },
  ],
} as const;

/** To the message with the faulty event. */
export const EXAMPLE_ANSWER: Static<typeof MessageReport> = {
  messageId: "batch-000123",
  receivedAt: "2026-11-20T10:00:01.123+01:00",
  accepted: 2,
  duplicate: 0,
  unknownTracking: 0,
  invalid: 1,
  results: [
    { eventId: "5f1c-OUT-1", outcome: "ACCEPTED" },
    { eventId: "5f1c-DLV-1", outcome: "ACCEPTED" },
    {
      eventId: "9a02-DLV-1",
      outcome: "INVALID",
      errors: [
        {
          path: "occurredAt",
          code: "BAD_FORMAT",
          message:
            "An ISO 8601 date and time from 2000 to 2099 with an explicit offset, such as 2026-11-20T10:00:00+01:00.",
        },
      ],
    },
  ],
};

/** `POST /v2/shipments/{id}/notifications` (document 1, "Shipments"): mails the recipient about a merchant's own event. */

import { randomUUID } from "node:crypto";
import { type Static, Type } from "@sinclair/typebox";
import { type Caller, merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { onceByKey, repeatable } from "#api/http/idempotency.ts";
import { jsonBody } from "#api/http/read-json.ts";
import { ownShipment } from "#api/shipments/own-shipment.ts";
import { composeTemplate } from "#core/merchants/rules/compose-message.ts";
import { messageValues } from "#core/merchants/rules/message-values.ts";
import {
  EVENT_ONCE_PER_MS,
  NotificationBody,
  RESERVED_EVENTS,
} from "#core/merchants/rules/notification.ts";
import { acceptMessages, type Message } from "#core/merchants/store/messages.ts";
import { findTemplate } from "#core/merchants/store/templates.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import { idInPath, json } from "#core/platform/openapi/operation.ts";
import { isEmailAddress } from "#core/platform/schema/email-address.ts";
import type { FaultCode } from "#core/platform/schema/fault.ts";
import { warnings } from "#core/platform/schema/unknown-members.ts";
import type { StoredShipment } from "#core/shipments/store/shipments.ts";
import { summaryOf } from "#core/shipments/store/summary.ts";

const RETRY_AFTER_SECONDS = "30";

export const AcceptedNotification = Type.Object({
  notificationId: Type.String(),
  shipmentId: Type.Integer(),
  event: Type.String(),
  status: Type.Literal("accepted"),
  warnings,
});
type AcceptedNotification = Static<typeof AcceptedNotification>;

const operation = repeatable({
  access: { scope: "shipments:write" },
  id: "notifyRecipient",
  summary: "Send the recipient the e-mail of a merchant-defined event",
  description:
    "Uses the first template there is of (event, language), (event, English), (fallback, language) and (fallback, English). An event is accepted once per shipment in 24 hours. `variables` are used for this e-mail only; without them the shipment's custom fields are. A template names values as `{{name}}`: members of the shipment's summary (`{{trackingNumber}}`), of its consignee and monetary with a dot (`{{consignee.name}}`, `{{monetary.codAmount}}`), `{{merchant}}`, and the variables; an unknown name is empty.",
  parameters: [idInPath(4096)],
  rules: [
    { path: "event", code: "NOT_ALLOWED", rule: "not reserved, and with a usable template" },
    { path: "consignee.email", code: "REQUIRED", rule: "the shipment has a recipient e-mail" },
  ],
  body: jsonBody(NotificationBody, {
    event: "review-request",
    variables: { custom1: "10%" },
    language: "it",
  }),
  answers: {
    202: json("Accepted; delivery is asynchronous.", AcceptedNotification, {
      notificationId: "3f1d7a9e-6c0b-4f57-9a39-4d2f5b6c7d8e",
      shipmentId: 4096,
      event: "review-request",
      status: "accepted",
    }),
  },
  errors: [
    "SHIPMENT_NOT_FOUND",
    "EMAILS_NOT_MANAGED",
    "NOTIFICATION_REPEATED",
    "NOTIFICATION_NOT_QUEUED",
    "ARCHIVE_UNAVAILABLE",
  ],
});

export function notifyRoute(deps: ApiDeps) {
  const { redis, live } = deps;
  return merchantRoutes(deps).post(
    "/v2/shipments/:id/notifications",
    async ({ params, body, request, caller, set }): Promise<AcceptedNotification> => {
      if (RESERVED_EVENTS.includes(body.event)) {
        throw refused("event", "NOT_ALLOWED", "The event is reserved.", body);
      }
      return onceByKey(deps, { request, caller, set }, [body], async () => {
        const shipment = await ownShipment(deps, caller.channel, params.id);
        const message = await composeMessage(deps, caller, shipment, body);
        const { event } = body;
        const once = { message, topic: `event:${event}`, oncePerMs: EVENT_ONCE_PER_MS };
        const [acceptance] = await acceptMessages(redis, [once], live.now());
        if (acceptance === "repeated") {
          const detail = "The event was accepted for this shipment within the last 24 hours.";
          throw new Problem(409, "NOTIFICATION_REPEATED", detail);
        }
        if (acceptance !== "accepted") throw notQueued();
        // It may have been archived before the message was accepted; from now on it is not.
        await ownShipment(deps, caller.channel, params.id);
        set.status = 202;
        const { messageId: notificationId, shipmentId } = message;
        return { notificationId, shipmentId, event, status: "accepted" as const };
      });
    },
    route(operation),
  );
}

/** @throws {Problem} 409, 422 */
async function composeMessage(
  { redis }: ApiDeps,
  { channel, configuration }: Caller,
  shipment: StoredShipment,
  { event, variables, language: wanted }: NotificationBody,
): Promise<Message> {
  if (!channel.emails.managed) {
    const detail = "The channel's transactional e-mails are not managed by the service.";
    throw new Problem(409, "EMAILS_NOT_MANAGED", detail);
  }
  const { id, consignee, language } = shipment.record;
  const to = consignee?.email;
  if (!to || !isEmailAddress(to)) {
    throw refused("consignee.email", "REQUIRED", "The shipment has no recipient e-mail.");
  }
  const template = await findTemplate(
    redis,
    channel.testOf ?? channel.id,
    event,
    wanted ?? language,
  );
  if (!template) throw refused("event", "NOT_ALLOWED", "There is no usable template.", { event });
  const summary = summaryOf(shipment, configuration);
  const values = messageValues(summary, channel.name, variables ?? null);
  return {
    messageId: randomUUID(),
    type: "email",
    shipmentId: id,
    to,
    from: channel.emails.from,
    event,
    ...(channel.testOf !== null && { isTest: true as const }),
    ...composeTemplate(template, values),
  };
}

function refused(path: string, code: FaultCode, message: string, body?: object): Problem {
  return validationFailed([{ path, code, message }], body);
}

function notQueued(): Problem {
  return new Problem(503, "NOTIFICATION_NOT_QUEUED", "No e-mail went out; try again later.", {
    headers: { "retry-after": RETRY_AFTER_SECONDS },
  });
}

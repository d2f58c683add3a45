/** `GET /v2/shipments/{id}/notifications/{notificationId}`, an extension of document 1: what became of a notification. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { NOT_MODIFIED, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { besideOwn } from "#api/shipments/own-shipment.ts";
import { type FoundMessage, findMessage, sentAmong } from "#core/merchants/store/messages.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { idInPath, inPath, json } from "#core/platform/openapi/operation.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { romeIso } from "#core/platform/time/rome-time.ts";

const STATUSES = ["accepted", "sent", "failed"] as const;

export const NotificationAgain = Type.Object({
  notificationId: Type.String(),
  shipmentId: Type.Integer(),
  event: nullableText,
  status: Type.Union(
    STATUSES.map((name) => Type.Literal(name)),
    { description: "accepted: on its way" },
  ),
  type: Type.String(),
  recipient: Type.String(),
  endedAt: Type.Union([Type.String(), Type.Null()], {
    description: "ISO 8601; when it was sent or failed, null while it is on its way",
  }),
  error: nullableText,
});
type NotificationAgain = Static<typeof NotificationAgain>;

const ID = "3f1d7a9e-6c0b-4f57-9a39-4d2f5b6c7d8e";
const operation = declared({
  access: { scope: "shipments:read" },
  id: "readNotification",
  summary: "Read what became of a notification",
  description: "A shipment keeps its latest 200 notifications.",
  extension: true,
  parameters: [idInPath(4096), inPath("notificationId", Type.String(), ID)],
  answers: {
    200: {
      ...json("The notification.", NotificationAgain, {
        notificationId: ID,
        shipmentId: 4096,
        event: "review-request",
        status: "sent",
        type: "email",
        recipient: "mario@example.com",
        endedAt: "2026-11-20T18:00:00.000+01:00",
        error: null,
      }),
      headers: TAG_HEADERS,
    },
    ...NOT_MODIFIED,
  },
  errors: ["SHIPMENT_NOT_FOUND", "NOTIFICATION_NOT_FOUND", "ARCHIVE_UNAVAILABLE"],
});

const ID_FORM = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export function notificationRoute(deps: ApiDeps) {
  const { redis } = deps;
  return merchantRoutes(deps).get(
    "/v2/shipments/:id/notifications/:notificationId",
    async ({ params, request, caller: { channel } }): Promise<Response> => {
      const notificationId = ID_FORM.test(params.notificationId) ? params.notificationId : "none";
      const { shipmentId, found } = await besideOwn(
        ...[deps, channel, params.id],
        (id) => findMessage(redis, id, notificationId),
        ({ messages }) => sentAmong(messages, notificationId),
      );
      if (!found)
        throw new Problem(404, "NOTIFICATION_NOT_FOUND", "There is no such notification.");
      const view: NotificationAgain = { notificationId, shipmentId, ...viewOf(found) };
      return tagged(request, view);
    },
    route(operation),
  );
}

function viewOf(found: FoundMessage): Omit<NotificationAgain, "notificationId" | "shipmentId"> {
  if (found.kind === "waiting") {
    const { event = null, type, to: recipient } = found.message;
    return { event, status: "accepted", type, recipient, endedAt: null, error: null };
  }
  const { event = null, type, recipient, result, sentAtMs, error } = found.sent;
  const status = result === "OK" ? "sent" : "failed";
  return { event, status, type, recipient, endedAt: romeIso(sentAtMs), error };
}

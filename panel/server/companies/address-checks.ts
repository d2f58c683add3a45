/** `GET /panel/api/channels/{code}/address-checks`: what is billed of document 1's address check. */

import { Type } from "@sinclair/typebox";
import { readAddressChecks } from "#core/merchants/store/address-checks.ts";
import { route } from "#core/platform/http/access.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { panelRoutes } from "#panel/server/panel-routes.ts";
import { channelOf } from "#panel/server/webhooks/webhook-access.ts";

export const AddressChecks = Type.Object({
  channel: Type.String(),
  total: Type.Integer(),
  months: Type.Array(
    Type.Object({
      month: Type.String({ description: "YYYY-MM, Europe/Rome" }),
      checks: Type.Integer(),
    }),
  ),
});

export function addressChecksRoute(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "address-checks").get(
    "/panel/api/channels/:channelCode/address-checks",
    async ({ params }) => {
      const channel = channelOf(await live.refresh(), params.channelCode);
      const owner = { companyId: channel.companyId, channelId: channel.id };
      const months = await readAddressChecks(redis, owner);
      const total = months.reduce((sum, { checks }) => sum + checks, 0);
      return { channel: channel.code, total, months };
    },
    route({
      access: { can: "channels:read", of: "channel" },
      response: AddressChecks,
      summary: "Accepted address checks, by month",
    }),
  );
}

/** `GET /panel/api/channels/{code}/address-checks`: what is billed of document 1's address check. */
import { Type } from "@sinclair/typebox";
import { Problem } from "#core/problem.ts";
import { readAddressChecks } from "#core/redis/merchant/address-checks.ts";
import type { Runtime } from "#core/runtime.ts";
import { operatorRoutes } from "#panel/operators.ts";

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
  return operatorRoutes(runtime, "address-checks").get(
    "/panel/api/channels/:channelCode/address-checks",
    async ({ params }) => {
      const { channelByCode } = await live.refresh();
      const channel = channelByCode.get(params.channelCode);
      if (!channel) throw new Problem(404, "CHANNEL_NOT_FOUND", "There is no such channel.");
      const owner = { companyId: channel.companyId, channelId: channel.id };
      const months = await readAddressChecks(redis, owner);
      const total = months.reduce((sum, { checks }) => sum + checks, 0);
      return { channel: channel.code, total, months };
    },
    { response: AddressChecks, detail: { summary: "Accepted address checks, by month" } },
  );
}

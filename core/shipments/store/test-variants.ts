import type { Channel, ChannelCourier, Courier } from "#core/configuration/store/configuration.ts";
import { TEST_COURIER, TEST_COURIERS } from "#core/shipments/rules/test-parcel.ts";

/** The couriers that shipments of a shadow go with: whatever the live channel calls its couriers is the test courier. */
export function testVariants(
  { couriers }: Pick<Channel, "couriers">,
  known: ReadonlyMap<string, Courier>,
): ReadonlyMap<string, ChannelCourier> {
  const enabled = [...couriers.values()].filter(({ shippingEnabled }) => shippingEnabled);
  const names = enabled.flatMap(({ code, transcodings }) => [
    ...[code, ...transcodings],
    known.get(code)?.name ?? code,
  ]);
  const plain = { senderAccounts: [], shippingEnabled: true, errorLabel: false };
  return new Map(
    TEST_COURIERS.map((code) => [
      code,
      {
        ...plain,
        code,
        labelFormat: "PDF" as const,
        transcodings: code === TEST_COURIER ? names : [],
      },
    ]),
  );
}

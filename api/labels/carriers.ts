/** Carriers that labels can be asked of. */
import type { Caller } from "#api/auth/authenticated.ts";
import type { ChannelCourier } from "#core/configuration/store/configuration.ts";
import { isGeneric, isNational } from "#core/merchants/rules/label-carrier.ts";
import type { Config } from "#core/platform/environment/config.ts";
import { genericCarrier } from "./generic-carrier.ts";
import type { LabelCarrier } from "./label-carrier.ts";
import { nationalCarrier } from "./national-carrier.ts";
import { testCarrier } from "./test-carrier.ts";

/** Null: no carrier makes labels under this code, or the channel does not ship with it. */
export function findCarrier(
  config: Config,
  { channel }: Pick<Caller, "channel">,
  code: string,
): { readonly carrier: LabelCarrier; readonly courier: ChannelCourier } | null {
  const courier = channel.couriers.get(code);
  if (!courier?.shippingEnabled) return null;
  if (channel.testOf !== null) {
    const makesLabels = isGeneric(code) || isNational(code, config.nationalCarrier);
    return makesLabels ? { carrier: testCarrier, courier } : null;
  }
  if (isGeneric(code)) return { carrier: genericCarrier, courier };
  if (isNational(code, config.nationalCarrier))
    return { carrier: nationalCarrier(config), courier };
  return null;
}

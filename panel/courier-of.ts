import { Problem } from "#core/problem.ts";
import type { Configuration, Courier } from "#core/redis/config/configuration.ts";

/** @throws {Problem} 404 */
export function courierOf({ couriers }: Configuration, code: string): Courier {
  const courier = couriers.get(code);
  if (!courier) throw new Problem(404, "COURIER_NOT_FOUND", "There is no such courier.");
  return courier;
}

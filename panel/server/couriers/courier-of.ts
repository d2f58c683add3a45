/** Couriers by the code that a path names: as the configuration in force has them, and as they are stored. */

import type { Configuration, Courier } from "#core/configuration/store/configuration.ts";
import { readEntity, type Stored } from "#core/configuration/store/entities.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import { notFound } from "#panel/server/not-found.ts";

/** @throws {Problem} 404 */
export function courierOf({ couriers }: Configuration, code: string): Courier {
  return found(couriers.get(code));
}

/** @throws {Problem} 404 */
export async function readCourier(redis: Redis, code: string): Promise<Stored<"courier">> {
  return found(await readEntity(redis, "courier", code));
}

function found<T>(courier: T | null | undefined): T {
  if (!courier) throw notFound("courier");
  return courier;
}

/** Templates of a channel's messages: read when they are needed, not with every configuration. */

import type { TemplateEntity } from "#core/configuration/rules/entities.ts";
import { readEntity } from "#core/configuration/store/entities.ts";
import { type TemplateChoice, templateOrder } from "#core/merchants/rules/notification.ts";
import type { Redis } from "#core/platform/redis/client.ts";
import type { Language } from "#core/shipments/rules/shipment.ts";

/** The first template of the choice order that the channel has. */
export async function findTemplate(
  redis: Redis,
  channelId: number,
  event: string,
  language: Language,
): Promise<TemplateEntity | null> {
  const read = ({ event: name, language }: TemplateChoice) =>
    readEntity(redis, "template", `${channelId}:${name}:${language}`);
  const found = await Promise.all(templateOrder(event, language).map(read));
  return found.find((one) => one !== null) ?? null;
}

/** A message from its bytes: signature, JSON, envelope (document 2, "Message format"); its events are checked later. */

import type { Courier } from "#core/configuration/store/configuration.ts";
import {
  checkEnvelope,
  checkEscapedEnvelope,
  type Envelope,
  unsupportedVersion,
} from "#core/events/rules/event.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import type { Message } from "./prepare.ts";
import { checkSignature, parseBody } from "./read-body.ts";
import { eventRule } from "./read-event-by-event.ts";

/** An envelope that has passed, and the rule for its events. */
export interface ReadMessage {
  readonly envelope: Envelope;
  readonly message: Message;
}

/** @throws {Problem} 403 bad signature, 400 bad envelope, 403 other courier, in this order */
export async function readMessage(
  { secrets, live }: Pick<Runtime, "secrets" | "live">,
  request: Request,
  body: Uint8Array,
  courier: Courier,
): Promise<ReadMessage> {
  await checkSignature(request, body, courier, secrets.vault, live.now());
  const { value, hasSurrogateEscapes } = await parseBody(request, body);
  const check = eventRule({ hasSurrogateEscapes });
  const errors = hasSurrogateEscapes ? checkEscapedEnvelope(value) : checkEnvelope(value);
  if (errors.length > 0) {
    throw new Problem(400, "INVALID_ENVELOPE", "The envelope is invalid.", { members: { errors } });
  }
  const envelope = value as Envelope;
  const unsupported = unsupportedVersion(envelope);
  if (unsupported !== null) throw new Problem(400, "UNSUPPORTED_SCHEMA_VERSION", unsupported);
  if (envelope.courier !== courier.code) {
    throw new Problem(403, "COURIER_MISMATCH", "The courier does not match the token.");
  }
  return { envelope, message: { events: envelope.events, check } };
}

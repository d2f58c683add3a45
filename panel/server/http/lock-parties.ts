/** What a request changes is changed by its caller, who is known once admitted. */
import { Elysia } from "elysia";
import { askedByNobody } from "#core/configuration/store/asker.ts";

/** Of Elysia, whose type does not tell. */
type Handle = (...given: unknown[]) => Promise<Response> | Response;

export function lockParties() {
  return new Elysia({ name: "lock-parties" }).wrap((handle) => {
    return (...given: unknown[]) => askedByNobody(() => (handle as unknown as Handle)(...given));
  });
}

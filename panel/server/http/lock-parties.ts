/** What a request changes waits for its locks as a party's, which is known once the caller has been admitted. */
import { Elysia } from "elysia";
import { withoutParty } from "#core/configuration/store/setup-lock.ts";

/** Of Elysia, whose type does not tell. */
type Handle = (...given: unknown[]) => Promise<Response> | Response;

export function lockParties() {
  return new Elysia({ name: "lock-parties" }).wrap((handle) => {
    return (...given: unknown[]) => withoutParty(() => (handle as unknown as Handle)(...given));
  });
}

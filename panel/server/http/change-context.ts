/** The author of what a request changes is its caller, who is known once admitted. */
import { Elysia } from "elysia";
import { withChangeContext } from "#core/configuration/store/change-context.ts";

/** What `wrap` passes on, which Elysia leaves untyped. */
type Handle = (...given: unknown[]) => Promise<Response> | Response;

export function changeContext() {
  return new Elysia({ name: "change-context" }).wrap((handle) => {
    return (...given: unknown[]) =>
      withChangeContext(() => (handle as unknown as Handle)(...given));
  });
}

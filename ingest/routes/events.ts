/** `POST /v1/events`: courier events in (document 2, "Endpoints"). */
import { Elysia } from "elysia";
import { SCHEMA_VERSIONS } from "#core/domain/courier-events/event.ts";
import { declared } from "#core/http/access.ts";
import type { Peer } from "#core/http/peer.ts";
import type { Runtime } from "#core/runtime.ts";
import { type AuthenticateDeps, authenticate, bearerOf } from "#ingest/authenticate.ts";
import { storingHandler, validatingHandler } from "#ingest/message-handlers.ts";
import { messageReceiver, type Received } from "#ingest/receive-message.ts";

/** @param findPeer the far end of a request */
export function eventRoutes(
  deps: Runtime & AuthenticateDeps,
  findPeer: (request: Request, server: Received["server"]) => Peer,
) {
  const receive = messageReceiver(deps, findPeer);
  const storing = storingHandler(deps);
  const validating = validatingHandler(deps);
  // These routes check the courier's token themselves: a message is read while its courier is authenticated.
  return new Elysia({ name: "events", detail: declared("courier") })
    .post("/v1/events", ({ request, server }) => receive({ request, server }, storing), {
      parse: "none",
    })
    .post(
      "/v1/events/validate",
      ({ request, server }) => receive({ request, server }, validating),
      {
        parse: "none",
      },
    )
    .get("/v1/ping", async ({ request, server }) => {
      const bearer = bearerOf(deps, request.headers.get("authorization"));
      const peer = () => findPeer(request, server);
      const { courier, rateHeaders } = await authenticate(deps, bearer, peer);
      const { code, environment } = courier;
      return Response.json(
        { courier: code, environment, schemaVersions: SCHEMA_VERSIONS },
        { headers: rateHeaders },
      );
    });
}

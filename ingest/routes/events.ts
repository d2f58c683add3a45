/** `POST /v1/events`: courier events in (document 2, "Endpoints"). */
import { Elysia } from "elysia";
import {
  checkEnvelope,
  type Envelope,
  SCHEMA_MAJORS,
  SCHEMA_VERSIONS,
} from "#core/domain/event.ts";
import { romeIso } from "#core/domain/rome-time.ts";
import { ambiguousEvents, eventsReceived } from "#core/metrics.ts";
import { Problem } from "#core/problem.ts";
import type { Courier } from "#core/redis/configuration.ts";
import { seenLayout } from "#core/redis/seen.ts";
import type { Runtime } from "#core/runtime.ts";
import { authenticate, type Caller } from "#ingest/authenticate.ts";
import { type Judgement, judge, type Outcome, validate } from "#ingest/judge.ts";
import { checkSignature, parseBody, readBody } from "#ingest/read-body.ts";

interface Received {
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
}

function peer(request: Request, server: Received["server"]): string {
  return server?.requestIP(request)?.address ?? "";
}

type Judge = (courier: Courier, envelope: Envelope, receivedAtMs: number) => Promise<Judgement[]>;

export function eventRoutes(deps: Runtime) {
  const { redis, live, config } = deps;

  async function layoutNow(nowMs: number) {
    return seenLayout(redis, nowMs, config.eventsPerDay);
  }

  const judgeMessage: Judge = async (courier, envelope, receivedAtMs) => {
    const judgements = await judge(
      {
        redis,
        configuration: live.configuration(),
        layout: await layoutNow(receivedAtMs),
        logHighWater: config.logHighWater,
        onAmbiguous: (count) => ambiguousEvents.inc({ courier: courier.code }, count),
      },
      courier,
      envelope.events,
      receivedAtMs,
    );
    const counts = countOutcomes(judgements);
    for (const outcome of OUTCOMES) {
      eventsReceived.inc({ courier: courier.code, outcome }, counts[outcome]);
    }
    return judgements;
  };

  const validateMessage: Judge = async (courier, { events }, receivedAtMs) =>
    validate({ redis, layout: await layoutNow(receivedAtMs) }, courier, events);

  async function answer({ request, server }: Received, judgeWith: Judge, mustAccept: boolean) {
    const caller = await authenticate(
      deps,
      request.headers.get("authorization"),
      peer(request, server),
    );
    try {
      if (mustAccept && !caller.courier.acceptingEvents) throw notAccepting();
      const envelope = await readEnvelope(deps, request, caller);
      const receivedAtMs = live.now();
      const judgements = await judgeWith(caller.courier, envelope, receivedAtMs);
      const body = JSON.stringify(report(envelope.messageId, receivedAtMs, judgements));
      const headers = { "content-type": "application/json", ...caller.rateHeaders };
      return new Response(body, { headers });
    } catch (error) {
      throw withHeaders(error, caller.rateHeaders);
    }
  }

  return new Elysia({ name: "events" })
    .post("/v1/events", (received) => answer(received, judgeMessage, true), { parse: "none" })
    .post("/v1/events/validate", (received) => answer(received, validateMessage, false), {
      parse: "none",
    })
    .get("/v1/ping", async ({ request, server }) => {
      const { courier, rateHeaders } = await authenticate(
        deps,
        request.headers.get("authorization"),
        peer(request, server),
      );
      const { code, environment } = courier;
      return Response.json(
        { courier: code, environment, schemaVersions: SCHEMA_VERSIONS },
        { headers: rateHeaders },
      );
    });
}

/** Rate headers stand on every response, also on errors. */
function withHeaders(error: unknown, headers: Readonly<Record<string, string>>): unknown {
  if (!(error instanceof Problem)) return error;
  const { status, code, detail, members } = error;
  return new Problem(status, code, detail, { members, headers: { ...headers, ...error.headers } });
}

/** @throws {Problem} 413, 415, 403 bad signature, 400 bad envelope, 403 other courier, in this order */
async function readEnvelope(
  { secrets, live }: Runtime,
  request: Request,
  { courier }: Caller,
): Promise<Envelope> {
  const body = await readBody(request);
  checkSignature(request, body, courier, secrets.vault, live.now());
  const envelope = parseBody(request, body);
  const errors = checkEnvelope(envelope);
  if (errors.length > 0) {
    throw new Problem(400, "INVALID_ENVELOPE", "The envelope is invalid.", { members: { errors } });
  }
  const message = envelope as Envelope;
  const major = message.schemaVersion.split(".")[0] ?? "";
  if (!(SCHEMA_MAJORS as readonly string[]).includes(major)) {
    const supported = SCHEMA_VERSIONS.join(", ");
    const detail = `schemaVersion ${message.schemaVersion} is not supported; supported: ${supported}.`;
    throw new Problem(400, "UNSUPPORTED_SCHEMA_VERSION", detail);
  }
  if (message.courier !== courier.code) {
    throw new Problem(403, "COURIER_MISMATCH", "The courier does not match the token.");
  }
  return message;
}

function notAccepting(): Problem {
  const detail = "This endpoint does not accept traffic for the courier yet.";
  return new Problem(404, "NOT_ACCEPTING", detail);
}

const OUTCOMES = ["ACCEPTED", "DUPLICATE", "UNKNOWN_TRACKING", "INVALID"] as const;

function countOutcomes(judgements: readonly Judgement[]): Record<Outcome, number> {
  const counts = { ACCEPTED: 0, DUPLICATE: 0, UNKNOWN_TRACKING: 0, INVALID: 0 };
  for (const { outcome } of judgements) counts[outcome] += 1;
  return counts;
}

/** Document 2, "Response to a processed message": the four counters always sum to the events sent. */
function report(messageId: string, receivedAtMs: number, results: readonly Judgement[]) {
  const counts = countOutcomes(results);
  return {
    messageId,
    receivedAt: romeIso(receivedAtMs),
    accepted: counts.ACCEPTED,
    duplicate: counts.DUPLICATE,
    unknownTracking: counts.UNKNOWN_TRACKING,
    invalid: counts.INVALID,
    results,
  };
}

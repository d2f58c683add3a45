/** `POST /v1/events`: courier events in (document 2, "Endpoints"). */
import { Elysia } from "elysia";
import {
  checkEnvelope,
  checkEscapedEnvelope,
  type Envelope,
  SCHEMA_VERSIONS,
  unsupportedVersion,
} from "#core/domain/courier-events/event.ts";
import { romeIso } from "#core/domain/time/rome-time.ts";
import { declared } from "#core/http/access.ts";
import { toProblem } from "#core/http/errors.ts";
import type { Peer } from "#core/http/peer.ts";
import {
  ambiguousEvents,
  eventsNotSetAside,
  eventsReceived,
  outcomesNotKept,
} from "#core/metrics.ts";
import { Problem } from "#core/problem.ts";
import type { Courier } from "#core/redis/config/configuration.ts";
import { countRefused, ruleOf } from "#core/redis/intake/courier-counts.ts";
import {
  type EventOutcome,
  type MessageOutcomes,
  outcomeKeeper,
} from "#core/redis/intake/event-outcomes.ts";
import { watchChangeLog } from "#core/redis/log/change-log-watch.ts";
import { seenLayout } from "#core/redis/log/seen.ts";
import type { Runtime } from "#core/runtime.ts";
import {
  type AuthenticateDeps,
  authenticate,
  bearerOf,
  type FindPeer,
  refusalOf,
  withHeaders,
} from "#ingest/authenticate.ts";
import {
  type Classified,
  classify,
  logFull,
  type Outcome,
  type UnmatchedKind,
  validate,
} from "#ingest/classify.ts";
import { type Message, type Prepared, prepare } from "#ingest/prepare.ts";
import { checkSignature, parseBody, readBody } from "#ingest/read-body.ts";
import { eventRule } from "#ingest/read-event-by-event.ts";

interface Received {
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
}

/** An envelope that has passed, and the rule for its events. */
interface ReadMessage {
  readonly envelope: Envelope;
  readonly message: Message;
}

interface Read<Ready> {
  readonly envelope: Envelope;
  readonly ready: Ready;
}

/** A message that is read for the courier its request is expected to come from. */
interface Begun<Ready> {
  readonly courier: Courier;
  readonly body: Promise<Uint8Array>;
  readonly work: Promise<Read<Ready>>;
}

/** What a route does with a message once it is read. */
interface Way<Ready> {
  /** Whether the courier must have been activated. */
  readonly mustAccept: boolean;
  /** Stores nothing: it may begin before the request is admitted. */
  readonly prepare: (courier: Courier, message: Message) => Ready | Promise<Ready>;
  readonly judge: (
    courier: Courier,
    ready: Ready,
    messageId: string,
    receivedAtMs: number,
  ) => Promise<Classified[]>;
}

/** @param findPeer the far end of a request */
export function eventRoutes(
  deps: Runtime & AuthenticateDeps,
  findPeer: (request: Request, server: Received["server"]) => Peer,
) {
  const { redis, live, config, log, intake } = deps;

  async function layoutNow(nowMs: number) {
    return seenLayout(redis, nowMs, config.eventsPerDay);
  }

  const changeLogIsFull = watchChangeLog(redis, config.logHighWater);
  const keeper = outcomeKeeper(redis);

  /** The answer does not wait for it: an operator may look it up, nothing depends on it. */
  function keepOutcomes(message: MessageOutcomes): void {
    if (message.outcomes.length === 0) return;
    const { courier, outcomes } = message;
    keeper(message).then(
      (lines) => outcomesNotKept.inc({ courier }, lines),
      () => outcomesNotKept.inc({ courier }, 2 * outcomes.length),
    );
  }

  const toStore: Way<Prepared> = {
    mustAccept: true,
    prepare: (courier, message) => prepare({ intake }, courier, message),
    async judge(courier, prepared, messageId, receivedAtMs) {
      if (await changeLogIsFull()) throw logFull();
      const unmatched = new Map<number, UnmatchedKind>();
      const results = await classify(
        {
          ...{ redis, intake, configuration: live.configuration(), messageId },
          onUnmatched: (messageIndex, why) => unmatched.set(messageIndex, why),
          layout: await layoutNow(receivedAtMs),
          onAmbiguous: (count) => ambiguousEvents.inc({ courier: courier.code }, count),
          onNotSetAside: (count) => eventsNotSetAside.inc({ courier: courier.code }, count),
        },
        courier,
        prepared,
        receivedAtMs,
      );
      const counts = countOutcomes(results);
      for (const outcome of OUTCOMES) {
        if (counts[outcome] > 0) {
          eventsReceived.inc({ courier: courier.code, outcome }, counts[outcome]);
        }
      }
      const refused = results.filter(({ outcome }) => REFUSED.has(outcome));
      await countRefused(redis, courier.code, refused, receivedAtMs);
      const { code } = courier;
      const message = { courier: code, messageId, receivedAtMs };
      const { ACCEPTED, DUPLICATE, UNKNOWN_TRACKING, INVALID } = counts;
      log.info(
        { courier: code, messageId, ACCEPTED, DUPLICATE, UNKNOWN_TRACKING, INVALID },
        "message processed",
      );
      keepOutcomes({ ...message, outcomes: outcomesOf(results, unmatched) });
      return results;
    },
  };

  const toValidate: Way<Message> = {
    mustAccept: false,
    prepare: (_, message) => message,
    judge: async (courier, message, _, receivedAtMs) =>
      validate({ redis, layout: await layoutNow(receivedAtMs) }, courier, message),
  };

  /** Couriers whose last request was refused: the next one is not begun before it is admitted. */
  const refused = new Set<string>();

  async function answer<Ready>({ request, server }: Received, way: Way<Ready>) {
    const peer = () => findPeer(request, server);
    const bearer = bearerOf(deps, request.headers.get("authorization"));
    const expected = bearer.courierIn(live.configuration());
    const admission = authenticate(deps, bearer, peer);
    const begun =
      expected && !refused.has(expected.code) && mayBegin(expected, peer, way)
        ? begin({ request, server }, expected, way)
        : null;
    const caller = await admission.catch((error) => {
      if (expected) refused.add(expected.code);
      throw error;
    });
    const { courier, rateHeaders } = caller;
    refused.delete(courier.code);
    try {
      if (way.mustAccept && !courier.acceptingEvents) throw notAccepting();
      const isExpected = begun?.courier === courier;
      const { envelope, ready } = await (isExpected
        ? begun.work
        : read(request, begun?.body ?? readBodyOf({ request, server }), courier, way));
      const receivedAtMs = live.now();
      const results = await way.judge(courier, ready, envelope.messageId, receivedAtMs);
      const body = JSON.stringify(report(envelope.messageId, receivedAtMs, results));
      const headers = { "content-type": "application/json", ...rateHeaders };
      return new Response(body, { headers });
    } catch (error) {
      throw withHeaders(toProblem(error, redis, log), rateHeaders);
    }
  }

  /** Reads a message while its request is being admitted: what comes of it, a problem too, counts only after that. */
  function begin<Ready>(received: Received, courier: Courier, way: Way<Ready>): Begun<Ready> {
    const { request } = received;
    const body = readBodyOf(received);
    const work = live.followTestClock().then(() => read(request, body, courier, way));
    for (const unheard of [body, work]) unheard.catch(() => {});
    return { courier, body, work };
  }

  /** @throws {Problem} 413, 415, 403 bad signature, 400 bad envelope, 403 other courier, in this order */
  async function read<Ready>(
    request: Request,
    body: Promise<Uint8Array>,
    courier: Courier,
    way: Way<Ready>,
  ): Promise<Read<Ready>> {
    const { envelope, message } = await readMessage(deps, request, await body, courier);
    return { envelope, ready: await way.prepare(courier, message) };
  }

  // These routes check the courier's token themselves: a message is read while its courier is authenticated.
  return new Elysia({ name: "events", detail: declared("courier") })
    .post("/v1/events", ({ request, server }) => answer({ request, server }, toStore), {
      parse: "none",
    })
    .post("/v1/events/validate", ({ request, server }) => answer({ request, server }, toValidate), {
      parse: "none",
    })
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

function readBodyOf({ request, server }: Received): Promise<Uint8Array> {
  return readBody(request, (seconds) => server?.timeout(request, seconds));
}

/** Whether nothing but its rate refuses a courier yet. */
function mayBegin<Ready>(courier: Courier, peer: FindPeer, { mustAccept }: Way<Ready>): boolean {
  return (courier.acceptingEvents || !mustAccept) && refusalOf(courier, peer) === null;
}

/** @throws {Problem} 403 bad signature, 400 bad envelope, 403 other courier, in this order */
async function readMessage(
  { secrets, live }: Runtime,
  request: Request,
  body: Uint8Array,
  courier: Courier,
): Promise<ReadMessage> {
  checkSignature(request, body, courier, secrets.vault, live.now());
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

function notAccepting(): Problem {
  const detail = "This endpoint does not accept traffic for the courier yet.";
  return new Problem(404, "NOT_ACCEPTING", detail);
}

const OUTCOMES = ["ACCEPTED", "DUPLICATE", "UNKNOWN_TRACKING", "INVALID"] as const;
const REFUSED: ReadonlySet<Outcome> = new Set(["UNKNOWN_TRACKING", "INVALID"]);

function countOutcomes(results: readonly Classified[]): Record<Outcome, number> {
  const counts = { ACCEPTED: 0, DUPLICATE: 0, UNKNOWN_TRACKING: 0, INVALID: 0 };
  for (const { outcome } of results) counts[outcome] += 1;
  return counts;
}

/** What is kept of those that were not ACCEPTED: identifiers and reasons. */
function outcomesOf(
  results: readonly Classified[],
  unmatched: ReadonlyMap<number, UnmatchedKind>,
): EventOutcome[] {
  return results.flatMap(({ eventId, outcome, errors = [] }, messageIndex): EventOutcome[] => {
    if (outcome === "ACCEPTED") return [];
    const why =
      outcome === "UNKNOWN_TRACKING" ? REASONS[unmatched.get(messageIndex) ?? "none"] : [];
    const reasons = outcome === "INVALID" ? errors.map(ruleOf) : why;
    return [{ eventId, messageIndex, outcome, reasons }];
  });
}

const REASONS: Readonly<Record<UnmatchedKind, readonly string[]>> = {
  none: ["not_tracked"],
  mismatch: ["mismatch"],
  ambiguous: ["ambiguous"],
};

/** Document 2, "Response to a processed message": the four counters always sum to the events sent. */
function report(messageId: string, receivedAtMs: number, results: readonly Classified[]) {
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

/**
 * Takes a message in, in this order: the request is admitted (credentials, rate, activation), the message is read and
 * prepared, its events are classified, the results are answered.
 *
 * Reading and preparing store nothing. If the token names its courier already, and nothing but the rate could still refuse
 * that courier, they start while Redis admits the request; what comes of them, a problem too, counts only after that.
 */

import type { Courier } from "#core/configuration/store/configuration.ts";
import { checkTime } from "#core/events/rules/check-time.ts";
import type { CourierEvent, Envelope } from "#core/events/rules/event.ts";
import { Problem } from "#core/platform/errors/problem.ts";
import { toProblem } from "#core/platform/http/errors.ts";
import type { Peer } from "#core/platform/http/peer.ts";
import { noteRequester } from "#core/platform/http/refused-requests.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import {
  type AuthenticateDeps,
  authenticate,
  bearerOf,
  type FindPeer,
  refusalOf,
  withHeaders,
} from "#ingest/authenticate.ts";
import type { Classified } from "./classify.ts";
import { messageReport } from "./message-report.ts";
import type { Message } from "./prepare.ts";
import { readMessageBody } from "./read-body.ts";
import { readMessage } from "./read-message.ts";

export interface Received {
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
}

/** What an endpoint does with a message. */
export interface MessageHandler<Prepared> {
  /** Whether the courier must have been activated. */
  readonly requiresActivation: boolean;
  /** Stores nothing: it may run before the request is admitted. */
  readonly prepare: (courier: Courier, message: Message) => Prepared | Promise<Prepared>;
  readonly classify: (
    courier: Courier,
    prepared: Prepared,
    messageId: string,
    receivedAtMs: number,
  ) => Promise<Classified[]>;
}

interface Read<Prepared> {
  readonly envelope: Envelope;
  readonly prepared: Prepared;
}

/** A message that is being read for the courier whose token the request carries. */
interface EarlyReading<Prepared> {
  readonly courier: Courier;
  readonly body: Promise<Uint8Array>;
  readonly read: Promise<Read<Prepared>>;
}

interface Receiving extends Runtime, AuthenticateDeps {
  /** The far end of a request. */
  readonly findPeer: (request: Request, server: Received["server"]) => Peer;
  /** Couriers whose last request was refused: the next one is not read before it is admitted. */
  readonly refused: Set<string>;
}

/** @param findPeer the far end of a request */
export function messageReceiver(deps: Runtime & AuthenticateDeps, findPeer: Receiving["findPeer"]) {
  const receiving: Receiving = { ...deps, findPeer, refused: new Set() };
  return <Prepared>(received: Received, handler: MessageHandler<Prepared>) =>
    receive(receiving, received, handler);
}

async function receive<Prepared>(
  deps: Receiving,
  received: Received,
  handler: MessageHandler<Prepared>,
): Promise<Response> {
  const { redis, live, log, findPeer, refused } = deps;
  const { request, server } = received;
  const peer = () => findPeer(request, server);
  const bearer = await bearerOf(deps, request.headers.get("authorization"));
  const expected = bearer.courierIn(live.configuration());
  if (expected) noteRequester(request, { tenant: `courier ${expected.code}`, key: null });
  const admission = authenticate(deps, bearer, peer);
  const early =
    expected && !refused.has(expected.code) && mayReadEarly(expected, peer, handler)
      ? startReading(deps, received, expected, handler)
      : null;
  const { courier, rateHeaders } = await admission.catch((error) => {
    if (expected) refused.add(expected.code);
    throw error;
  });
  refused.delete(courier.code);
  try {
    if (handler.requiresActivation && !courier.acceptingEvents) throw notAccepting();
    // The courier may be another one since, or have another configuration: then only the bytes can be used.
    const { envelope, prepared } = await (early?.courier === courier
      ? early.read
      : read(deps, request, early?.body ?? readBodyOf(received), courier, handler));
    const receivedAtMs = live.now();
    const { messageId } = envelope;
    const results = await handler.classify(courier, prepared, messageId, receivedAtMs);
    const body = JSON.stringify(messageReport(messageId, receivedAtMs, results));
    const headers = { "content-type": "application/json", ...rateHeaders };
    return new Response(body, { headers });
  } catch (error) {
    throw withHeaders(toProblem(error, redis, log), rateHeaders);
  }
}

function startReading<Prepared>(
  deps: Receiving,
  received: Received,
  courier: Courier,
  handler: MessageHandler<Prepared>,
): EarlyReading<Prepared> {
  const body = readBodyOf(received);
  const early = deps.live
    .followTestClock()
    .then(() => read(deps, received.request, body, courier, handler));
  for (const unheard of [body, early]) unheard.catch(() => {});
  return { courier, body, read: early };
}

/** @throws {Problem} 413, 415, 403 bad signature, 400 bad envelope, 403 other courier, in this order */
async function read<Prepared>(
  deps: Receiving,
  request: Request,
  body: Promise<Uint8Array>,
  courier: Courier,
  handler: MessageHandler<Prepared>,
): Promise<Read<Prepared>> {
  const { envelope, message } = await readMessage(deps, request, await body, courier);
  const receivedAtMs = deps.live.now();
  const check: Message["check"] = (event) => {
    const faults = message.check(event);
    return faults.length > 0 ? faults : checkTime(event as CourierEvent, receivedAtMs);
  };
  return { envelope, prepared: await handler.prepare(courier, { ...message, check }) };
}

/** Whether nothing but its rate may still refuse a courier. */
function mayReadEarly<Prepared>(
  courier: Courier,
  peer: FindPeer,
  { requiresActivation }: MessageHandler<Prepared>,
): boolean {
  return (courier.acceptingEvents || !requiresActivation) && refusalOf(courier, peer) === null;
}

function readBodyOf({ request, server }: Received): Promise<Uint8Array> {
  return readMessageBody(request, (seconds) => server?.timeout(request, seconds));
}

function notAccepting(): Problem {
  const detail = "This endpoint does not accept traffic for the courier yet.";
  return new Problem(404, "NOT_ACCEPTING", detail);
}

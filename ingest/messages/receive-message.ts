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
import type { RateVerdict } from "#core/events/store/courier-rate.ts";
import { noteFirstSigned } from "#core/events/store/first-signed.ts";
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
  headersOf,
  type RateHeaders,
  refusalOf,
  tooManyRequests,
  withHeaders,
} from "#ingest/authenticate.ts";
import type { Classified } from "./classify.ts";
import { messageReport } from "./message-report.ts";
import type { Message } from "./prepare.ts";
import { readMessageBody, SIGNATURE_HEADER } from "./read-body.ts";
import { readMessage } from "./read-message.ts";

export interface Received {
  readonly request: Request;
  readonly server: Bun.Server<unknown> | null;
}

/** What an endpoint does with a message. */
export interface MessageHandler<Prepared> {
  /** Whether the courier must have been activated. */
  readonly requiresActivation: boolean;
  /**
   * Stores nothing: it may run before the request is admitted.
   * @param isTakenAtOnce whether `take` is tried next, before anything is asked of the store
   */
  readonly prepare: (
    courier: Courier,
    message: Message,
    isTakenAtOnce: boolean,
  ) => Prepared | Promise<Prepared>;
  /**
   * Admits the request and stores the message in one step, where that can be done. Absent = it cannot.
   * @returns null where nothing was done
   */
  readonly take?: (
    courier: Courier,
    prepared: Prepared,
    message: TakeTerms,
  ) => Promise<Taken | null>;
  readonly classify: (
    courier: Courier,
    prepared: Prepared,
    messageId: string,
    receivedAtMs: number,
  ) => Promise<Classified[]>;
}

export interface TakeTerms {
  readonly messageId: string;
  readonly receivedAtMs: number;
  /** Of the configuration that names the courier. */
  readonly version: number;
}

export interface Taken {
  readonly rate: RateVerdict;
  /** Where the rate let it through. */
  readonly judge: () => Promise<Classified[]>;
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
  /** Couriers of which this process knows that an event in a signed message was accepted. */
  readonly signed: Set<string>;
  /** Messages that are being received. */
  underWay: number;
}

/** A larger message is read for longer, and holds more than one event. */
const AT_ONCE_BYTES = 16_384;

/** @param findPeer the far end of a request */
export function messageReceiver(deps: Runtime & AuthenticateDeps, findPeer: Receiving["findPeer"]) {
  const sets = { refused: new Set<string>(), signed: new Set<string>() };
  const receiving: Receiving = { ...deps, ...sets, findPeer, underWay: 0 };
  return async <Prepared>(received: Received, handler: MessageHandler<Prepared>) => {
    receiving.underWay += 1;
    try {
      return await receive(receiving, received, handler);
    } finally {
      receiving.underWay -= 1;
    }
  };
}

async function receive<Prepared>(
  deps: Receiving,
  received: Received,
  handler: MessageHandler<Prepared>,
): Promise<Response> {
  const { live, findPeer, refused } = deps;
  const { request, server } = received;
  const peer = () => findPeer(request, server);
  const bearer = await bearerOf(deps, request.headers.get("authorization"));
  const configuration = live.configuration();
  const expected = bearer.courierIn(configuration);
  if (expected) noteRequester(request, { tenant: `courier ${expected.code}`, key: null });
  const known =
    expected && !refused.has(expected.code) && mayReadEarly(expected, peer, handler)
      ? expected
      : null;
  const isTakenAtOnce = known !== null && mayTake(deps, request, handler);
  const early = known ? startReading(deps, received, known, handler, isTakenAtOnce) : null;
  const taken =
    early && isTakenAtOnce
      ? await take(deps, request, early, configuration.version, handler)
      : null;
  if (taken) return taken;
  const { courier, rateHeaders } = await authenticate(deps, bearer, peer).catch((error) => {
    if (expected) refused.add(expected.code);
    throw error;
  });
  refused.delete(courier.code);
  return answer(deps, rateHeaders, async () => {
    if (handler.requiresActivation && !courier.acceptingEvents) throw notAccepting();
    // The courier may be another one since, or have another configuration: then only the bytes can be used.
    const { envelope, prepared } = await (early?.courier === courier
      ? early.read
      : read(deps, request, early?.body ?? readBodyOf(received), courier, handler, false));
    const receivedAtMs = live.now();
    const { messageId } = envelope;
    const results = await handler.classify(courier, prepared, messageId, receivedAtMs);
    if (handler.requiresActivation) noteSigned(deps, request, courier, results);
    return { messageId, receivedAtMs, results };
  });
}

interface Judged {
  readonly messageId: string;
  readonly receivedAtMs: number;
  readonly results: readonly Classified[];
}

async function answer(
  { redis, log }: Receiving,
  rateHeaders: RateHeaders,
  judge: () => Promise<Judged>,
): Promise<Response> {
  try {
    const { messageId, receivedAtMs, results } = await judge();
    const body = JSON.stringify(messageReport(messageId, receivedAtMs, results));
    const headers = { "content-type": "application/json", ...rateHeaders };
    return new Response(body, { headers });
  } catch (error) {
    throw withHeaders(toProblem(error, redis, log), rateHeaders);
  }
}

/** Once a courier and process, beside the answer. A signature that is there and wrong has been refused before. */
function noteSigned(
  { redis, live, signed }: Receiving,
  request: Request,
  { code }: Courier,
  results: readonly Classified[],
): void {
  if (signed.has(code) || !request.headers.has(SIGNATURE_HEADER)) return;
  if (!results.some(({ outcome }) => outcome === "ACCEPTED")) return;
  signed.add(code);
  // It is noted with the next one where it could not be.
  void noteFirstSigned(redis, code, live.now()).catch(() => signed.delete(code));
}

/**
 * Whether a message is tried to be taken in one step. Those that come together share their steps instead, which costs the store less.
 */
function mayTake<Prepared>(
  { underWay }: Receiving,
  request: Request,
  handler: MessageHandler<Prepared>,
): boolean {
  const bytes = Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
  return handler.take !== undefined && underWay === 1 && bytes <= AT_ONCE_BYTES;
}

/** @returns null where nothing was done: the message is admitted and classified, and its problem told, as any other */
async function take<Prepared>(
  deps: Receiving,
  request: Request,
  { courier, read }: EarlyReading<Prepared>,
  version: number,
  handler: MessageHandler<Prepared>,
): Promise<Response | null> {
  const { redis, live, log, refused } = deps;
  const message = await read.catch(() => null);
  if (message === null) return null;
  const { messageId } = message.envelope;
  const receivedAtMs = live.now();
  const taking = handler.take?.(courier, message.prepared, { version, messageId, receivedAtMs });
  const taken = await taking?.catch((error) => {
    // The store that counts is unavailable: nothing remains for now.
    const unknown = headersOf({ limit: courier.burst, remaining: 0 });
    throw withHeaders(toProblem(error, redis, log), unknown);
  });
  if (!taken) return null;
  const { rate, judge } = taken;
  const rateHeaders = headersOf(rate);
  if (!rate.allowed) {
    refused.add(courier.code);
    throw withHeaders(tooManyRequests(rate), rateHeaders);
  }
  return answer(deps, rateHeaders, async () => {
    const results = await judge();
    noteSigned(deps, request, courier, results);
    return { messageId, receivedAtMs, results };
  });
}

function startReading<Prepared>(
  deps: Receiving,
  received: Received,
  courier: Courier,
  handler: MessageHandler<Prepared>,
  isTakenAtOnce: boolean,
): EarlyReading<Prepared> {
  const body = readBodyOf(received);
  const early = deps.live
    .followTestClock()
    .then(() => read(deps, received.request, body, courier, handler, isTakenAtOnce));
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
  isTakenAtOnce: boolean,
): Promise<Read<Prepared>> {
  const { envelope, message } = await readMessage(deps, request, await body, courier);
  const receivedAtMs = deps.live.now();
  const check: Message["check"] = (event) => {
    const faults = message.check(event);
    return faults.length > 0 ? faults : checkTime(event as CourierEvent, receivedAtMs);
  };
  const prepared = await handler.prepare(courier, { ...message, check }, isTakenAtOnce);
  return { envelope, prepared };
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

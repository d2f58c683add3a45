/** Follows the delivery log of an endpoint and forwards each event to a receiver on this machine. */
import { type Endpoint, type Logged, type Panel, PanelError, type SignedRequest } from "./panel.ts";
import { pause } from "./pause.ts";
import { SignatureError, verifyWebhook, type WebhookEvent } from "./webhooks.ts";

export interface ListenOptions {
  readonly forward: string;
  /** Either may be left out where one endpoint alone is left. */
  readonly endpoint: { readonly id: string | undefined; readonly channel: string | undefined };
  /** Undefined: signatures are passed on without a look. */
  readonly secret: string | undefined;
  readonly sinceMs: number;
  readonly print: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface Listening {
  /** Sends an event again. @param number printed with it */
  readonly resend: (number: number) => Promise<void>;
  /** Resolves when the signal aborts. Rejects once the endpoint is gone, or is no longer the caller's. */
  readonly ended: Promise<void>;
}

const POLL_MS = 1_000;
/** Deliveries may appear in the log a little later than others that were created after them. */
const OVERLAP_MS = 5_000;
const ANSWER_LIMIT_MS = 10_000;
/** Events that a key can send again. */
const NUMBERS = 9;

export async function listen(panel: Panel, options: ListenOptions): Promise<Listening> {
  const { print, forward, signal } = options;
  const { endpointId, channel, status, disabledReason } = await endpointOf(panel, options.endpoint);
  const numbered: string[] = [];
  let count = 0;
  print(`listening to ${endpointId} of ${channel}, forwarding to ${forward}`);
  if (status === "disabled") {
    print(`the endpoint is disabled (${disabledReason}): no event reaches it until it is enabled`);
  }

  /** Under way: listening ends after them. */
  const resending = new Set<Promise<void>>();
  async function resend(number: number): Promise<void> {
    const deliveryId = numbered[number];
    if (deliveryId === undefined) return print(`[${number}] there is no such event`);
    const sent = requestOf(deliveryId)
      .then((request) => forwardOne(options, number, request))
      .catch(({ message }: Error) => print(message));
    resending.add(sent);
    await sent;
    resending.delete(sent);
  }

  async function requestOf(deliveryId: string): Promise<SignedRequest> {
    return panel.signedRequest(deliveryId).catch((error: Error) => {
      if (error instanceof PanelError && error.passes) throw error;
      throw new Error(`${deliveryId} was not forwarded: ${error.message}`);
    });
  }

  /** @throws {PanelError} if the panel cannot say now what is sent: the event is shown later */
  async function show({ deliveryId }: Logged): Promise<void> {
    const request = await requestOf(deliveryId).catch((error: Error) => {
      if (error instanceof PanelError) throw error;
      report(error);
    });
    if (!request) return;
    const number = (count++ % NUMBERS) + 1;
    numbered[number] = deliveryId;
    await forwardOne(options, number, request);
  }

  let lastTold = "";
  /** Reports an outage once. */
  function report({ message }: Error): void {
    if (message !== lastTold && !signal.aborted) print(message);
    lastTold = message;
  }

  let fromMs = options.sinceMs;
  let seen = new Set<string>();
  let last: string | null = null;

  async function look(): Promise<void> {
    const found = await panel.deliveriesSince(endpointId, new Date(fromMs).toISOString());
    for (const one of found.filter(({ deliveryId }) => !seen.has(deliveryId))) {
      if (signal.aborted) return;
      await show(one);
      seen.add(one.deliveryId);
      last = one.createdAt;
    }
    lastTold = "";
    const newest = found.at(-1);
    if (!newest) return;
    seen = new Set(found.map(({ deliveryId }) => deliveryId));
    fromMs = Math.max(fromMs, Date.parse(newest.createdAt) - OVERLAP_MS);
  }

  async function follow(): Promise<void> {
    while (!signal.aborted) {
      await look().catch((error: Error) => {
        if (!(error instanceof PanelError && error.passes)) throw error;
        report(new Error(`the control panel: ${error.message}`));
      });
      await pause(POLL_MS, signal).catch(() => {});
    }
    await Promise.allSettled(resending);
    if (last !== null) print(`the last one again, and what comes after it: --since ${last}`);
  }

  return { resend, ended: follow() };
}

/** @throws {Error} which lists the endpoints there are */
async function endpointOf(
  panel: Panel,
  { id, channel }: ListenOptions["endpoint"],
): Promise<Endpoint> {
  const all = await panel.endpoints(channel);
  const [first, ...others] = all.filter(({ endpointId }) => id === undefined || endpointId === id);
  if (first && others.length === 0) return first;
  if (all.length === 0)
    throw new Error("There is no endpoint yet: create one in the control panel.");
  const known = all.map((one) => `  ${one.endpointId}  ${one.channel}  ${one.url}`).join("\n");
  throw new Error(`Choose one of these endpoints by --endpoint:\n${known}`);
}

async function forwardOne(
  { forward, secret, print, signal }: ListenOptions,
  number: number,
  { headers, body }: SignedRequest,
): Promise<void> {
  const event: WebhookEvent = JSON.parse(body);
  try {
    const signature = headers["X-Service-Signature"];
    if (secret !== undefined) await verifyWebhook({ body, signature, secret });
  } catch (error) {
    const advice = error instanceof SignatureError ? " Is --secret the endpoint's?" : "";
    print(`[${number}] ${event.id} was not forwarded: ${(error as Error).message}${advice}`);
    return;
  }
  const { trackingNumber, status } = event.data.shipment;
  const answer = await answerOf(forward, headers, body, signal);
  print(`[${number}] ${event.id} ${trackingNumber} ${status} -> ${answer}`);
}

async function answerOf(
  forward: string,
  headers: Readonly<Record<string, string>>,
  body: string,
  ended: AbortSignal,
): Promise<string> {
  const fromMs = performance.now();
  try {
    const signal = AbortSignal.any([ended, AbortSignal.timeout(ANSWER_LIMIT_MS)]);
    const sent = { method: "POST", headers, body, redirect: "manual", signal } as const;
    const response = await fetch(forward, sent);
    await response.body?.cancel();
    return `${response.status} in ${Math.round(performance.now() - fromMs)} ms`;
  } catch (error) {
    return (error as Error).message;
  }
}

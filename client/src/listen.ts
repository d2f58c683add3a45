/** Follows the delivery log of an endpoint and forwards each event to a receiver on this machine. */
import type { Endpoint, Logged, Panel } from "./panel.ts";
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
  /** Resolves when the signal aborts. */
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
  const { endpointId, channel } = await endpointOf(panel, options.endpoint);
  const numbered: string[] = [];
  let count = 0;
  print(`listening to ${endpointId} of ${channel}, forwarding to ${forward}`);

  async function resend(number: number): Promise<void> {
    const deliveryId = numbered[number];
    if (deliveryId === undefined) print(`[${number}] there is no such event`);
    else await forwardOne(panel, options, number, deliveryId);
  }

  async function show({ deliveryId }: Logged): Promise<void> {
    const number = (count++ % NUMBERS) + 1;
    numbered[number] = deliveryId;
    await forwardOne(panel, options, number, deliveryId);
  }

  async function follow(): Promise<void> {
    let fromMs = options.sinceMs;
    let seen = new Set<string>();
    while (!signal.aborted) {
      const from = new Date(fromMs).toISOString();
      const found = await panel.deliveriesSince(endpointId, from).catch((error: Error) => {
        print(`the control panel: ${error.message}`);
        return [];
      });
      for (const one of found.filter(({ deliveryId }) => !seen.has(deliveryId))) await show(one);
      const last = found.at(-1);
      if (last) {
        seen = new Set(found.map(({ deliveryId }) => deliveryId));
        fromMs = Math.max(fromMs, Date.parse(last.createdAt) - OVERLAP_MS);
      }
      await pause(POLL_MS, signal).catch(() => {});
    }
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
  const known = all.map((one) => `  ${one.endpointId}  ${one.channel}  ${one.url}`).join("\n");
  throw new Error(`Choose one of these endpoints by --endpoint:\n${known}`);
}

async function forwardOne(
  panel: Panel,
  { forward, secret, print }: ListenOptions,
  number: number,
  deliveryId: string,
): Promise<void> {
  try {
    const { headers, body } = await panel.signedRequest(deliveryId);
    const signature = headers["X-Service-Signature"];
    if (secret !== undefined) await verifyWebhook({ body, signature, secret });
    const event: WebhookEvent = JSON.parse(body);
    const { trackingNumber, status } = event.data.shipment;
    const answer = await answerOf(forward, headers, body);
    print(`[${number}] ${event.id} ${trackingNumber} ${status} -> ${answer}`);
  } catch (error) {
    const { message } = error as Error;
    const advice = error instanceof SignatureError ? " Is --secret the endpoint's?" : "";
    print(`[${number}] ${deliveryId} was not forwarded: ${message}${advice}`);
  }
}

async function answerOf(
  forward: string,
  headers: Readonly<Record<string, string>>,
  body: string,
): Promise<string> {
  const fromMs = performance.now();
  try {
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const sent = { method: "POST", headers, body, redirect: "manual", signal } as const;
    const response = await fetch(forward, sent);
    await response.body?.cancel();
    return `${response.status} in ${Math.round(performance.now() - fromMs)} ms`;
  } catch (error) {
    return (error as Error).message;
  }
}

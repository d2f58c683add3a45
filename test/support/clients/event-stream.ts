/** A courier that sends without pause and retries for ever, and the account of what it was answered. */
import { expect } from "bun:test";
import type { CourierEvent } from "#core/events/rules/event.ts";
import { eventually, within } from "#test/support/eventually.ts";
import { IS_MEASURED } from "#test/support/measured.ts";
import { event, type PushResult, push } from "./courier.ts";
import { shipmentItem, signIn } from "./merchant.ts";

const EVENTS_PER_MESSAGE = 10;
const SENDERS = 4;
/** 600 events a second in all in a measured run, else 240: something is under way at every kill, and most of the CPU is the product's. */
const PACE_MS = IS_MEASURED ? 60 : 150;
const SHIPMENTS_PER_CALL = 100;
const RETRY_WAIT_MS = 50;
/** Whatever is away, the product says so sooner. */
const ANSWER_LIMIT_MS = 45_000;
const STOP_LIMIT_MS = 60_000;
/** Codes of the test setup. */
const CODES = ["TRN", "OUT", "HLD", "DEP"];
/** Steps through a million seconds in an order of its own, then through their next milliseconds: no two events have one. */
const STEP = 7_919;
const SECONDS = 1_000_000;
const FIRST_MS = Date.parse("2026-11-01T00:00:00Z");

export interface EventStream {
  /** Events that were answered ACCEPTED, or DUPLICATE after an answer that never arrived, by eventId. */
  readonly accepted: ReadonlyMap<string, CourierEvent>;
  /** Messages that each ingest process has answered. */
  readonly answered: ReadonlyMap<string, number>;
  /** URLs that a message had no answer from, nor an end of its connection, within 45 s. */
  readonly unanswered: readonly string[];
  /**
   * Waits until a further event is accepted, or more than so many further ones.
   * @throws after a minute, with the last refusal and the state of the product
   */
  readonly grows: (what: string, moreThan?: number) => Promise<void>;
  /** Ends after the messages under way have been answered. */
  readonly stop: () => Promise<void>;
}

/** @returns ids of shipments `<prefix>-0`, `<prefix>-1`, … of the key's channel */
export async function createShipments(
  { api }: { readonly api: string },
  prefix: string,
  count: number,
  key = "key_acme_main",
): Promise<number[]> {
  const merchant = await signIn(api, key);
  const all = Array.from({ length: count }, (_, n) => shipmentItem(`${prefix}-${n}`));
  const ids: number[] = [];
  for (let from = 0; from < count; from += SHIPMENTS_PER_CALL) {
    const shipments = all.slice(from, from + SHIPMENTS_PER_CALL);
    const { status, body } = await merchant.call("POST", "/v2/shipments", { shipments });
    expect(status).toBe(201);
    ids.push(...body.items.map(({ id }: { id: number }) => id));
  }
  return ids;
}

/** Where there are two processes, each takes from half of the senders, and what the other one did not answer. */
interface Ingest {
  readonly ingest: string;
  readonly otherIngest?: string;
  readonly state?: () => Promise<string>;
}

export interface StreamOptions {
  /** Each sender waits this long after a message. */
  readonly paceMs?: number;
  /** Told of every answer, those that are tried again too. */
  readonly onAnswer?: (answer: PushResult) => void;
  readonly senders?: number;
  /** Events that another stream of the same shipments has sent: no two happen at the same time. */
  readonly sentBefore?: number;
}

/** Several senders of document 2 that push events of the shipments `<prefix>-n`. */
export function startEventStream(
  product: Ingest,
  prefix: string,
  shipments: number,
  {
    paceMs = PACE_MS,
    onAnswer = () => {},
    senders: senderCount = SENDERS,
    sentBefore = 0,
  }: StreamOptions = {},
): EventStream {
  const accepted = new Map<string, CourierEvent>();
  const answered = new Map<string, number>();
  const unanswered: string[] = [];
  let refusal: PushResult | null = null;
  let over = false;
  let sent = sentBefore;

  async function sendUntilOver(sender: number): Promise<void> {
    for (let message = 0; !over; message += 1) {
      const events = Array.from({ length: EVENTS_PER_MESSAGE }, (_, n) => {
        sent += 1;
        return numbered(
          `${prefix}-${(message * EVENTS_PER_MESSAGE + n * 3 + sender) % shipments}`,
          sent,
        );
      });
      const listeners = {
        onAnswer(answer: PushResult) {
          if (answer.status !== 200) refusal = answer;
          onAnswer(answer);
        },
        onSilence: (url: string) => void unanswered.push(url),
      };
      const { url, results } = await sendUntilAnswered(product, events, sender, listeners);
      answered.set(url, (answered.get(url) ?? 0) + 1);
      results.forEach(({ outcome }, at) => {
        expect(["ACCEPTED", "DUPLICATE"]).toContain(outcome);
        const one = events[at];
        if (one) accepted.set(one.eventId, one);
      });
      await Bun.sleep(paceMs);
    }
  }

  const senders = Array.from({ length: senderCount }, (_, sender) => sendUntilOver(sender));
  return {
    accepted,
    answered,
    unanswered,
    async grows(what, moreThan = 0) {
      const before = accepted.size;
      const failure = async () => {
        const state = (await product.state?.()) ?? "";
        return `${what}; silent: ${unanswered}; last refusal: ${JSON.stringify(refusal)}\n${state}`;
      };
      await eventually(() => accepted.size > before + moreThan, failure);
    },
    async stop() {
      over = true;
      await within(Promise.all(senders), "the last messages are accepted", STOP_LIMIT_MS);
    },
  };
}

/** The text of the status carries the eventId, so that the merchant's history tells which events arrived. */
export function numbered(trackingNumber: string, sent: number): CourierEvent {
  const second = (sent * STEP) % SECONDS;
  const round = Math.floor(sent / SECONDS);
  const occurredAt = new Date(FIRST_MS + second * 1_000 + round).toISOString();
  const one = event({ trackingNumber, occurredAt, location: { name: `Hub ${second % 97}` } });
  return {
    ...one,
    status: { code: CODES[second % CODES.length] ?? "TRN", description: one.eventId },
  };
}

interface Listeners {
  readonly onAnswer: (answer: PushResult) => void;
  readonly onSilence: (url: string) => void;
}

async function sendUntilAnswered(
  { ingest, otherIngest = ingest }: Ingest,
  events: readonly CourierEvent[],
  sender: number,
  { onAnswer, onSilence }: Listeners,
): Promise<{ url: string; results: Array<{ outcome: string }> }> {
  for (let tries = sender; ; tries += 1) {
    const url = tries % 2 === 0 ? ingest : otherIngest;
    const signal = AbortSignal.timeout(ANSWER_LIMIT_MS);
    const answer = await push(url, events, { signal }).catch(() => null);
    if (answer === null && signal.aborted) onSilence(url);
    if (answer) onAnswer(answer);
    if (answer?.status === 200) return { url, results: answer.body.results };
    await Bun.sleep(RETRY_WAIT_MS);
  }
}

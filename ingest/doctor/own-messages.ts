/** A sender's own messages, checked here by the published schemas and, where there is a service, by it too. */
import { gunzipSync } from "node:zlib";
import { checkTime } from "#core/events/rules/check-time.ts";
import {
  BODY_LIMIT_BYTES,
  type CourierEvent,
  checkEnvelope,
  checkEscapedEnvelope,
  type Envelope,
  unsupportedVersion,
} from "#core/events/rules/event.ts";
import { JsonFault } from "#core/platform/http/body/strict-json.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { instantOf } from "#core/platform/time/rome-time.ts";
import type { Finding } from "#ingest/doctor/examine.ts";
import { describe } from "#ingest/doctor/expect.ts";
import { silent } from "#ingest/doctor/first-cause.ts";
import type { Sender } from "#ingest/doctor/sender.ts";
import { eventRule, parseMessage } from "#ingest/messages/read-event-by-event.ts";

const OWN_MESSAGES = "Your messages";

export interface OwnMessage {
  /** File, and the line where a file has one message a line. */
  readonly name: string;
  /** As transmitted. */
  readonly bytes: Uint8Array;
  readonly gzip: boolean;
}

/** Of a message as a whole, or of its events. */
type Verdict =
  | { readonly kind: "refused"; readonly faults: readonly string[] }
  | { readonly kind: "checked"; readonly events: readonly EventVerdict[] };

interface EventVerdict {
  readonly eventId: string | null;
  readonly faults: readonly string[];
  /** Dated so long after now; 0 or less = it is not ahead. */
  readonly aheadMs: number;
}

const REUSED = "eventId: another event of yours has this id; it would be a DUPLICATE";

/** A text of one message, or of one message a line. Compressed ones are one message. */
export function messagesOf(name: string, bytes: Uint8Array): OwnMessage[] {
  const gzip = bytes[0] === 0x1f && bytes[1] === 0x8b;
  const whole = { name, bytes, gzip };
  if (gzip || isJson(bytes)) return [whole];
  const lines = new TextDecoder().decode(bytes).split("\n");
  const messages = lines.flatMap((line, at) => {
    if (line.trim() === "") return [];
    return [{ name: `${name}:${at + 1}`, bytes: new TextEncoder().encode(line), gzip }];
  });
  // Several lines that are no messages are one broken text.
  return messages.length > 0 && messages.every((message) => isJson(message.bytes))
    ? messages
    : [whole];
}

function isJson(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder().decode(bytes));
    return true;
  } catch {
    return false;
  }
}

/** @param sender null = there is no service to ask */
export async function checkMessages(
  messages: readonly OwnMessage[],
  sender: Sender | null,
  nowMs = Date.now(),
): Promise<Finding[]> {
  const findings: Finding[] = [];
  /** Text of the event that used an id first. */
  const seen = new Map<string, string>();
  let service = sender;
  for (const message of messages) {
    const local = await checkBySchema(message, seen, nowMs);
    let there: Verdict | null = null;
    try {
      there = service && (await checkByService(message, service));
    } catch (error) {
      const { what: fault, remedy } = silent(service?.target.url ?? "", error);
      findings.push({ group: OWN_MESSAGES, name: "the service", fault, remedy });
      service = null;
    }
    findings.push(...findingsOf(message.name, local, there));
  }
  return findings;
}

async function checkBySchema(
  { bytes, gzip }: OwnMessage,
  seen: Map<string, string>,
  nowMs: number,
): Promise<Verdict> {
  const refused = (fault: string): Verdict => ({ kind: "refused", faults: [fault] });
  if (bytes.length > BODY_LIMIT_BYTES) return refused("the message is larger than 5 MiB");
  try {
    const plain = gzip ? gunzipSync(bytes, { maxOutputLength: BODY_LIMIT_BYTES }) : bytes;
    const { value, hasSurrogateEscapes } = await parseMessage(plain);
    const envelope = hasSurrogateEscapes ? checkEscapedEnvelope(value) : checkEnvelope(value);
    if (envelope.length > 0) return { kind: "refused", faults: linesOf(envelope) };
    const unsupported = unsupportedVersion(value as Envelope);
    if (unsupported !== null) return refused(unsupported);
    const check = eventRule({ hasSurrogateEscapes });
    const checked = (value as Envelope).events.map((event) => {
      const eventId = idOf(event);
      const broken = check(event);
      const valid = broken.length === 0 ? (event as CourierEvent) : null;
      const faults = linesOf(valid ? checkTime(valid, nowMs) : broken);
      const aheadMs = valid ? instantOf(valid.occurredAt) - nowMs : 0;
      // An INVALID event does not take its id: once corrected, it is sent with the same one.
      const all = faults.length > 0 ? faults : reuseOf(eventId, event, seen);
      return { eventId, faults: all, aheadMs };
    });
    return { kind: "checked", events: checked };
  } catch (error) {
    if (error instanceof JsonFault) return refused(error.message);
    return refused(`the message cannot be inflated: ${(error as Error).message}`);
  }
}

/** An eventId is the identity of a fact: another fact with the same id is lost as a DUPLICATE. */
function reuseOf(eventId: string | null, event: unknown, seen: Map<string, string>): string[] {
  if (eventId === null) return [];
  const text = JSON.stringify(event);
  const before = seen.get(eventId);
  if (before === undefined) seen.set(eventId, text);
  return before === undefined || before === text ? [] : [REUSED];
}

function idOf(event: unknown): string | null {
  const id = (event as { readonly eventId?: unknown } | null)?.eventId;
  return typeof id === "string" ? id : null;
}

async function checkByService({ bytes, gzip }: OwnMessage, sender: Sender): Promise<Verdict> {
  const headers = gzip ? { "content-encoding": "gzip" } : {};
  const answer = await sender.send(bytes, { headers });
  const { body } = answer;
  if (answer.status !== 200) {
    return { kind: "refused", faults: [describe(answer), ...linesOf(faultsOf(body?.["errors"]))] };
  }
  const results = (Array.isArray(body?.["results"]) ? body["results"] : []) as Result[];
  return {
    kind: "checked",
    events: results.map(({ eventId, errors }) => ({
      eventId,
      faults: linesOf(faultsOf(errors)),
      aheadMs: 0,
    })),
  };
}

interface Result {
  readonly eventId: string | null;
  readonly errors?: unknown;
}

function faultsOf(value: unknown): readonly Fault[] {
  return Array.isArray(value) ? value : [];
}

function linesOf(faults: readonly Fault[]): string[] {
  return faults.map(({ path, message }) => `${path || "(whole)"}: ${message}`);
}

/** One for each event, or one for a message that is refused; what both say is said once. */
function findingsOf(name: string, local: Verdict, there: Verdict | null): Finding[] {
  const both = there === null ? [local] : [local, there];
  const refusals = both.flatMap((one) => (one.kind === "refused" ? one.faults : []));
  if (refusals.length > 0) {
    const fault = [...new Set(refusals)].join("; ");
    const remedy = "Correct the message; do not retry it as it is.";
    return [{ group: OWN_MESSAGES, name, fault, remedy }];
  }
  const checked = both.flatMap((one) => (one.kind === "checked" ? [one.events] : []));
  return (checked[0] ?? []).map(({ eventId, aheadMs }, at) => {
    const faults = new Set(checked.flatMap((events) => events[at]?.faults ?? []));
    return {
      group: OWN_MESSAGES,
      name: `${name} events[${at}] ${eventId ?? "(no eventId)"}`,
      fault: faults.size === 0 ? null : [...faults].join("; "),
      remedy: faults.has(REUSED)
        ? "Give every event an eventId of its own."
        : "Correct the event and resend it with the same eventId.",
      ...(faults.size === 0 && aheadMs > 0 && { aheadMs }),
    };
  });
}

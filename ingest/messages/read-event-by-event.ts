/**
 * Reads a message that the strict reader refuses: it is cut into envelope fields and events, and each is read by itself.
 * "A batch is never rejected as a whole because one event is unusable" (document 2, "Endpoints"): what is wrong inside one
 * event makes that event INVALID, and what an unknown envelope field holds is nobody's concern.
 */
import {
  checkEscapedEvent,
  checkEvent,
  Envelope,
  EVENTS_PER_MESSAGE,
} from "#core/events/rules/event.ts";
import { parseInTurns, type TurnOptions } from "#core/platform/http/body/parse-in-turns.ts";
import {
  BACKSLASH,
  BRACE,
  BRACKET,
  JsonFault,
  notJson,
  type ParsedJson,
  parseStrictJson,
  textStart,
} from "#core/platform/http/body/strict-json.ts";
import { nextTurn, turns } from "#core/platform/process/next-turn.ts";
import { FAULTS_LISTED, type Fault } from "#core/platform/schema/fault.ts";
import { limit } from "#core/platform/schema/limit.ts";
import { cut, isKind, type Member, memberOf, type Range } from "./cut-json.ts";

/** In place of an event that cannot be read. */
class UnreadableEvent {
  /** @param eventId null if it cannot be read */
  constructor(
    readonly eventId: string | null,
    readonly faults: readonly Fault[],
  ) {}
}

/** Members of an unreadable event in which its faults are looked for; a readable one has 14. */
export const MEMBERS_EXAMINED = limit(
  100,
  "members of an unreadable event in which its faults are looked for",
  "the event is INVALID as a whole",
);
/** Lengths of our envelope fields; in escapes each character of one takes six bytes. */
const NAME_LENGTHS = new Set(Object.keys(Envelope.properties).map(({ length }) => length));
const ESCAPED_NAME_BYTES = 6 * Math.max(...NAME_LENGTHS);
/** Characters of a sender's own key that a fault repeats. */
const PATH_LENGTH = 64;

/**
 * Reads a message at once where it can, else event by event.
 * @throws {JsonFault} if the message cannot be cut, or an envelope field is doubled or unreadable
 */
export async function parseMessage(
  bytes: Uint8Array,
  options: TurnOptions = {},
): Promise<ParsedJson> {
  const turn = turns();
  const parsed = await parseInTurns(bytes, options).catch(asFault);
  // What comes next, reading once more or judging, takes its time too.
  if (turn.due()) await turn.take();
  return parsed instanceof JsonFault ? readEventByEvent(bytes) : parsed;
}

/** The rule that finds the faults of one event of a message. */
export function eventRule({ hasSurrogateEscapes }: Pick<ParsedJson, "hasSurrogateEscapes">) {
  const check = hasSurrogateEscapes ? checkEscapedEvent : checkEvent;
  return (event: unknown) => (event instanceof UnreadableEvent ? event.faults : check(event));
}

async function readEventByEvent(bytes: Uint8Array): Promise<ParsedJson> {
  const fields = new Map<string, Range>();
  const whole = { from: textStart(bytes), to: bytes.length };
  if (!isKind(bytes, whole, BRACE)) throw notJson();
  await inTurns(
    cut(bytes, whole, (part) => {
      const { key, value } = memberOf(bytes, part);
      const name = nameOf(bytes, key);
      if (name === null || !Object.hasOwn(Envelope.properties, name)) return;
      if (fields.has(name)) throw new JsonFault(`The envelope has the field ${name} twice.`);
      fields.set(name, value);
    }),
  );
  const envelope: Record<string, unknown> = {};
  let hasSurrogateEscapes = false;
  for (const [name, range] of fields) {
    const isList = name === "events" && isKind(bytes, range, BRACKET);
    const read = isList ? await readEvents(bytes, range) : await readStrictly(bytes, range);
    envelope[name] = read.value;
    hasSurrogateEscapes ||= read.hasSurrogateEscapes;
  }
  return { value: envelope, hasSurrogateEscapes };
}

/** Null for one that no field of ours has. */
function nameOf(bytes: Uint8Array, { from, to }: Range): string | null {
  const length = to - from - 2;
  if (length > ESCAPED_NAME_BYTES) return null;
  const key = bytes.subarray(from, to);
  if (!NAME_LENGTHS.has(length) && !key.includes(BACKSLASH)) return null;
  return String(parseStrictJson(key).value);
}

/** A list that is too long is reported as such, and none of its elements is read. */
async function readEvents(bytes: Uint8Array, range: Range): Promise<ParsedJson> {
  const ranges: Range[] = [];
  await inTurns(
    cut(bytes, range, (part) => {
      if (ranges.length <= EVENTS_PER_MESSAGE) ranges.push(part);
    }),
  );
  if (ranges.length > EVENTS_PER_MESSAGE) {
    return { value: ranges.map(() => null), hasSurrogateEscapes: false };
  }
  const events: unknown[] = [];
  let hasSurrogateEscapes = false;
  const turn = turns();
  for (const range of ranges) {
    if (turn.due()) await turn.take();
    try {
      const read = await readStrictly(bytes, range);
      events.push(read.value);
      hasSurrogateEscapes ||= read.hasSurrogateEscapes;
    } catch (error) {
      if (!(error instanceof JsonFault)) throw error;
      events.push(await examine(bytes, range, error));
    }
  }
  return { value: events, hasSurrogateEscapes };
}

function readStrictly(bytes: Uint8Array, { from, to }: Range): Promise<ParsedJson> {
  return parseInTurns(bytes.subarray(from, to));
}

/** What is wrong with an event that cannot be read, by its members, and its id where there is one. */
async function examine(
  bytes: Uint8Array,
  event: Range,
  fault: JsonFault,
): Promise<UnreadableEvent> {
  const faults = new Map<string, Fault>();
  let eventId: unknown = null;
  const turn = turns();
  try {
    for (const [name, [value, ...others]] of await membersOf(bytes, event)) {
      if (turn.due()) await turn.take();
      const read = value && (await readStrictly(bytes, value).catch(asFault));
      if (others.length > 0) addFault(faults, name, new JsonFault("The key appears twice."));
      else if (read instanceof JsonFault) addFault(faults, name, read);
      else if (name === "eventId") eventId = read?.value;
      if (faults.size >= FAULTS_LISTED) break;
    }
  } catch (error) {
    if (!(error instanceof JsonFault)) throw error;
  }
  if (faults.size === 0) addFault(faults, "", fault);
  return new UnreadableEvent(typeof eventId === "string" ? eventId : null, [...faults.values()]);
}

/** The first members of an event by their names; none of what is no object. */
async function membersOf(bytes: Uint8Array, event: Range): Promise<Map<string, Range[]>> {
  const members: Member[] = [];
  if (isKind(bytes, event, BRACE)) {
    await inTurns(
      cut(bytes, event, (part) => {
        if (members.length < MEMBERS_EXAMINED) members.push(memberOf(bytes, part));
      }),
    );
  }
  const byName = new Map<string, Range[]>();
  for (const { key, value } of members) {
    const name = String((await readStrictly(bytes, key)).value);
    byName.set(name, [...(byName.get(name) ?? []), value]);
  }
  return byName;
}

function asFault(error: unknown): JsonFault {
  if (error instanceof JsonFault) return error;
  throw error;
}

function addFault(faults: Map<string, Fault>, name: string, { message }: JsonFault): void {
  const path = name.slice(0, PATH_LENGTH).toWellFormed();
  if (!faults.has(path)) faults.set(path, { path, code: "BAD_FORMAT", message });
}

async function inTurns(work: Generator<void, void>): Promise<void> {
  while (!work.next().done) await nextTurn();
}

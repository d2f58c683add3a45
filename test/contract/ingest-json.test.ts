/** JSON tricks (document 2, "Errors": 400): what is refused, what makes one event INVALID, what is accepted. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NESTING_LIMIT } from "#core/http/strict-json.ts";
import type { Running } from "#core/runtime.ts";
import { startIngest } from "#ingest/main.ts";
import { event, pushBytes } from "#test/support/courier.ts";
import { openTestRuntime, type TestRuntime } from "#test/support/runtime.ts";
import { testSetup } from "#test/support/setup.ts";
import { addShipment } from "#test/support/shipments.ts";

let runtime: TestRuntime;
let ingest: Running;
let url: string;

beforeAll(async () => {
  runtime = await openTestRuntime(testSetup());
  ingest = await startIngest(runtime);
  url = ingest.url ?? "";
  await addShipment(runtime, "TN1");
});

afterAll(async () => {
  await ingest.stop();
  await runtime.end();
});

/** The text of a message; the events and further members are written as given. */
function message(events: string, more = "", messageId = '"m"'): string {
  return `{"schemaVersion":"1.0","messageId":${messageId},"sentAt":"2026-11-20T10:00:00+01:00","courier":"GLS_ITA"${more},"events":[${events}]}`;
}

/** The text of a valid event with further members. */
function eventText(more = ""): string {
  return JSON.stringify(event()).replace(/\}$/, `${more}}`);
}

const send = (text: string | Uint8Array) => {
  const bytes = typeof text === "string" ? new TextEncoder().encode(text) : text;
  return pushBytes(url, bytes);
};

async function malformed(text: string, about: string): Promise<void> {
  const { status, body } = await send(text);
  expect([status, body.code]).toEqual([400, "MALFORMED_BODY"]);
  expect(body.detail).toContain(about);
}

const nested = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("refused with 400", () => {
  test("the same key twice, in the envelope, in an event, in attributes, and by an escape", async () => {
    await malformed(message(eventText(), ',"courier":"GLS_ITA"'), "twice");
    await malformed(message(eventText(',"eventId":"other"')), "twice");
    await malformed(message(eventText(',"attributes":{"a":"1","a":"2"}')), "twice");
    await malformed(message(eventText(',"event\\u0049d":"other"')), "twice");
    await malformed(message(eventText(), ',"unknown":{"a":1,"b":{"c":1,"c":1}}'), "twice");
  });

  test("a key __proto__ anywhere, also by an escape", async () => {
    await malformed(message(eventText(), ',"__proto__":{"courier":"X"}'), "__proto__");
    await malformed(message(eventText(',"__proto__":{}')), "__proto__");
    await malformed(message(eventText(',"attributes":{"\\u005f_proto__":"x"}')), "__proto__");
  });

  test(`nesting of ${NESTING_LIMIT + 1}, while ${NESTING_LIMIT} pass`, async () => {
    const filler = (depth: number) => message(eventText(), `,"unknown":${nested(depth)}`);
    expect((await send(filler(NESTING_LIMIT - 1))).status).toBe(200);
    await malformed(filler(NESTING_LIMIT), "nested");
  });

  test("text before or after the object, comments, NaN, single quotes, trailing commas", async () => {
    const good = message(eventText());
    for (const text of [
      `${good}{}`,
      `x${good}`,
      `${good}//`,
      good.replace('"m"', "NaN"),
      good.replaceAll('"', "'"),
      good.replace(/\]\}$/, ",]}"),
    ]) {
      expect((await send(text)).status).toBe(400);
    }
  });

  test("UTF-16, with and without a byte order mark", async () => {
    const good = message(eventText());
    const utf16 = Buffer.from(good, "utf16le");
    expect((await send(utf16)).status).toBe(400);
    expect((await send(Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]))).status).toBe(400);
  });

  test("half a surrogate pair in the messageId", async () => {
    const { status, body } = await send(message(eventText(), "", '"m\\ud800"'));
    expect([status, body.code, body.errors[0].path]).toEqual([
      400,
      "INVALID_ENVELOPE",
      "messageId",
    ]);
  });

  test("values that are no object", async () => {
    for (const text of ["null", "1", '"x"', "[]", "true"]) {
      expect((await send(text)).body.code).toBe("INVALID_ENVELOPE");
    }
  });
});

describe("one event INVALID, the others judged", () => {
  async function faultsOf(text: string): Promise<string[]> {
    const { status, body } = await send(message(`${text},${eventText()}`));
    expect([status, body.invalid, body.accepted]).toEqual([200, 1, 1]);
    const [{ errors }] = body.results;
    return errors.map(({ path, code }: { path: string; code: string }) => `${path} ${code}`);
  }

  test("half a surrogate pair in a text or a key", async () => {
    const cut = eventText().replace("In transito", "cut \\ud83d");
    expect(await faultsOf(cut)).toEqual(["status.description BAD_FORMAT"]);
    const reversed = eventText().replace("In transito", "\\uDE00\\uD83D");
    expect(await faultsOf(reversed)).toEqual(["status.description BAD_FORMAT"]);
    const [fault] = await faultsOf(eventText(',"attributes":{"\\udc00":"x"}'));
    expect(fault).toMatch(/^attributes\..* BAD_FORMAT$/);
  });

  test("keys named like members of every object are unknown fields", async () => {
    for (const key of ["constructor", "prototype", "hasOwnProperty", "toString"]) {
      expect(await faultsOf(eventText(`,"${key}":{}`))).toEqual([`${key} UNKNOWN_FIELD`]);
    }
  });

  test("numbers too large for their field or for a double", async () => {
    const parcel = (index: string) => eventText(`,"parcel":{"index":${index}}`);
    expect(await faultsOf(parcel("1e999"))).toEqual(["parcel.index WRONG_TYPE"]);
    expect(await faultsOf(parcel("9007199254740993"))).toEqual(["parcel.index OUT_OF_RANGE"]);
    expect(await faultsOf(parcel("-0"))).toEqual(["parcel.index OUT_OF_RANGE"]);
  });
});

describe("accepted", () => {
  const accepted = async (text: string | Uint8Array) => {
    const { status, body } = await send(text);
    expect([status, body.accepted]).toEqual([200, 1]);
  };

  test("a byte order mark, which is ignored", async () => {
    await accepted(`\ufeff${message(eventText())}`);
  });

  test("white space, whole surrogate pairs as escapes, 1.0 for 1", async () => {
    await accepted(JSON.stringify(JSON.parse(message(eventText())), null, 4));
    await accepted(message(eventText().replace("In transito", "\\ud83d\\ude00 \\u00e0")));
    await accepted(message(eventText(',"parcel":{"index":1.0,"total":2e0}')));
  });

  test("texts that look like keys, colons and brackets, and escaped quotes", async () => {
    const text = JSON.stringify('"a":{[}]:\\ \\" "__proto__": ud800').slice(1, -1);
    await accepted(message(eventText().replace("In transito", text)));
  });

  test("constructor and toString as attributes and as unknown envelope fields", async () => {
    const attributes = ',"attributes":{"constructor":"a","toString":"b"}';
    await accepted(message(eventText(attributes), ',"constructor":{"prototype":{"x":1}}'));
    expect(Object.hasOwn(Object.prototype, "x")).toBe(false);
  });

  test("NUL and other control characters in identifiers are told apart", async () => {
    const withId = (id: string) => eventText().replace(/"event-[^"]*"/, `"${id}"`);
    await accepted(message(withId("a\\u0000b")));
    await accepted(message(withId("a\\u0000c")));
    await accepted(message(withId("ab")));
  });
});

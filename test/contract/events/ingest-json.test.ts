/** JSON tricks (document 2, "Endpoints" and "Errors"): what is refused, what makes one event INVALID, what is accepted. */
import { beforeAll, describe, expect, test } from "bun:test";
import { NESTING_LIMIT } from "#core/platform/http/body/strict-json.ts";
import { startIngest } from "#ingest/main.ts";
import { MEMBERS_EXAMINED } from "#ingest/messages/read-event-by-event.ts";
import { event, pushBytes } from "#test/support/clients/courier.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";

let url: string;

const runtime = forAll(() => openTestRuntime(testSetup()));
const ingest = forAll(() => startIngest(runtime));
beforeAll(async () => {
  url = ingest.url ?? "";
  await addShipment(runtime, "TN1");
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
  test("an envelope field twice, also by an escape, while the rest of the message is fine", async () => {
    await malformed(message(eventText(), ',"courier":"GLS_ITA"'), "courier twice");
    await malformed(message(eventText(), ',"\\u0063ourier":"GLS_ITA"'), "courier twice");
    await malformed(message(eventText(), ',"events":[]'), "events twice");
    await malformed(message(eventText(), ',"unknown":{"a":1,"a":1},"messageId":"n"'), "messageId");
  });

  test("a known envelope field that cannot be read", async () => {
    await malformed(message(eventText(), "", '{"a":1,"a":2}'), "twice");
    await malformed(message(eventText(), "", nested(NESTING_LIMIT + 1)), "nested");
    await malformed(message(eventText(), "", '{"__proto__":1}'), "__proto__");
  });

  test("a message that cannot be cut into events", async () => {
    const bad = eventText(',"attributes":{"a":"1","a":"2"}');
    const good = eventText();
    for (const events of [
      `${bad},`,
      `${bad},,${good}`,
      `,${bad}`,
      `${bad}]`,
      `${bad.slice(0, -1)}]`,
      `${bad},${good.slice(0, -1)}`,
      `${bad},${good.replace('"', "")}`,
    ]) {
      const { status, body } = await send(message(events));
      expect([status, body.code]).toEqual([400, "MALFORMED_BODY"]);
    }
    await malformed(`${message(bad)},`, "JSON");
    await malformed(message(bad).replace(/^\{(.*)\}$/, "[$1]"), "JSON");
    await malformed(message(bad).replace('"m"', ""), "JSON");
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
    const { status, body } = await send(message(`${eventText()},${text},${eventText()}`));
    expect([status, body.invalid, body.accepted]).toEqual([200, 1, 2]);
    const [, { errors }] = body.results;
    return errors.map(({ path, code }: { path: string; code: string }) => `${path} ${code}`);
  }

  test("the same key twice: in the event, by an escape, in its attributes, deeper", async () => {
    expect(await faultsOf(eventText(',"isReturn":true,"isReturn":true'))).toEqual([
      "isReturn BAD_FORMAT",
    ]);
    expect(await faultsOf(eventText(',"event\\u0049d":"x"'))).toEqual(["eventId BAD_FORMAT"]);
    expect(await faultsOf(eventText(',"attributes":{"a":"1","a":"2"}'))).toEqual([
      "attributes BAD_FORMAT",
    ]);
    expect(
      await faultsOf(eventText(',"x":[{"y":{"z":1,"z":1}}],"parcel":{"index":1,"index":2}')),
    ).toEqual(["x BAD_FORMAT", "parcel BAD_FORMAT"]);
  });

  test("a key __proto__ anywhere, also by an escape", async () => {
    expect(await faultsOf(eventText(',"__proto__":{}'))).toEqual([" BAD_FORMAT"]);
    expect(await faultsOf(eventText(',"attributes":{"\\u005f_proto__":"x"}'))).toEqual([
      "attributes BAD_FORMAT",
    ]);
  });

  test("nesting without end, of a member and of the event itself", async () => {
    expect(await faultsOf(eventText(`,"attributes":${nested(50_000)}`))).toEqual([
      "attributes BAD_FORMAT",
    ]);
    expect(await faultsOf(nested(NESTING_LIMIT + 1))).toEqual([" BAD_FORMAT"]);
  });

  test("what is no JSON or no UTF-8 between the commas of one event", async () => {
    expect(await faultsOf(eventText(',"isReturn":True'))).toEqual(["isReturn BAD_FORMAT"]);
    expect(await faultsOf(eventText(',"parcel":{"index":NaN}'))).toEqual(["parcel BAD_FORMAT"]);
    const text = message(`${eventText(',"attributes":{"a":"@"}')},${eventText()}`);
    const { body } = await send(Buffer.from(text.replace("@", "\xff"), "latin1"));
    expect([body.invalid, body.accepted]).toEqual([1, 1]);
    expect(body.results[0].errors[0]).toMatchObject({ path: "attributes", code: "BAD_FORMAT" });
  });

  test("its eventId is reported where it can be read, and is free for the corrected event", async () => {
    const corrected = event({ attributes: { a: "1" } });
    const bad = JSON.stringify(corrected).replace('"a":"1"', '"a":"1","a":"2"');
    const refused = await send(message(bad));
    expect(refused.body.results).toEqual([
      { eventId: corrected.eventId, outcome: "INVALID", errors: [expect.anything()] },
    ]);
    expect((await send(message(JSON.stringify(corrected)))).body.accepted).toBe(1);
    const twice = await send(message(eventText(',"eventId":"other"')));
    expect(twice.body.results[0].eventId).toBeNull();
  });

  test("the faults of an event are looked for in its first 100 members", async () => {
    const filled = (count: number) => {
      const more = Array.from({ length: count }, (_, at) => `"k${at}":1`).join(",");
      return eventText(`,${more},"attributes":{"a":"1","a":"2"}`);
    };
    const own = Object.keys(event()).length;
    expect(await faultsOf(filled(MEMBERS_EXAMINED - own - 1))).toEqual(["attributes BAD_FORMAT"]);
    expect(await faultsOf(filled(MEMBERS_EXAMINED - own))).toEqual([" BAD_FORMAT"]);
  });

  test("499 good events of a message are processed beside a bad one, and validate says the same", async () => {
    const texts = Array.from({ length: 499 }, () => eventText());
    texts.splice(250, 0, eventText(',"attributes":{"a":"1","a":"2"}'));
    const text = new TextEncoder().encode(message(texts.join(",")));
    const validated = await pushBytes(url, text, { path: "/v1/events/validate" });
    const real = await send(text);
    for (const { body } of [validated, real]) {
      expect([body.accepted, body.invalid, body.results[250].outcome]).toEqual([499, 1, "INVALID"]);
    }
    const tooMany = await send(message([...texts, eventText()].join(",")));
    expect([tooMany.status, tooMany.body.errors]).toEqual([
      400,
      [expect.objectContaining({ path: "events", code: "TOO_MANY" })],
    ]);
  });

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
    expect(await faultsOf(parcel("1e999"))).toEqual(["parcel.index OUT_OF_RANGE"]);
    expect(await faultsOf(parcel("9007199254740993"))).toEqual(["parcel.index OUT_OF_RANGE"]);
    expect(await faultsOf(parcel("-0"))).toEqual(["parcel.index OUT_OF_RANGE"]);
  });
});

describe("accepted", () => {
  test("unknown envelope fields, whatever they hold", async () => {
    for (const more of [
      ',"unknown":{"a":1,"b":{"c":1,"c":1}}',
      ',"unknown":1,"unknown":2',
      ',"__proto__":{"courier":"X"}',
      `,"unknown":${nested(NESTING_LIMIT)}`,
      `,"unknown":${nested(100_000)}`,
      ',"unknown":"\\ud800","\\ud800":1',
      ',"unknown":"\\ud800","other":{"x":1,"x":1}',
      `,"${"k".repeat(1_000)}":{"x":1,"x":1}`,
    ]) {
      await accepted(message(eventText(), more));
    }
  });

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

  test("NUL and other control characters in identifiers are distinguished", async () => {
    const withId = (id: string) => eventText().replace(/"event-[^"]*"/, `"${id}"`);
    await accepted(message(withId("a\\u0000b")));
    await accepted(message(withId("a\\u0000c")));
    await accepted(message(withId("ab")));
  });
});

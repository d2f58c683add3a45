/** The edge messages: each states what the contract says of it, and what a sender learns from it. */
import { gzipSync } from "node:zlib";
import { BODY_LIMIT_BYTES, EVENTS_PER_MESSAGE } from "#core/events/rules/event.ts";
import {
  describe,
  type Expectation,
  invalid,
  outcomes,
  problem,
  status,
} from "#ingest/doctor/expect.ts";
import type { Answer, Sender } from "#ingest/doctor/sender.ts";
import { signMessage } from "#ingest/doctor/sign-message.ts";

export interface Probe {
  readonly group: string;
  readonly name: string;
  readonly send: (sender: Sender) => Promise<Answer>;
  readonly expect: Expectation;
  /** What to look at when it fails. */
  readonly remedy: string;
  /** Only with a signing secret. */
  readonly needsSecret?: true;
}

const MINUTE_MS = 60_000;
/** Of our clock against the service's: the signature tolerates 5 minutes, a sound clock needs far less. */
const CLOCK_TOLERANCE_MS = MINUTE_MS;

const utf8 = new TextEncoder();
const long = (length: number) => "x".repeat(length);

export function probeEvent(members: Readonly<Record<string, unknown>> = {}) {
  return {
    eventId: `doctor-${crypto.randomUUID()}`,
    trackingNumber: "DOCTOR0001",
    occurredAt: "2026-03-10T10:00:00+01:00",
    status: { code: "TRN", description: "In transito" },
    ...members,
  };
}

const events = (count: number) => Array.from({ length: count }, () => probeEvent());
const pushOf =
  (members: Readonly<Record<string, unknown>>) =>
  (sender: Sender): Promise<Answer> =>
    sender.push([probeEvent(members)]);

export function probes(nowMs: () => number): readonly Probe[] {
  return [
    ...connection(nowMs),
    ...credentials(),
    ...signature(nowMs),
    ...body(),
    ...envelope(),
    ...event(),
    ...batch(),
  ];
}

type Row = readonly [
  name: string,
  send: (sender: Sender) => Promise<Answer>,
  expect: Expectation,
  remedy: string,
];

function group(title: string, rows: readonly Row[], needsSecret = false): Probe[] {
  return rows.map(([name, send, expect, remedy]) => ({
    group: title,
    name,
    send,
    expect,
    remedy,
    ...(needsSecret && { needsSecret: true as const }),
  }));
}

function connection(nowMs: () => number): Probe[] {
  const ping = (sender: Sender) => sender.send(null, { method: "GET", path: "/v1/ping" });
  return group("Connection", [
    [
      "ping answers 200",
      ping,
      status(200),
      "Check --url and --token; with an allowlist or mutual TLS, send from where your sender sends.",
    ],
    [
      "the rate headers are there",
      ping,
      ({ headers }) => (headers.has("x-ratelimit-remaining") ? null : "no X-RateLimit-Remaining"),
      "A proxy on the way drops headers.",
    ],
    [
      "this machine's clock is right within a minute",
      (sender) => sender.push([probeEvent()]),
      (answer) => {
        if (answer.status !== 200) return `200 expected, got ${describe(answer)}`;
        const receivedMs = Date.parse(String(answer.body?.["receivedAt"]));
        const offMs = Math.abs(nowMs() - receivedMs);
        return offMs <= CLOCK_TOLERANCE_MS ? null : `off by ${Math.round(offMs / 1000)} s`;
      },
      "Run an NTP client: signatures more than 5 minutes off are refused.",
    ],
    [
      "an unknown path is 404",
      (sender) => sender.send(null, { method: "GET", path: "/v1/doctor" }),
      problem(404, "NOT_FOUND"),
      "A proxy on the way answers for the service.",
    ],
    [
      "GET instead of POST is 405",
      (sender) => sender.send(null, { method: "GET" }),
      problem(405, "METHOD_NOT_ALLOWED"),
      "Messages are sent by POST.",
    ],
  ]);
}

function credentials(): Probe[] {
  const one = [probeEvent()];
  return group("Credentials", [
    [
      "no token is 401",
      (sender) => sender.push(one, {}, { token: null }),
      problem(401, "UNKNOWN_TOKEN"),
      "Send Authorization: Bearer <token> with every request.",
    ],
    [
      "a wrong token is 401",
      (sender) => sender.push(one, {}, { token: "doctor-wrong-token" }),
      problem(401, "UNKNOWN_TOKEN"),
      "401 is final: do not retry with the same token.",
    ],
    [
      "another courier's code is 403",
      (sender) => sender.push(one, { courier: "DOCTOR_OTHER" }),
      problem(403, "COURIER_MISMATCH"),
      "The envelope's courier is the code assigned at onboarding.",
    ],
  ]);
}

function signature(nowMs: () => number): Probe[] {
  const signedAt = (offsetMs: number) => (sender: Sender) =>
    sender.push(
      [probeEvent()],
      {},
      {
        signature: (bytes) => signMessage([sender.target.secret ?? ""], bytes, nowMs() + offsetMs),
      },
    );
  const signedBy = (secrets: (own: string) => string[], gzip = false) => {
    return (sender: Sender) =>
      sender.push(
        [probeEvent()],
        {},
        {
          gzip,
          signature: (bytes) => signMessage(secrets(sender.target.secret ?? ""), bytes, nowMs()),
        },
      );
  };
  const right = "The HMAC-SHA256 of <t>.<body>, hex, keyed with the secret exactly as issued.";
  const bad = problem(403, "BAD_SIGNATURE");
  const rows: Row[] = [
    ["a signed message passes", signedBy((own) => [own]), outcomes("ACCEPTED"), right],
    [
      "a signed gzip message passes",
      signedBy((own) => [own], true),
      outcomes("ACCEPTED"),
      "Compress first, then sign the compressed bytes.",
    ],
    [
      "one right v1 among several passes",
      signedBy((own) => ["doctor-old-secret", own]),
      outcomes("ACCEPTED"),
      "During a rotation send one v1 for each secret.",
    ],
    ["another secret is 403", signedBy(() => ["doctor-wrong-secret"]), bad, right],
    [
      "a signature 6 minutes old is 403",
      signedAt(-6 * MINUTE_MS),
      bad,
      "Sign again on every retry.",
    ],
    ["a signature 6 minutes ahead is 403", signedAt(6 * MINUTE_MS), bad, "Run an NTP client."],
    [
      "a signature of the uncompressed bytes is 403 under gzip",
      (sender) =>
        sender.push(
          [probeEvent()],
          {},
          {
            gzip: true,
            signature: (_, plain) => signMessage([sender.target.secret ?? ""], plain, nowMs()),
          },
        ),
      bad,
      "Compress first, then sign the compressed bytes.",
    ],
    [
      "a header that is not a signature is 403",
      (sender) => sender.push([probeEvent()], {}, { signature: () => "v1=nonsense" }),
      bad,
      "The header is t=<unix seconds>,v1=<hex>.",
    ],
  ];
  return group("Signature", rows, true);
}

function body(): Probe[] {
  const malformed = problem(400, "MALFORMED_BODY");
  const padded = (sender: Sender) =>
    JSON.stringify({ courier: sender.target.courier, filler: long(BODY_LIMIT_BYTES) });
  return group("Body", [
    [
      "a gzip message passes",
      (sender) => sender.push([probeEvent()], {}, { gzip: true }),
      outcomes("ACCEPTED"),
      "Content-Encoding: gzip with a gzip body.",
    ],
    [
      "text/plain is 415",
      (sender) => sender.push([], {}, { headers: { "content-type": "text/plain" } }),
      problem(415, "WRONG_CONTENT_TYPE"),
      "Send Content-Type: application/json.",
    ],
    [
      "Content-Encoding: br is 415",
      (sender) => sender.push([], {}, { headers: { "content-encoding": "br" } }),
      problem(415, "WRONG_CONTENT_ENCODING"),
      "gzip is the only compression.",
    ],
    [
      "a body that is not JSON is 400",
      (sender) => sender.send("{"),
      malformed,
      "Send one JSON object.",
    ],
    [
      "a body that is not UTF-8 is 400",
      (sender) => sender.send(new Uint8Array([0x7b, 0x22, 0xe0, 0x22, 0x7d])),
      malformed,
      "Encode the text as UTF-8, not as Latin-1.",
    ],
    [
      "plain bytes called gzip are 400",
      (sender) => sender.send("{}", { headers: { "content-encoding": "gzip" } }),
      malformed,
      "Set the header only when the body is compressed.",
    ],
    [
      "an envelope field twice is 400",
      (sender) => sender.send('{"courier":"A","courier":"B"}'),
      malformed,
      "Build the JSON with a library.",
    ],
    [
      "10,000 nested lists are 400",
      (sender) => sender.send(`${"[".repeat(10_000)}${"]".repeat(10_000)}`),
      malformed,
      "Send events as documented.",
    ],
    [
      "more than 5 MiB is 413",
      (sender) => sender.send(padded(sender)),
      problem(413, "BODY_TOO_LARGE"),
      "Split the message; 413 is final.",
    ],
    [
      "more than 5 MiB once inflated is 413",
      (sender) =>
        sender.send(gzipSync(utf8.encode(padded(sender))), {
          headers: { "content-encoding": "gzip" },
        }),
      problem(413, "BODY_TOO_LARGE"),
      "The limit is on the uncompressed body.",
    ],
  ]);
}

function envelope(): Probe[] {
  const bad = problem(400, "INVALID_ENVELOPE");
  const withMembers = (members: Readonly<Record<string, unknown>>) => (sender: Sender) =>
    sender.push([probeEvent()], members);
  return group("Envelope", [
    [
      "no messageId is 400",
      withMembers({ messageId: undefined }),
      bad,
      "Give each call an id of its own, and the same on its retry.",
    ],
    [
      "a messageId of 129 characters is 400",
      withMembers({ messageId: long(129) }),
      bad,
      "At most 128 characters.",
    ],
    [
      "sentAt without offset is 400",
      withMembers({ sentAt: "2026-03-10T10:00:00" }),
      bad,
      "Write the offset: +01:00, or Z.",
    ],
    ["no events are 400", (sender) => sender.push([]), bad, "Send nothing when there is nothing."],
    [
      "501 events are 400",
      (sender) => sender.push(events(EVENTS_PER_MESSAGE + 1)),
      bad,
      "At most 500 events a message.",
    ],
    [
      "500 events pass",
      (sender) => sender.push(events(EVENTS_PER_MESSAGE)),
      outcomes(...events(EVENTS_PER_MESSAGE).map(() => "ACCEPTED")),
      "A proxy on the way may limit bodies.",
    ],
    [
      "schemaVersion 2.0 is 400",
      withMembers({ schemaVersion: "2.0" }),
      problem(400, "UNSUPPORTED_SCHEMA_VERSION"),
      "Send 1.0.",
    ],
    [
      "an unknown envelope field is ignored",
      withMembers({ doctor: { any: ["thing"] } }),
      outcomes("ACCEPTED"),
      "A proxy on the way changes bodies.",
    ],
  ]);
}

function event(): Probe[] {
  const rows: Row[] = [
    ["the required fields alone pass", pushOf({}), outcomes("ACCEPTED"), "See the reference."],
    [
      "accents and emoji pass",
      pushOf({ status: { code: "CNS", description: "Consegnato à Forlì 📦" } }),
      outcomes("ACCEPTED"),
      "Encode the text as UTF-8.",
    ],
    [
      "Z as offset passes",
      pushOf({ occurredAt: "2026-03-10T09:00:00Z" }),
      outcomes("ACCEPTED"),
      "Better write the local offset of the place.",
    ],
    [
      "externalId with senderAccount passes",
      pushOf({ trackingNumber: undefined, externalId: "ORDER-1", senderAccount: "ACC-1" }),
      outcomes("ACCEPTED"),
      "One of the two references must be there.",
    ],
    [
      "attributes pass",
      pushOf({ attributes: { depot: "MI2", van: "17" } }),
      outcomes("ACCEPTED"),
      "Courier-specific fields belong into attributes.",
    ],
  ];
  return [...group("Event", rows), ...faultyEvents()];
}

/** Faulty events: what is wrong, the members that make it so, the path and code of the fault, what to do about it. */
const FAULTY_EVENTS: ReadonlyArray<
  readonly [
    name: string,
    members: Readonly<Record<string, unknown>>,
    path: string,
    code: string,
    remedy: string,
  ]
> = [
  [
    "no eventId is INVALID",
    { eventId: undefined },
    "eventId",
    "REQUIRED",
    "One id per fact, for ever.",
  ],
  [
    "an eventId of 129 is INVALID",
    { eventId: long(129) },
    "eventId",
    "TOO_LONG",
    "At most 128 characters.",
  ],
  [
    "no reference is INVALID",
    { trackingNumber: undefined },
    "trackingNumber",
    "REQUIRED",
    "Send trackingNumber, or externalId with senderAccount.",
  ],
  [
    "a trackingNumber with a control character is INVALID",
    { trackingNumber: "DOCTOR\u0000" },
    "trackingNumber",
    "BAD_FORMAT",
    "Blanks around a reference do not count; control characters are refused.",
  ],
  [
    "externalId alone is INVALID",
    { trackingNumber: undefined, externalId: "R" },
    "senderAccount",
    "REQUIRED",
    "Order references are not unique across merchants.",
  ],
  [
    "a time without offset is INVALID",
    { occurredAt: "2026-03-10T10:00:00" },
    "occurredAt",
    "BAD_FORMAT",
    "Write the offset of the event's place.",
  ],
  [
    "30 February is INVALID",
    { occurredAt: "2026-02-30T10:00:00Z" },
    "occurredAt",
    "BAD_FORMAT",
    "Send real dates.",
  ],
  [
    "an event dated in 2099 is INVALID",
    { occurredAt: "2099-01-01T00:00:00Z" },
    "occurredAt",
    "IN_FUTURE",
    "Send when it happened, in the event place's time with its offset: nothing is more than 24 hours ahead.",
  ],
  [
    "no status description is INVALID",
    { status: { code: "TRN" } },
    "status.description",
    "REQUIRED",
    "Send your own text.",
  ],
  [
    "an unknown field is INVALID",
    { weight: 2 },
    "weight",
    "UNKNOWN_FIELD",
    "Courier-specific fields belong into attributes.",
  ],
  [
    "another deliveredTo is INVALID",
    { delivery: { deliveredTo: "DOG" } },
    "delivery.deliveredTo",
    "NOT_ALLOWED",
    "See the reference.",
  ],
  [
    "a POD link that is not a URI is INVALID",
    { delivery: { podUrl: "pod.jpg" } },
    "delivery.podUrl",
    "BAD_FORMAT",
    "An absolute https address.",
  ],
  [
    "attempt 0 is INVALID",
    { delivery: { attemptNumber: 0 } },
    "delivery.attemptNumber",
    "OUT_OF_RANGE",
    "Attempts count from 1.",
  ],
  [
    "21 attributes are INVALID",
    { attributes: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`k${at}`, "v"])) },
    "attributes",
    "TOO_MANY",
    "At most 20 keys.",
  ],
  [
    "a number as attribute is INVALID",
    { attributes: { van: 17 } },
    "attributes.van",
    "WRONG_TYPE",
    "Values are texts.",
  ],
  [
    "half an emoji is INVALID",
    { status: { code: "TRN", description: "\ud83d" } },
    "status.description",
    "BAD_FORMAT",
    "Cut texts between characters, not inside one.",
  ],
];

function faultyEvents(): Probe[] {
  return group(
    "Event",
    FAULTY_EVENTS.map(([name, members, path, code, remedy]): Row => {
      return [name, pushOf(members), invalid(path, code), remedy];
    }),
  );
}

function batch(): Probe[] {
  return group("Batch", [
    [
      "one bad event does not spoil the others",
      (sender) => sender.push([probeEvent(), probeEvent({ eventId: undefined }), probeEvent()]),
      outcomes("ACCEPTED", "INVALID", "ACCEPTED"),
      "Read results[] one by one: 200 means processed, not accepted.",
    ],
    [
      "the same eventId twice is a DUPLICATE",
      (sender) => {
        const twice = probeEvent();
        return sender.push([twice, twice]);
      },
      outcomes("ACCEPTED", "DUPLICATE"),
      "DUPLICATE is no error; every new fact needs a new id.",
    ],
  ]);
}

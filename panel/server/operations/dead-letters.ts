/** Dead letters: log entries that our own code could not process, and driving them again. */

import { Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";
import { route } from "#core/platform/http/access.ts";
import {
  type DeadLetter,
  discardDeadLetter,
  listDeadLetters,
  parseLetterId,
  redriveAllDeadLetters,
  redriveDeadLetter,
} from "#core/platform/log/dead-letters.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { jsonBody } from "#panel/server/http/checked-body.ts";
import { LONG_PAGE, limitOf, queryOf, wrongCursor } from "#panel/server/http/list-page.ts";
import { noteChange, noteNoChange, panelRoutes } from "#panel/server/panel-routes.ts";

export const DeadLetters = Type.Object({
  items: Type.Array(
    Type.Object({
      id: Type.String(),
      log: Type.String({ description: "where the entry stood" }),
      entryId: Type.String(),
      group: Type.String({ description: "who could not process it" }),
      reason: Type.String(),
      fields: Type.Record(Type.String(), Type.String(), { description: "the entry as it was" }),
      parkedAt: Type.String({ description: "ISO 8601" }),
    }),
  ),
  nextCursor: nullableText,
  cursor: Type.Union([Type.String(), Type.Null()], {
    description: "the same as nextCursor",
    deprecated: true,
  }),
});

const Discard = Type.Object(
  { reason: Type.String({ minLength: 1, maxLength: 500, description: "why nobody needs it" }) },
  { additionalProperties: false },
);

function notFound(): Problem {
  return new Problem(404, "DEAD_LETTER_NOT_FOUND", "There is no such dead letter.");
}

export function deadLetterRoutes(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelRoutes(runtime, "dead-letters")
    .get(
      "/panel/api/dead-letters",
      async ({ query }) => {
        const limit = limitOf(query.limit, LONG_PAGE);
        const { letters, next } = await listDeadLetters(redis, cursorOf(query.cursor), limit);
        const items = letters.map(({ atMs, fields, ...letter }) => ({
          ...letter,
          fields: { ...fields },
          parkedAt: new Date(atMs).toISOString(),
        }));
        return { items, nextCursor: next, cursor: next };
      },
      route({
        access: { can: "dead-letters:read", of: "installation" },
        query: queryOf(LONG_PAGE),
        response: DeadLetters,
        summary: "Entries our own code could not process, the newest first",
      }),
    )
    .post(
      "/panel/api/dead-letters/redrive",
      async ({ request }) => {
        const outcome = await redriveAllDeadLetters(redis, live.now());
        if (outcome.redriven === 0) noteNoChange(request);
        return outcome;
      },
      route({
        access: { can: "dead-letters:write", of: "installation" },
        response: Type.Object({
          redriven: Type.Integer({ description: "by this call: 10,000 at most" }),
          remaining: Type.Integer({ description: "dead letters that remain now" }),
        }),
        summary: "Redrive all dead letters, each in its own group; repeat while any remain",
      }),
    )
    .post(
      "/panel/api/dead-letters/:id/redrive",
      async ({ params }) => {
        const outcome = await redriveDeadLetter(redis, params.id, live.now());
        if (outcome === "redriven") return { id: params.id, redriven: true };
        throw notFound();
      },
      route({
        access: { can: "dead-letters:write", of: "installation" },
        response: Type.Object({ id: Type.String(), redriven: Type.Boolean() }),
        summary: "Let the entry's own group process it once more; repeating it is safe",
        errors: ["DEAD_LETTER_NOT_FOUND"],
      }),
    )
    .delete(
      "/panel/api/dead-letters/:id",
      async ({ params, body, request }) => {
        const { reason } = body;
        const letter = await discardDeadLetter(redis, params.id);
        if (!letter) throw notFound();
        noteChange(request, withoutEntry(letter), { discarded: reason });
        return new Response(null, { status: 204 });
      },
      route({
        access: { can: "dead-letters:write", of: "installation" },
        summary: "Discard an entry for good, with a reason for the audit log",
        errors: ["DEAD_LETTER_NOT_FOUND"],
        body: jsonBody(Discard, { reason: "A test shipment of last week." }),
        answers: { 204: { description: "discarded" } },
      }),
    );
}

/** @throws {Problem} 422 */
function cursorOf(text = ""): string | null {
  if (text === "") return null;
  if (parseLetterId(text)) return text;
  throw wrongCursor();
}

/** The entry itself may hold personal data. */
function withoutEntry({ id, log, entryId, group, reason }: DeadLetter) {
  return { id, log, entryId, group, reason };
}

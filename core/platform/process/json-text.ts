/**
 * Writes the JSON of long lists in turns of the event loop: `JSON.stringify` takes about 5 ms per MiB, and so does sending
 * one long string. The text is made and sent in pieces.
 */
import { turns } from "./next-turn.ts";

const PIECE_CHARACTERS = 256 * 1024;
const encoder = new TextEncoder();

/** Pieces of a JSON text, in order. */
export type JsonPieces = readonly string[];

/** @param viewOf the value to write for an item */
export async function jsonList<T>(
  items: Iterable<T>,
  viewOf: (item: T) => unknown,
): Promise<JsonPieces> {
  const turn = turns();
  const pieces: string[] = [];
  let piece = "";
  let separator = "[";
  for (const item of items) {
    piece += separator + JSON.stringify(viewOf(item));
    separator = ",";
    if (piece.length >= PIECE_CHARACTERS) {
      pieces.push(piece);
      piece = "";
    }
    if (turn.due()) await turn.take();
  }
  pieces.push(`${piece}${separator === "[" ? "[]" : "]"}`);
  return pieces;
}

/** @param members JSON by name */
export function jsonObject(members: Readonly<Record<string, string | JsonPieces>>): JsonPieces {
  const pieces: string[] = [];
  let piece = "{";
  for (const [name, value] of Object.entries(members)) {
    piece += `${piece === "{" ? "" : ","}${JSON.stringify(name)}:`;
    if (typeof value === "string") {
      piece += value;
      continue;
    }
    const [first = "", ...others] = value;
    pieces.push(...[piece + first, ...others].slice(0, -1));
    piece = others.at(-1) ?? piece + first;
  }
  return [...pieces, `${piece}}`];
}

/** A short text is sent with its length, a long one piece by piece. */
export function jsonResponse(pieces: JsonPieces): Response {
  const [only = "", ...others] = pieces;
  const rest = pieces.values();
  const turn = turns();
  const body =
    others.length === 0
      ? only
      : new ReadableStream({
          async pull(controller) {
            if (turn.due()) await turn.take();
            const { done, value } = rest.next();
            if (done) controller.close();
            else controller.enqueue(encoder.encode(value));
          },
        });
  return new Response(body, { headers: { "content-type": "application/json" } });
}

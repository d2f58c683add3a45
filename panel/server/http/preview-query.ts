/** `preview=true` of a call that changes something: it answers what would change, and changes nothing. */
import { type Static, Type } from "@sinclair/typebox";
import { Problem } from "#core/platform/errors/problem.ts";

export const PreviewQuery = Type.Object({
  preview: Type.Optional(Type.Unknown({ publishedAs: Type.Literal("true") })),
});

/** Whatever else it says must not be taken for the change itself. @throws {Problem} 422 */
export function isPreview({ preview }: Static<typeof PreviewQuery>): boolean {
  if (preview === undefined) return false;
  if (preview === "true") return true;
  throw new Problem(422, "INVALID_QUERY", "preview: true is the only value that it takes.");
}

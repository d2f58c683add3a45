/** Since when an entity is closed, in answers. */
import { Type } from "@sinclair/typebox";

export const closedAt = Type.Union([Type.String({ description: "ISO 8601" }), Type.Null()], {
  description: "null = it is open",
});

export function closedAtOf({ closedAtMs }: { readonly closedAtMs: number }): string | null {
  return closedAtMs === 0 ? null : new Date(closedAtMs).toISOString();
}

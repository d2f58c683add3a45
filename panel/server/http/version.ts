/** The version of an entity, in answers and as their `ETag`. */
import { Type } from "@sinclair/typebox";

export const version = Type.String({
  description:
    "another one after each change; a change with it in `If-Match` answers 412 if there has been one since",
});

/** Members of answers that may be null. */
import { Type } from "@sinclair/typebox";

export const nullableText = Type.Union([Type.String(), Type.Null()]);
export const nullableNumber = Type.Union([Type.Number(), Type.Null()]);

/** Any JSON, where an answer repeats what somebody else has made. */
import { Type } from "@sinclair/typebox";

const self = { $ref: "#/components/schemas/JsonValue" };

/** The component that a document which uses `jsonValue` has under this name. */
export const JsonValue = Type.Unsafe<unknown>({
  anyOf: [
    ...["string", "number", "boolean", "null"].map((type) => ({ type })),
    { type: "array", items: self },
    { type: "object", additionalProperties: self },
  ],
});

/** Published as a type of its own: generated clients then know that it is JSON. */
export const jsonValue = <T = unknown>(description?: string) =>
  Type.Unsafe<T>(
    Type.Unknown({ publishedAs: { ...JsonValue, ...(description && { description }) } }),
  );

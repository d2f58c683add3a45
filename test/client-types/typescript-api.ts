/**
 * @hey-api/openapi-ts needs the JavaScript API of TypeScript 5, which TypeScript 7 does not have. It gets the copy inside
 * ts-morph, which is in place once this file has been imported.
 */
import { ts } from "@ts-morph/common";
import { plugin } from "bun";

await plugin({
  name: "the API of TypeScript 5",
  setup(build) {
    build.module("typescript", () => ({ exports: { ...ts, default: ts }, loader: "object" }));
  },
});

/** Who owns an entity: a setup file that names it, or the panel. */
import { Type } from "@sinclair/typebox";
import type { ManagedBy } from "#core/setup/rules/merge-said.ts";

export const managedBySchema = Type.Unsafe<ManagedBy>(
  Type.Union([Type.Literal("setup.json"), Type.Literal("panel")], {
    description:
      "setup.json: a setup file has named it. A change by the panel stays until the file itself says something else of what was changed",
  }),
);

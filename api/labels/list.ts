/** `GET /v2/labels`, an extension of document 1: the channel's labels, so that none is left unconfirmed. */

import { type Static, Type } from "@sinclair/typebox";
import { merchantRoutes } from "#api/auth/authenticated.ts";
import type { ApiDeps } from "#api/deps.ts";
import { validationFailed } from "#api/http/error-response.ts";
import { NOT_MODIFIED, PAGE_HEADERS, TAG_HEADERS, tagged } from "#api/http/paging.ts";
import { LABELS_PER_LIST, listLabels, type StoredLabel } from "#core/merchants/store/labels.ts";
import { declared, route } from "#core/platform/http/access.ts";
import { pageLinks } from "#core/platform/http/page-links.ts";
import { searchParamsOf } from "#core/platform/http/search-params.ts";
import { inSamples, json, query } from "#core/platform/openapi/operation.ts";
import type { Fault } from "#core/platform/schema/fault.ts";
import { nullableText } from "#core/platform/schema/nullable.ts";
import { EXAMPLE_LABEL, LabelAgain, labelAgain } from "./label-again.ts";

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 100;
const STATES = ["open", "confirmed", "voided"] as const;
const ID = /^[1-9]\d{0,11}$/;
const LIMIT = /^[1-9]\d{0,2}$/;

const { labels: _, isExisting: __, warnings: ___, ...listed } = LabelAgain.properties;
export const LabelListed = Type.Object(listed);

export const LabelPage = Type.Object({
  items: Type.Array(LabelListed),
  nextCursor: { ...nullableText, description: "`cursor` of the next page; null on the last one" },
});
type LabelPage = Static<typeof LabelPage>;

const { labels: ____, isExisting: _____, ...EXAMPLE_ITEM } = EXAMPLE_LABEL;

const operation = declared({
  access: { scope: null },
  id: "listLabels",
  summary: "List the channel's labels",
  description: `The latest first, without their sheets: read one by its id for those. Labels are kept for 400 days. With a filter, a page reads ${LABELS_PER_LIST} labels at most: it may have fewer items than \`limit\` and still a \`nextCursor\`.`,
  extension: true,
  parameters: [
    query(
      "courier",
      Type.String({ minLength: 1, maxLength: 50 }),
      "Carrier code, exact.",
      "GENERIC",
    ),
    query(
      "state",
      Type.Union(STATES.map((state) => Type.Literal(state))),
      "`open`: neither confirmed nor voided.",
      "open",
    ),
    query("cursor", Type.String({ pattern: ID.source }), "`nextCursor` of the page before.", "81"),
    inSamples(
      query(
        "limit",
        Type.Integer({ minimum: 1, maximum: LIMIT_MAX }),
        `Default ${LIMIT_DEFAULT}.`,
        50,
      ),
    ),
  ],
  answers: {
    200: {
      ...json("A page of labels.", LabelPage, { items: [EXAMPLE_ITEM], nextCursor: "65" }),
      headers: { Link: PAGE_HEADERS.Link, ...TAG_HEADERS },
    },
    ...NOT_MODIFIED,
  },
  errors: ["VALIDATION_FAILED"],
});

export function listLabelsRoute(deps: ApiDeps) {
  const { redis, config } = deps;
  return merchantRoutes(deps).get(
    "/v2/labels",
    async ({ request, caller: { company, channel }, set }): Promise<Response> => {
      const { courier, state, afterId, limit } = readQuery(searchParamsOf(request));
      const owner = { companyId: company.id, channelId: channel.id };
      const page = await listLabels(redis, owner, { afterId, limit }, (label) => {
        const isOfCourier = courier === null || label.record.courier === courier;
        return isOfCourier && (state === null || stateOf(label) === state);
      });
      const nextCursor = page.nextId === null ? null : String(page.nextId);
      if (nextCursor !== null) {
        const link = pageLinks(request, [{ relation: "next", query: { cursor: nextCursor } }]);
        if (link !== null) set.headers["link"] = link;
      }
      const items = page.labels.map((label) => {
        const { labels, isExisting, ...item } = labelAgain(label, [], config.publicUrl);
        return item;
      });
      return tagged(request, { items, nextCursor } satisfies LabelPage);
    },
    route(operation),
  );
}

function stateOf({ transmission, voidedAtMs }: StoredLabel): (typeof STATES)[number] {
  if (voidedAtMs !== null) return "voided";
  return transmission === null ? "open" : "confirmed";
}

/** @throws {Problem} 422 */
function readQuery(params: URLSearchParams) {
  const faults: Fault[] = [];
  const state = params.get("state");
  const cursor = params.get("cursor");
  const limit = params.get("limit");
  if (state !== null && !STATES.some((one) => one === state)) {
    const message = `The state must be one of ${STATES.join(", ")}.`;
    faults.push({ path: "state", code: "NOT_ALLOWED", message });
  }
  if (cursor !== null && !ID.test(cursor)) {
    const message = "The cursor must be the `nextCursor` of a page.";
    faults.push({ path: "cursor", code: "BAD_FORMAT", message });
  }
  if (limit !== null && !(LIMIT.test(limit) && Number(limit) <= LIMIT_MAX)) {
    const message = `The limit must be a whole number from 1 to ${LIMIT_MAX}.`;
    faults.push({ path: "limit", code: "OUT_OF_RANGE", message });
  }
  if (faults.length > 0) throw validationFailed(faults);
  return {
    courier: params.get("courier"),
    state,
    afterId: cursor === null ? null : Number(cursor),
    limit: limit === null ? LIMIT_DEFAULT : Number(limit),
  };
}

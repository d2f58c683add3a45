/** `GET /v2/labels` and `DELETE /v2/labels/{id}`, extensions of document 1, "Labels". */
import { beforeAll, describe, expect, test } from "bun:test";
import { MIGRATIONS } from "#core/configuration/store/migrations.ts";
import { LABELS_PER_LIST } from "#core/merchants/store/labels.ts";
import { companyKeys, companyPartition } from "#core/platform/redis/keys.ts";
import { idAt, idPartition } from "#core/platform/redis/partitions.ts";
import { startNationalCarrier } from "#demo/national-carrier.ts";
import { labelBody, labelSetup } from "#test/support/data/label-setup.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestApi } from "#test/support/product/api.ts";

let token: string;
let outlet: string;

const carrier = forAll(async () => startNationalCarrier());
const api = forAll(() => openTestApi(labelSetup(), "away", { NATIONAL_CARRIER_URL: carrier.url }));
beforeAll(async () => {
  token = await api.token("key_acme_main");
  outlet = await api.token("key_acme_outlet");
});

const make = async (members: object = {}, as = token) =>
  api.call("POST", "/v2/labels", { token: as, body: labelBody({ ...members }) });
const voidIt = (id: number, as = token) => api.call("DELETE", `/v2/labels/${id}`, { token: as });
const list = (query = "", as = token) => api.call("GET", `/v2/labels${query}`, { token: as });
const idsOf = (answer: { body: { items: { id: number }[] } }) =>
  answer.body.items.map(({ id }) => id);
const keysOf = () => {
  const channel = api.runtime.live.configuration().channelByCode.get("acme-outlet");
  return {
    keys: companyKeys(companyPartition(channel?.companyId ?? 0)),
    channelId: channel?.id ?? 0,
  };
};

describe("void", () => {
  test("a label is void once, without its sheets, and its reference can have another one", async () => {
    const body = labelBody({ courier: "POSTE_ITA" });
    const first = await api.call("POST", "/v2/labels", { token, body });
    const answer = await voidIt(first.body.id);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      ...first.body,
      labels: [],
      isExisting: true,
      createdAt: expect.any(String),
      transmission: null,
      voidedAt: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*[+]0[12]:00$/),
    });
    expect(await voidIt(first.body.id)).toMatchObject({ status: 200, body: answer.body });
    expect((await api.call("GET", `/v2/labels/${first.body.id}`, { token })).body).toEqual(
      answer.body,
    );
    const again = await api.call("POST", "/v2/labels", { token, body });
    expect([again.status, again.body.id === first.body.id]).toEqual([201, false]);
    const numberOf = ({ body: { trackingNumbers } }: typeof first) => trackingNumbers[0].number;
    expect(numberOf(again)).not.toBe(numberOf(first));
  });

  test("a label that is confirmed is not voided, and one that is void is not confirmed", async () => {
    const [one, other] = [(await make()).body.id, (await make()).body.id];
    expect((await voidIt(other)).status).toBe(200);
    const confirm = () =>
      api.call("POST", "/v2/labels/confirm", {
        token,
        body: { courier: "GENERIC", labelIds: [one, other] },
      });
    const errors = [{ labelId: other, code: "LABEL_VOIDED" }];
    expect(await confirm()).toMatchObject({ status: 201, body: { confirmedIds: [one], errors } });
    expect(await confirm()).toMatchObject({ status: 200, body: { confirmedIds: [], errors } });
    expect(await voidIt(one)).toMatchObject({ status: 409, body: { code: "LABEL_CONFIRMED" } });
  });

  test("a carrier that refuses, or cannot void, leaves the label as it is; one that has voided it already does not", async () => {
    for (const [word, status] of [
      ["keep", 422],
      ["unvoidable", 422],
    ] as const) {
      const { body } = await make({ courier: "POSTE_ITA", reference: `${word}-1` });
      expect(await voidIt(body.id)).toMatchObject({ status, body: { code: "CARRIER_REFUSED" } });
      const { labels, voidedAt } = (await api.call("GET", `/v2/labels/${body.id}`, { token })).body;
      expect([labels, voidedAt]).toEqual([body.labels, null]);
    }
    const { id } = (await make({ courier: "POSTE_ITA" })).body;
    await fetch(`${carrier.url}/labels/label-${id}`, { method: "DELETE" });
    expect((await voidIt(id)).status).toBe(200);
  });

  test("another channel's label answers like a missing one", async () => {
    const { id } = (await make()).body;
    const [foreign, missing] = [await voidIt(id, outlet), await voidIt(999_984, outlet)];
    expect([foreign.status, foreign.body.code]).toEqual([404, "LABEL_NOT_FOUND"]);
    expect([missing.status, missing.body.code]).toEqual([404, "LABEL_NOT_FOUND"]);
  });
});

describe("list", () => {
  test("the channel's own labels, the latest first, by page, courier and state", async () => {
    const made: number[] = [];
    for (const courier of ["GENERIC", "POSTE_ITA", "GENERIC"]) {
      made.unshift((await make({ courier, weight: 1 }, outlet)).body.id);
    }
    const [last, middle, first] = made as [number, number, number];
    const page = await list("?limit=2", outlet);
    expect(page.body).toMatchObject({ items: [{ id: last }, { id: middle }] });
    expect(page.headers.get("link")).toContain('rel="next"');
    expect(Object.keys(page.body.items[0])).not.toContain("labels");
    const rest = await list(`?limit=2&cursor=${page.body.nextCursor}`, outlet);
    expect([idsOf(rest), rest.body.nextCursor]).toEqual([[first], null]);
    await voidIt(first, outlet);
    await api.call("POST", "/v2/labels/confirm", {
      token: outlet,
      body: { courier: "POSTE_ITA", labelIds: [middle] },
    });
    expect(idsOf(await list("?courier=GENERIC", outlet))).toEqual([last, first]);
    for (const [state, id] of [
      ["open", last],
      ["confirmed", middle],
      ["voided", first],
    ]) {
      expect(idsOf(await list(`?state=${state}`, outlet))).toEqual([Number(id)]);
    }
    const bad = await list("?state=gone&cursor=x&limit=101", outlet);
    expect(bad.status).toBe(422);
    expect(bad.body.violations).toMatchObject([
      { path: "state", code: "NOT_ALLOWED" },
      { path: "cursor", code: "BAD_FORMAT" },
      { path: "limit", code: "OUT_OF_RANGE" },
    ]);
  });

  test("labels that were made before channels had a list are added by the migration, whatever is repeated", async () => {
    const { redis } = api.runtime;
    // As stores of that time have them: 16 partitions, and ids in steps of 16.
    const [keys, channelId, ids] = [companyKeys(3), 9, [19, 35, 67]];
    for (const [createdAtMs, id] of ids.entries()) {
      await redis.hSet(keys.label(id), "d", JSON.stringify({ channelId, createdAtMs }));
    }
    await redis.set(keys.labelIds, "4");
    const migration = MIGRATIONS.find(({ version }) => version === 2);
    for (let round = 0; round < 2; round += 1) {
      let cursor: string | null = "";
      while (cursor !== null) {
        cursor = (await migration?.step(redis, cursor)) ?? null;
      }
    }
    expect(await redis.zRange(keys.channelLabels(channelId), 0, -1)).toEqual(ids.map(String));
  });

  test("a page with a filter reads so many labels at most, and the next one goes on behind them", async () => {
    const { keys, channelId } = keysOf();
    const [key, template] = [keys.channelLabels(channelId), idsOf(await list("", outlet))[0] ?? 0];
    const record = (await api.runtime.redis.hGet(keys.label(template), "d")) ?? "";
    const partition = idPartition(template);
    const pipeline = api.runtime.redis.multi();
    for (let at = 0; at < LABELS_PER_LIST; at += 1) {
      const id = idAt(100_000 + at, partition);
      pipeline.hSet(keys.label(id), { d: record, vd: "1" });
      pipeline.zAdd(key, { score: Date.now() + 86_400_000 + at, value: String(id) });
    }
    await pipeline.exec();
    const page = await list("?state=open", outlet);
    expect([idsOf(page), page.body.nextCursor]).toEqual([[], String(idAt(100_000, partition))]);
    expect(idsOf(await list(`?state=open&cursor=${page.body.nextCursor}`, outlet))).toHaveLength(1);
  });
});

/** The catalogue of a courier as a file (issue 18): preview, upload in one step, download, taking an upload back. */
import { describe, expect, test } from "bun:test";
import { applySetup } from "#core/setup/store/apply-setup.ts";
import { readShipments } from "#core/shipments/store/shipments.ts";
import { startRemaps } from "#processors/track/remap.ts";
import { testSetup } from "#test/support/data/setup.ts";
import { addShipment } from "#test/support/data/shipments.ts";
import { eventually } from "#test/support/eventually.ts";
import { forAll } from "#test/support/for-all.ts";
import { openTestPanel } from "#test/support/product/panel.ts";
import { openTestRuntime } from "#test/support/product/runtime.ts";
import { applyEvents } from "#test/support/product/webhooks.ts";

const IMPORT = "/panel/api/couriers/BRT_ITA/catalogue/import";
const HEAD = "code,description,status,statusDetail,terminal";

const runtime = forAll(() => openTestRuntime(testSetup()));
const panel = forAll(() => openTestPanel(runtime));
forAll(() => startRemaps(runtime));

const read = async (query: string, file: string) => {
  const { status, body } = await panel.call("POST", `${IMPORT}?${query}`, file);
  expect([status, body]).toEqual([200, body]);
  return body;
};
const download = async (query = "") =>
  (await panel.call("GET", `/panel/api/couriers/BRT_ITA/catalogue/file${query}`)).body as string;
const catalogue = async () =>
  (await panel.call("GET", "/panel/api/couriers/BRT_ITA/catalogue")).body.items;
const done = (id: string) =>
  eventually(async () => {
    const { body } = await panel.call("GET", `/panel/api/remaps/${id}`);
    return body.state === "done" ? body : null;
  }, `remap ${id} is done`);

describe("POST /panel/api/couriers/{code}/catalogue/import", () => {
  test("a preview tells everything and changes nothing; the upload changes it in one step that can be taken back", async () => {
    const id = await addShipment(runtime, "FILE-1", { courier: "BRT_ITA" });
    await applyEvents(runtime, id, [{ status: { code: "NEW", description: "Consegnata" } }]);
    const before = await catalogue();
    const [kept, changed] = before;
    const file = [
      HEAD,
      "NEW,Consegnata,DELIVERED,,true",
      "SOON,later,,,",
      `${changed.code},said otherwise,${changed.status},,${changed.terminal}`,
    ].join("\r\n");
    const seen = await read("preview=true&missing=remove", `\uFEFF${file}`);
    expect(seen.errors).toEqual([]);
    expect(seen.changes.added.map(({ code }: { code: string }) => code)).toEqual(["NEW", "SOON"]);
    expect(seen.changes.changed).toMatchObject([
      { before: changed, after: { code: changed.code } },
    ]);
    expect(seen.changes.removed).toHaveLength(before.length - 1);
    expect(seen.preview).toMatchObject({ events: 1, shipments: 1 });
    expect(await catalogue()).toEqual(before);

    const { remap, changes } = await read(`base=${seen.base}`, file);
    expect(changes).toMatchObject({ removed: [], kept: before.length - 1 });
    expect(remap.codes).toBe(3);
    const { progress } = await done(remap.id);
    expect(progress).toEqual({ examined: 1, shipments: 1, events: 1, statesChanged: 1 });
    const [shipment] = await readShipments(runtime.redis, [id]);
    expect(shipment?.state.pair.status).toBe("DELIVERED");
    expect(await catalogue()).toContainEqual(kept);

    const late = await panel.call("POST", `${IMPORT}?base=${seen.base}`, file);
    expect([late.status, late.body.code]).toEqual([409, "CATALOGUE_CHANGED"]);
    const reverted = await panel.call("POST", `/panel/api/remaps/${remap.id}/revert`);
    await done(reverted.body.id);
    expect(await catalogue()).toEqual(before);
  });

  test("the file that was downloaded changes nothing when it is uploaded", async () => {
    for (const query of ["", "?separator=semicolon"]) {
      const { changes, remap } = await read("missing=remove", await download(query));
      expect(changes).toMatchObject({ added: [], changed: [], removed: [], kept: 0 });
      expect(remap).toBeNull();
    }
    expect((await download("?separator=semicolon")).split("\r\n")[0]).toContain("code;description");
  });

  test("what is removed stays removed when the same setup file is applied again, and returns when the file says it otherwise", async () => {
    const [first, ...rest] = await catalogue();
    const lines = rest.map((one: { code: string; status: string }) => `${one.code},${one.status},`);
    const file = ["code,status,statusDetail", ...lines].join("\n");
    const { changes } = await read("missing=remove", file);
    expect(changes.removed).toEqual([first]);
    const setup = testSetup();
    const { vault } = runtime.secrets;
    await applySetup(runtime.redis, vault, setup, runtime.live.now());
    expect(await catalogue()).not.toContainEqual(first);
    const said = setup.couriers
      ?.find(({ code }) => code === "BRT_ITA")
      ?.catalogue?.find(({ code }) => code === first.code);
    Object.assign(said ?? {}, { description: "here again" });
    await applySetup(runtime.redis, vault, setup, runtime.live.now());
    expect(await catalogue()).toContainEqual({ ...first, description: "here again" });
  });

  test("a file with an error is refused whole, with the line and the column", async () => {
    const before = await catalogue();
    const file = `${HEAD}\nGOOD,,DELIVERED,,true\nBAD,,DELIVRD,,`;
    const seen = await read("preview=true", file);
    expect(seen).toMatchObject({
      changes: null,
      preview: null,
      errors: [{ line: 3, column: "status", reason: null }],
    });
    const { status, body } = await panel.call("POST", IMPORT, file);
    expect([status, body.code, body.violations[0].path]).toEqual([
      422,
      "INVALID_BODY",
      "lines[3].status",
    ]);
    expect(await catalogue()).toEqual(before);
  });

  test("2 MiB are read and one byte more is refused; what is not UTF-8 is refused", async () => {
    const file = `${HEAD}\nBIG,,DELAY,,\n`;
    const exact = `${file}${" ".repeat(2 * 1024 * 1024 - file.length)}`;
    expect((await panel.call("POST", `${IMPORT}?preview=true`, exact)).status).toBe(200);
    expect((await panel.call("POST", IMPORT, `${exact} `)).status).toBe(413);
    const bytes = new Request(`http://localhost${IMPORT}`, {
      method: "POST",
      headers: { authorization: `Bearer ${runtime.secrets.panelToken}` },
      body: Buffer.from(`${HEAD}\nX,citt\xe0,DELAY,,`, "latin1"),
    });
    const answer = await panel.handle(bytes);
    expect([answer.status, await answer.json()]).toMatchObject([400, { code: "MALFORMED_BODY" }]);
  });

  test("a catalogue takes 5,000 codes and not one more", async () => {
    const left = 5_000 - (await catalogue()).length;
    const lines = Array.from({ length: left + 1 }, (_, n) => `FULL${n},,,,`);
    const full = await panel.call("POST", IMPORT, [HEAD, ...lines].join("\n"));
    expect([full.status, full.body.code]).toEqual([409, "CATALOGUE_FULL"]);
    const { changes } = await read("", [HEAD, ...lines.slice(1)].join("\n"));
    expect(changes.added).toHaveLength(left);
  });

  test("the audit log has who uploaded and how much", async () => {
    const { body } = await panel.call("GET", "/panel/api/audit?target=/couriers/BRT_ITA");
    expect(body.items[0]).toMatchObject({
      actor: "PANEL_TOKEN",
      action: "POST /couriers/:code/catalogue/import",
    });
  });
});

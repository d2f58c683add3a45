/** The audit log says what was done in words, in both languages. */
import { describe, expect, test } from "bun:test";
import { en } from "#panel/web/i18n/en.ts";
import { it as italian } from "#panel/web/i18n/it.ts";
import { auditText } from "#panel/web/pages/audit/audit-text.ts";

describe("a change", () => {
  test("is told by what was changed and by its names, not by the call", () => {
    const action = "PUT /couriers/:code/catalogue/:statusCode";
    const target = "/couriers/GLS_ITA/catalogue/NEW-7";
    expect(auditText(en.audit, action, target)).toEqual({
      done: "Set",
      what: "courier GLS_ITA › code NEW-7",
    });
    expect(
      auditText(italian.audit, "POST /webhooks/:endpointId/disable", "/webhooks/e_1/disable"),
    ).toEqual({ done: "Aggiunto o fatto", what: "endpoint webhook e_1 › spento" });
  });

  test("without words of its own keeps the name that it has", () => {
    const { what } = auditText(en.audit, "POST /constructor/:id", "/constructor/7");
    expect(what).toBe("constructor 7");
  });
});

/** `GET /panel/explorer`: the benchmark explorer, behind the login page. */
import type { Insights } from "#analytics/insights.ts";
import { isItalianCap } from "#core/domain/benchmarks/lane.ts";
import { searchParamsOf } from "#core/http/search-params.ts";
import { Problem } from "#core/problem.ts";
import type { Runtime } from "#core/runtime.ts";
import {
  type ExplorerFindings,
  type ExplorerQuestion,
  explorerPage,
} from "#panel/explorer/page.ts";
import { pageResponse } from "#panel/html.ts";
import { panelPages } from "#panel/panel-routes.ts";

const QUALITY_MS = 7 * 86_400_000;
/** Of what the form's fields take. */
const FIELD_LENGTH = 64;

export function explorerRoute(runtime: Runtime, insights: Insights) {
  const { live } = runtime;
  async function find(question: ExplorerQuestion): Promise<ExplorerFindings> {
    const { destCap, originCap, weightKg, courier } = question;
    const nowMs = live.now();
    const lane = {
      destCap,
      originCap: originCap === "" ? null : originCap,
      weightKg: weightKg === "" ? null : Number(weightKg),
      nowMs,
    };
    const [found, provinces, trend, quality, silence] = await Promise.all([
      destCap === "" ? null : insights.lane(lane),
      insights.provinces(courier, nowMs),
      insights.trend(destCap, nowMs),
      insights.quality(nowMs - QUALITY_MS, nowMs),
      insights.silence(nowMs),
    ]);
    return { lane: found, provinces, trend, quality, silence };
  }

  return panelPages(runtime, "explorer").get(
    "/panel/explorer",
    async ({ request }) => {
      const question = questionOf(searchParamsOf(request));
      const fault = faultOf(question);
      const page = (status: number, findings: ExplorerFindings | string) =>
        pageResponse("Benchmark explorer", explorerPage(question, findings), { status });
      if (fault !== null) return page(422, fault);
      try {
        return page(200, await find(question));
      } catch (error) {
        if (error instanceof Problem && error.status === 503) return page(503, error.detail);
        throw error;
      }
    },
    { needs: { can: "benchmarks:read", of: "installation" } },
  );
}

function questionOf(params: URLSearchParams): ExplorerQuestion {
  const field = (name: string) => (params.get(name) ?? "").trim().slice(0, FIELD_LENGTH);
  return {
    destCap: field("destCap"),
    originCap: field("originCap"),
    weightKg: field("weightKg").replace(",", "."),
    courier: field("courier"),
  };
}

function faultOf({ destCap, originCap, weightKg }: ExplorerQuestion): string | null {
  for (const cap of [destCap, originCap]) {
    if (cap !== "" && !isItalianCap(cap)) return `${cap} is not an Italian CAP.`;
  }
  if (weightKg !== "" && !(Number(weightKg) > 0)) return "The weight must be more than 0 kg.";
  return null;
}

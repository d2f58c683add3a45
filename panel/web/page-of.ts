import { lazyRouteComponent } from "@tanstack/react-router";
import { ApiProblem, UNREACHABLE } from "#panel/web/api/call.ts";
import { tellProblem } from "./parts/tell.ts";

const RETRY_MS = 2_000;

/**
 * A page whose file is loaded when it is first opened. Without a network it keeps retrying and says so; the router by itself would
 * reload the whole address, and fail. It still reloads after an upgrade, whose files have other names.
 */
export function pageOf<Pages extends Record<string, unknown>, Name extends keyof Pages & string>(
  load: () => Promise<Pages>,
  name: Name,
) {
  return lazyRouteComponent(() => arrival(load), name);
}

/** What a chunk exports, once the network brings it. */
export async function arrival<Pages>(load: () => Promise<Pages>): Promise<Pages> {
  for (let isTold = false; ; isTold = true) {
    try {
      return await load();
    } catch (error) {
      if (await isServerThere()) throw error;
      if (!isTold) tellProblem(new ApiProblem(0, UNREACHABLE, "No answer came."));
      await new Promise((go) => setTimeout(go, RETRY_MS));
    }
  }
}

async function isServerThere(): Promise<boolean> {
  const answer = await fetch("/healthz", { cache: "no-store" }).catch(() => null);
  return answer !== null;
}

/**
 * The simulated carriers' depot: an HTTP gateway that takes stock releases as `api/shipments/release-carrier.ts` describes
 * it. A sync carrier does at once what it is asked; a deferred one says so later, by a tracking event.
 */
import type { CourierEvent } from "#core/events/rules/event.ts";

export interface Release {
  readonly releaseId: number;
  readonly courier: string;
  readonly trackingNumber: string;
  readonly action: string;
  readonly notes: string | null;
  readonly redeliveryDate: string | null;
  readonly address: object | null;
}

export interface Depot {
  /** `http://127.0.0.1:port/stock-release/{sync|deferred}` */
  readonly url: (mode: "sync" | "deferred") => string;
  readonly releases: readonly Release[];
  readonly stop: () => Promise<void>;
}

export interface DepotOptions {
  /** Tells the world what became of a parcel, through `POST /v1/events`. */
  readonly tell: (courier: string, event: CourierEvent) => Promise<void>;
  /** The courier's code and words for a release by an action. */
  readonly wordsOf: (courier: string, action: string) => CourierEvent["status"];
  readonly now: () => number;
}

/** A note with this word is answered as a carrier that refuses, fails or babbles. */
const MOODS = ["refuse", "fail", "error", "babble"] as const;
const RELEASES_KEPT = 1_000;

export function startDepot({ tell, wordsOf, now }: DepotOptions): Depot {
  const releases: Release[] = [];

  async function goOn({ courier, trackingNumber, action, releaseId }: Release): Promise<void> {
    await tell(courier, {
      eventId: `release-${courier}-${releaseId}`,
      trackingNumber,
      occurredAt: new Date(now()).toISOString(),
      status: wordsOf(courier, action),
    });
  }

  async function answer(request: Request, mode: string | undefined): Promise<Response> {
    const release = (await request.json()) as Release;
    releases.push(release);
    if (releases.length > RELEASES_KEPT) releases.shift();
    const mood = MOODS.find((word) => release.notes?.includes(word));
    switch (mood) {
      case "refuse":
        return Response.json({ message: "The parcel has left the depot." }, { status: 422 });
      case "fail":
        return new Response("down", { status: 500 });
      case "babble":
        return new Response("<html>");
      case "error":
        return Response.json({ outcome: "error", message: "No such street." });
      case undefined:
        void goOn(release).catch(() => {});
        return Response.json({ outcome: mode === "deferred" ? "pending" : "ok", message: null });
    }
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch(request) {
      const [, path, mode] = new URL(request.url).pathname.split("/");
      const isOurs = path === "stock-release" && request.method === "POST";
      return isOurs ? answer(request, mode) : new Response(null, { status: 404 });
    },
  });
  return {
    url: (mode) => `http://127.0.0.1:${server.port}/stock-release/${mode}`,
    releases,
    stop: () => server.stop(true),
  };
}

/**
 * The control panel's application: one shell for the address of every page, and its files. The shell holds no data and is
 * for everybody; what the pages show comes from the HTTP API, which asks who is there.
 */
import { randomBytes } from "node:crypto";
import { Problem } from "#core/platform/errors/problem.ts";
import { acceptsBrotli, acceptsGzip } from "#core/platform/http/accept-coding.ts";
import { publicRoutes } from "#core/platform/http/access.ts";
import { html, htmlPage } from "#core/platform/http/html.ts";
import type { Runtime } from "#core/runtime/runtime.ts";
import { sessionIdOf } from "#panel/server/accounts/cookies.ts";
import { UNSHARED } from "#panel/server/http/unshared.ts";
import { PAGE_PATHS, type PagePath, SHARED_QUALITY_PATH } from "#panel/web/paths.ts";
import { type Coding, type WebBundle, webBundle } from "./web-bundle.ts";

/** A name carries the hash of its content. */
const FOR_EVER = "public, max-age=31536000, immutable";

export function webRoutes({ config }: Pick<Runtime, "config">) {
  const app = publicRoutes("web").get("/assets/:file", async ({ params, request }) => {
    const { assets } = await webBundle(config.dataDir);
    const asset = assets.get(params.file);
    if (!asset) throw new Problem(404, "NOT_FOUND", "There is no such path.");
    const coding = codingFor(request.headers.get("accept-encoding"));
    return new Response(coding ? asset.coded[coding] : asset.body, {
      headers: {
        "content-type": asset.type,
        "cache-control": FOR_EVER,
        "x-content-type-options": "nosniff",
        vary: "accept-encoding",
        ...(coding && { "content-encoding": coding }),
      },
    });
  });
  for (const path of PAGE_PATHS) {
    app.get(path, async ({ request }) => {
      // Nobody who is not logged in is answered by the API.
      const isGuest = sessionIdOf({ config }, request) === "";
      const first = isGuest ? [] : FIRST_CALLS[path];
      const page = shellResponse(await webBundle(config.dataDir), { first, isGuest });
      return path === SHARED_QUALITY_PATH ? unshared(page) : page;
    });
  }
  // Where older alert mails and bookmarks lead.
  return app
    .get("/panel/explorer", () => movedTo("/benchmarks"))
    .get("/panel/webhooks/:id", ({ params }) =>
      movedTo(`/webhooks/${encodeURIComponent(params.id)}`),
    );
}

/** The application's files are small: what takes the fewest bytes is the fastest. */
function codingFor(header: string | null): Coding | null {
  if (acceptsBrotli(header)) return "br";
  return acceptsGzip(header) ? "gzip" : null;
}

function unshared(page: Response): Response {
  for (const [name, value] of Object.entries(UNSHARED)) page.headers.set(name, value);
  return page;
}

function movedTo(location: string): Response {
  return new Response(null, { status: 308, headers: { location } });
}

/** A person who mistyped an address reads so in the application; programs get the problem document. */
export async function notFoundPage(
  { config }: Pick<Runtime, "config">,
  { method, headers }: Request,
): Promise<Response | null> {
  const isPerson = method === "GET" && /\btext\/html\b/.test(headers.get("accept") ?? "");
  return isPerson ? shellResponse(await webBundle(config.dataDir), { status: 404 }) : null;
}

const ME = "/panel/api/me";
/** What a page asks the API first: the browser asks it while the scripts are still on their way. */
const FIRST_CALLS: Readonly<Partial<Record<PagePath, readonly string[]>>> = {
  ...Object.fromEntries(PAGE_PATHS.map((path) => [path, [ME]])),
  "/overview": [ME, "/panel/api/overview"],
  "/login": [],
  "/invitation/:token": [],
  [SHARED_QUALITY_PATH]: [],
};

interface ShellOptions {
  readonly status?: number;
  readonly first?: readonly string[] | undefined;
  /** Without a session: the application need not ask (`panel/web/api/guest.ts`). */
  readonly isGuest?: boolean;
}

function shellResponse(
  { script, styles }: WebBundle,
  { status = 200, first = [], isGuest = false }: ShellOptions,
): Response {
  const nonce = randomBytes(16).toString("base64");
  const page = htmlPage(
    "Waybill",
    html`<div id="root"></div>
<noscript>The control panel needs JavaScript.</noscript>`,
    html`${styles.map((style) => html`<link rel="stylesheet" href="/assets/${style}">`)}
${isGuest ? html`<meta name="waybill-visitor" content="guest">` : null}
${first.map((path) => html`<link rel="preload" as="fetch" crossorigin href="${path}">`)}
<script type="module" src="/assets/${script}" nonce="${nonce}"></script>`,
  );
  return new Response(page, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": policyOf(nonce),
      // The nonce is of this answer alone.
      "cache-control": "no-store",
      "referrer-policy": "same-origin",
      "x-content-type-options": "nosniff",
    },
  });
}

/** Nothing from other hosts, no inline script; the components write their variables into styles that carry the nonce. */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join("; ");
}

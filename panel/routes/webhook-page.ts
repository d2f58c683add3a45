/** `GET /panel/webhooks/{endpointId}`: one endpoint for people, where the links of alert mails lead. */
import { listDeliveries } from "#core/redis/webhooks/delivery-log.ts";
import type { Runtime } from "#core/runtime.ts";
import { type Html, html, pageResponse } from "#panel/html.ts";
import { panelPages } from "#panel/panel-routes.ts";
import { readHealth } from "#panel/webhook-access.ts";
import {
  type DeliveryView,
  deliveryView,
  type EndpointView,
  endpointView,
} from "#panel/webhook-view.ts";

/** Of the newest. */
export const DELIVERIES_SHOWN = 20;
const NEWEST = { fromMs: 0, toMs: Number.MAX_SAFE_INTEGER, cursor: null, limit: DELIVERIES_SHOWN };

export function webhookPage(runtime: Runtime) {
  const { redis, live } = runtime;
  return panelPages(runtime, "webhook page").get(
    "/panel/webhooks/:endpointId",
    async ({ params }) => {
      const configuration = await live.refresh();
      const endpoint = configuration.endpoints.get(params.endpointId);
      const channel = endpoint && configuration.channels.get(endpoint.channelId);
      if (!channel) {
        const fault = html`<main><p class="fault" role="alert">There is no such webhook.</p></main>`;
        return pageResponse("Webhook", fault, { status: 404 });
      }
      const health = await readHealth(runtime, configuration, endpoint);
      const view = endpointView(endpoint, channel.code, health, live.now());
      const { companyId } = channel;
      const newest = await listDeliveries(redis, companyId, endpoint.id, NEWEST, live.now());
      const deliveries = newest.deliveries.map((one) => deliveryView(one, configuration));
      return pageResponse(`Webhook ${view.code}`, pageOf(view, deliveries));
    },
    { needs: { can: "webhooks:read", of: "endpoint" } },
  );
}

function pageOf(view: EndpointView, deliveries: readonly DeliveryView[]): Html {
  const rows = [
    ["Channel", view.channel],
    ["URL", view.url],
    ["Status", statusOf(view)],
    ["Failing since", view.failingSince ?? "not failing"],
    ["Last error", view.lastError ? `${view.lastError.error}, ${view.lastError.at}` : "none"],
    ["Alerts go to", view.alertEmail],
  ];
  const api = `/panel/api/webhooks/${view.endpointId}`;
  return html`<header>
<h1>Webhook ${view.code}</h1>
<form method="post" action="/panel/logout"><button>Log out</button></form>
</header>
<main>
<table>
<tbody>
${rows.map(([name = "", value = ""]) => html`<tr><th scope="row">${name}</th><td>${value}</td></tr>`)}
</tbody>
</table>
<h2>Deliveries</h2>
${deliveryTable(deliveries)}
<p>As JSON: <a href="${api}">endpoint</a>, <a href="${api}/deliveries">delivery log</a></p>
</main>`;
}

function statusOf({ status, disabledReason, disabledSince }: EndpointView): string {
  if (status === "active" || disabledSince === null) return status;
  const reason = disabledReason === "failing" ? "3 days without success" : "switched off by hand";
  return `disabled since ${disabledSince}: ${reason}`;
}

function deliveryTable(deliveries: readonly DeliveryView[]): Html {
  if (deliveries.length === 0) return html`<p>None in the last 30 days.</p>`;
  return html`<div class="scroll"><table>
<thead><tr><th scope="col">Created</th><th scope="col">Event</th><th scope="col">State</th><th scope="col">Attempts</th><th scope="col">Last answer</th></tr></thead>
<tbody>
${deliveries.map(deliveryRow)}
</tbody>
</table></div>`;
}

function deliveryRow({ deliveryId, eventId, createdAt, state, attempts }: DeliveryView): Html {
  const last = attempts.at(-1);
  const answer = last ? (last.error ?? `status ${last.httpStatus}`) : "none yet";
  return html`<tr><td>${createdAt}</td><td><a href="/panel/api/deliveries/${deliveryId}">${eventId}</a></td><td>${state}</td><td>${attempts.length}</td><td>${answer}</td></tr>`;
}

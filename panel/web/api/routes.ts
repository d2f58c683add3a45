/** Types of the panel's HTTP API, read off its routes: a shape is written down once, beside its route. */
import type { createPanelApp } from "#panel/server/app.ts";

type Routes = ReturnType<typeof createPanelApp>["~Routes"];

type At<Tree, Path> = Path extends `/${infer Head}/${infer Tail}`
  ? Head extends keyof Tree
    ? At<Tree[Head], `/${Tail}`>
    : never
  : Path extends `/${infer Last}`
    ? Last extends keyof Tree
      ? Tree[Last]
      : never
    : never;

type Succeeded = 200 | 201 | 202;

/** What a call answers when it succeeds. */
export type Reply<Method extends string, Path extends string> =
  At<Routes, Path> extends { readonly [M in Method]: { readonly response: infer Answers } }
    ? Answers[Extract<keyof Answers, Succeeded>]
    : never;

export type Overview = Reply<"get", "/panel/api/overview">;
export type Lag = Overview["lag"][number];

export type Trace = Reply<"get", "/panel/api/shipments/:id/trace">;
export type Endpoint = Reply<"get", "/panel/api/webhooks/:endpointId">;
export type EndpointStats = Reply<"get", "/panel/api/webhooks/:endpointId/stats">;
export type Delivery = Reply<"get", "/panel/api/webhooks/:endpointId/deliveries">["items"][number];
export type DeliveryDetail = Reply<"get", "/panel/api/deliveries/:deliveryId">;
export type ReplayState = Reply<"get", "/panel/api/webhooks/:endpointId/replays/:replayId">;
export type Missed = Reply<"get", "/panel/api/webhooks/:endpointId/missed">;
export type Tested = Reply<"post", "/panel/api/webhooks/:endpointId/test">;
export type DeadLetter = Reply<"get", "/panel/api/dead-letters">["items"][number];
export type Courier = Reply<"get", "/panel/api/couriers/:code">;
export type CatalogueEntry = Reply<"get", "/panel/api/couriers/:code/catalogue">["items"][number];
export type UnmappedCode = Reply<"get", "/panel/api/unmapped-codes">["items"][number];
export type Remap = Reply<"get", "/panel/api/remaps/:id">;
export type MappingPreview = Extract<
  Reply<"put", "/panel/api/couriers/:code/catalogue/:statusCode">,
  { readonly preview: unknown }
>["preview"];
export type CatalogueUpload = Reply<"post", "/panel/api/couriers/:code/catalogue/import">;
export type CatalogueChanges = NonNullable<CatalogueUpload["changes"]>;
export type FirstDayAnswer = Reply<"post", "/panel/api/couriers/:code/comparison">;
export type FoundEvents = Reply<"get", "/panel/api/events">;
export type Incident = Reply<"get", "/panel/api/incidents">["open"][number];
export type AlarmReceiver = Reply<"get", "/panel/api/alarm-receivers">["items"][number];
export type Account = Reply<"get", "/panel/api/accounts">["items"][number];
export type AuditEntry = Reply<"get", "/panel/api/audit">["items"][number];
export type Job = Reply<"get", "/panel/api/jobs">["items"][number];
export type ShipmentItem = Reply<"get", "/panel/api/shipments">["items"][number];
export type InboxItem = Reply<"get", "/panel/api/couriers/:code/events">["items"][number];
export type RefusedCall = Reply<"get", "/panel/api/requests">["items"][number];
export type ShipmentDetail = Reply<"get", "/panel/api/shipments/:id">;
export type CompanyPage = Reply<"get", "/panel/api/companies">;
export type Company = Reply<"get", "/panel/api/companies/:code">;
export type Box = Company["boxes"][number];
export type Channel = Reply<"get", "/panel/api/channels/:channelCode">;
export type ChannelCourier = Channel["couriers"][number];
export type Template = Channel["emails"]["templates"][number];
export type Preview = Reply<"post", "/panel/api/channels/:channelCode/templates/preview">;

/** What the routes do not say in the OpenAPI document of the control panel's HTTP API. */
import { Type } from "@sinclair/typebox";
import { FaultItem } from "#core/domain/schema/fault.ts";
import { EndpointInput, EndpointPatch } from "#core/domain/webhooks/webhook-endpoint.ts";
import { errorsOf } from "#core/error-catalogue.ts";
import { explanationOf } from "#core/http/errors-page.ts";
import { type Api, header, problemExample } from "#core/http/openapi/document.ts";
import { AccountView } from "#panel/account-view.ts";
import {
  LaneView,
  ProvinceView,
  QualityView,
  SilenceView,
  TrendView,
  WeightView,
} from "#panel/analytics-view.ts";
import { Overview } from "#panel/overview-view.ts";
import { PANEL_BODY_BYTES } from "#panel/read-json.ts";
import { AuditEntry } from "#panel/routes/audit.ts";
import { ChannelView, IssuedApiKeyView } from "#panel/routes/channels.ts";
import { ChannelDetail, CompanyView } from "#panel/routes/companies.ts";
import { Activation, CourierView } from "#panel/routes/couriers.ts";
import { CodeMapping, MappingAnswer, PreviewAnswer } from "#panel/routes/mapping.ts";
import { Me, TotpCode } from "#panel/routes/me.ts";
import { RemapView } from "#panel/routes/remaps.ts";
import { ShipmentItem, ShipmentPageDetail } from "#panel/routes/shipments.ts";
import { Trace } from "#panel/routes/trace.ts";
import { Credentials } from "#panel/session.ts";
import {
  DeliveryDetail,
  DeliveryView,
  EndpointView,
  NewEndpointView,
  ReplayView,
} from "#panel/webhook-view.ts";

const Problem = Type.Object(
  {
    type: Type.String({ description: "address of the explanation of the code" }),
    title: Type.String(),
    status: Type.Integer(),
    code: Type.String({ description: "stable, upper snake case" }),
    detail: Type.String(),
    requestId: Type.String({ description: "as in the header X-Request-Id" }),
    violations: Type.Optional(
      Type.Array(FaultItem, { description: "what is wrong in a body or a query, and where" }),
    ),
    codes: Type.Optional(
      Type.Array(Type.String(), { description: "status codes that a later change has mapped" }),
    ),
  },
  { description: "RFC 7807" },
);

const RETRY_AFTER = { "Retry-After": header("Seconds.", { type: "integer" }) };

const OPERATION = { name: "Operation", description: "The service, its logs and its stores." };
const SHIPMENTS = { name: "Shipments", description: "Shipments, and what became of events." };
const WEBHOOKS = { name: "Webhooks", description: "Endpoints, their deliveries and replays." };
const CARRIERS = { name: "Carriers", description: "Access, catalogues and unmapped codes." };
const MERCHANTS = { name: "Merchants", description: "Companies, their channels and API keys." };
const ANALYTICS = { name: "Analytics", description: "Benchmarks, reporting quality and SQL." };
const PEOPLE = { name: "People", description: "Sessions, accounts, and who changed what." };

export const PANEL_API: Api = {
  info: {
    title: "Waybill control panel API",
    version: "1.0.0",
    description:
      "Everything that the control panel shows and changes. A script sends PANEL_TOKEN as a bearer token, a browser the cookie of a session. Members of a company or of a courier see what is theirs; what belongs to somebody else is 404. Instants are ISO 8601. This description needs no credentials: it holds no secret and is the same in every installation of a version.",
  },
  // In the order in which the segments of a path are looked for; the first is for all others.
  tags: {
    overview: OPERATION,
    ...{ webhooks: WEBHOOKS, "webhook-v1": WEBHOOKS, deliveries: WEBHOOKS },
    ...{ couriers: CARRIERS, remaps: CARRIERS, "unmapped-codes": CARRIERS },
    ...{ shipments: SHIPMENTS, events: SHIPMENTS, "number-conflicts": SHIPMENTS },
    ...{ channels: MERCHANTS, companies: MERCHANTS, "api-keys": MERCHANTS },
    ...{ analytics: ANALYTICS, sql: ANALYTICS },
    ...{ accounts: PEOPLE, invitations: PEOPLE, "password-reset": PEOPLE, session: PEOPLE },
    ...{ me: PEOPLE, audit: PEOPLE },
  },
  components: {
    ...{ Problem, Violation: FaultItem },
    ...{ Overview, Me, Account: AccountView, AuditEntry, Credentials, SecondFactorCode: TotpCode },
    ...{
      Company: CompanyView,
      Channel: ChannelView,
      ChannelDetail,
      IssuedApiKey: IssuedApiKeyView,
    },
    ...{ Courier: CourierView, CourierActivation: Activation },
    ...{ CodeMapping, MappedCode: MappingAnswer, MappingPreview: PreviewAnswer, Remap: RemapView },
    ...{ Shipment: ShipmentItem, ShipmentDetail: ShipmentPageDetail, Trace },
    ...{
      LaneCourier: LaneView,
      Province: ProvinceView,
      CourierMonth: TrendView,
      CourierWeight: WeightView,
    },
    ...{ CourierQuality: QualityView, CourierSilence: SilenceView },
    ...{ Endpoint: EndpointView, NewEndpoint: NewEndpointView },
    ...{ EndpointInput, EndpointPatch, Delivery: DeliveryView, DeliveryDetail, Replay: ReplayView },
  },
  namesAfterCalls: true,
  securitySchemes: {
    token: { type: "http", scheme: "bearer", description: "PANEL_TOKEN." },
    session: {
      type: "apiKey",
      in: "cookie",
      name: "waybill_session",
      description: "Of POST /panel/api/session. Behind HTTPS the name begins with __Host-.",
    },
  },
  security: { panel: [{ token: [] }, { session: [] }] },
  errors: errorsOf("operator"),
  nullIsAbsent: false,
  errorShape: (error) => ({
    content: [
      {
        schema: Problem,
        example: problemExample(error, explanationOf("operator", error.code) ?? "about:blank"),
        mediaType: "application/problem+json",
      },
    ],
    headers: error.status === 429 || error.status === 503 ? RETRY_AFTER : {},
  }),
  answerHeaders: () => ({}),
  bodyLimitBytes: PANEL_BODY_BYTES,
};

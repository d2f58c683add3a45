/** What the routes do not say in the OpenAPI document of the control panel's HTTP API. */
import { Type } from "@sinclair/typebox";
import { errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import { type Api, header, problemExample } from "#core/platform/openapi/document.ts";
import { FaultItem } from "#core/platform/schema/fault.ts";
import { JsonValue } from "#core/platform/schema/json-value.ts";
import { EndpointInput, EndpointPatch } from "#core/webhooks/rules/webhook-endpoint.ts";
import { AccountView } from "#panel/server/accounts/account-view.ts";
import { AuditEntry } from "#panel/server/accounts/audit.ts";
import { Me, TotpCode } from "#panel/server/accounts/me.ts";
import { Credentials } from "#panel/server/accounts/session.ts";
import {
  LaneView,
  ProvinceView,
  QualityView,
  SilenceView,
  TrendView,
  WeightView,
} from "#panel/server/benchmarks/analytics-view.ts";
import { ChannelView, IssuedApiKeyView } from "#panel/server/companies/channels.ts";
import { ChannelDetail, CompanyView } from "#panel/server/companies/companies.ts";
import { AppliedChannel, AppliedCompany } from "#panel/server/companies/company-setup.ts";
import { ChannelSteps } from "#panel/server/companies/onboarding.ts";
import { ImportAnswer } from "#panel/server/couriers/catalogue-file.ts";
import { AppliedCourier } from "#panel/server/couriers/courier-setup.ts";
import { CourierView } from "#panel/server/couriers/courier-view.ts";
import { Activation } from "#panel/server/couriers/couriers.ts";
import {
  CodeMapping,
  MappingAnswer,
  PreviewAnswer,
  SuggestionView,
} from "#panel/server/couriers/mapping.ts";
import { RemapPreview } from "#panel/server/couriers/preview-remap.ts";
import {
  NewQualityLink,
  QualityLinkView,
  SharedQuality,
} from "#panel/server/couriers/quality-links.ts";
import { RemapView } from "#panel/server/couriers/remaps.ts";
import { PANEL_BODY_BYTES } from "#panel/server/http/read-json.ts";
import { Overview } from "#panel/server/operations/overview-view.ts";
import { ExportedSetup } from "#panel/server/setup/export.ts";
import { ShipmentItem, ShipmentPageDetail } from "#panel/server/shipments/shipments.ts";
import { Trace } from "#panel/server/shipments/trace.ts";
import { LoggedDelivery, OneDelivery } from "#panel/server/webhooks/deliveries.ts";
import {
  DeliveryView,
  EndpointView,
  NewEndpointView,
  ReplayView,
} from "#panel/server/webhooks/webhook-view.ts";

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
    version: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: "of VERSION_CONFLICT: the present one; null = deleted",
      }),
    ),
    changedBy: Type.Optional(Type.Union([Type.String(), Type.Null()])),
    changedAt: Type.Optional(Type.Union([Type.String(), Type.Null()], { description: "ISO 8601" })),
  },
  { description: "RFC 7807" },
);

const RETRY_AFTER = { "Retry-After": header("Seconds.", { type: "integer" }) };

const OPERATION = { name: "Operation", description: "The service, its logs and its stores." };
const SHIPMENTS = { name: "Shipments", description: "Shipments, and what became of events." };
const WEBHOOKS = { name: "Webhooks", description: "Endpoints, their deliveries and replays." };
const COURIERS = { name: "Couriers", description: "Access, catalogues and unmapped codes." };
const MERCHANTS = { name: "Merchants", description: "Companies, their channels and API keys." };
const ANALYTICS = { name: "Analytics", description: "Benchmarks, reporting quality and SQL." };
const PEOPLE = { name: "People", description: "Sessions, accounts, and who changed what." };

/** Of what the paths name. */
const PARAMETER_EXAMPLES = {
  "couriers/{code}": "GLS_ITA",
  "companies/{code}": "acme",
  "{channelCode}": "acme-it",
  "{courierCode}": "GLS_ITA",
  "{statusCode}": "DLV",
  "{boxCode}": "S",
  "{event}": "review-request",
  "{language}": "it",
  "{endpointId}": "ep_ced7ce0cea3a0d43",
  "{deliveryId}": `dlv_00${"3b9f0c4d".repeat(4)}`,
  "replays/{replayId}": "rpl_005d2c8f1a9b3e4c70a1b2c3d4",
  "jobs/{jobId}": "7d0f9a52-8a0f-4f0e-9a36-0d6f6f4c0b11",
  "remaps/{id}": "1",
  "tokens/{id}": "tok_9f86d081884c7d65",
  "signing-secrets/{id}": "sec_2c26b46b68ffc68f",
  "api-keys/{id}": "key_b5bb9d8014a0f9b1",
  "accounts/{id}": "acc_7d865e959b246691",
  "quality-links/{id}": "ql_5f0c8a1e7d3b9264",
  "incidents/{id}": "inc_5c1e0f7a92b4d863",
  "alarm-receivers/{id}": "ar_91b2d07c3f5e6a48",
  "shipments/{id}": "4096",
  "dead-letters/{id}": "events-0-1795161600000-0",
  "{token}": "Zm9yLWV4YW1wbGUtb25seQ",
};

export const PANEL_API: Api = {
  info: {
    title: "Waybill control panel API",
    version: "1.0.0",
    description:
      "Everything that the control panel shows and changes. A script sends PANEL_TOKEN as a bearer token, a browser the cookie of a session. Members of a company or of a courier see what is theirs; what belongs to somebody else is 404. Lists that can grow have pages: `limit` says how many items, and 422 refuses one that is out of range; `cursor` is the `nextCursor` of the page before, null on the last one, and `Link` has the address of the next page. Without them `GET /panel/api/channels`, `/couriers` and a courier's catalogue are answered whole. Query parameters that a call does not list are ignored. Instants are ISO 8601. This description needs no credentials: it holds no secret and is the same in every installation of a version.",
  },
  // In the order in which the segments of a path are looked for; the first is for all others.
  tags: {
    overview: OPERATION,
    setup: OPERATION,
    incidents: OPERATION,
    "alarm-receivers": OPERATION,
    webhooks: WEBHOOKS,
    "webhook-v1": WEBHOOKS,
    deliveries: WEBHOOKS,
    couriers: COURIERS,
    remaps: COURIERS,
    "unmapped-codes": COURIERS,
    shipments: SHIPMENTS,
    events: SHIPMENTS,
    "number-conflicts": SHIPMENTS,
    channels: MERCHANTS,
    companies: MERCHANTS,
    "api-keys": MERCHANTS,
    analytics: ANALYTICS,
    sql: ANALYTICS,
    quality: ANALYTICS,
    accounts: PEOPLE,
    invitations: PEOPLE,
    "password-reset": PEOPLE,
    session: PEOPLE,
    me: PEOPLE,
    audit: PEOPLE,
  },
  components: {
    Problem,
    Violation: FaultItem,
    JsonValue,
    Overview,
    Me,
    Account: AccountView,
    AuditEntry,
    Credentials,
    SecondFactorCode: TotpCode,
    Company: CompanyView,
    Channel: ChannelView,
    ChannelDetail,
    AppliedCompany,
    ChannelSteps,
    AppliedChannel,
    AppliedCourier,
    SetupFile: ExportedSetup,
    IssuedApiKey: IssuedApiKeyView,
    Courier: CourierView,
    CourierActivation: Activation,
    CodeMapping,
    MappedCode: MappingAnswer,
    MappingPreview: PreviewAnswer,
    Remap: RemapView,
    RemapPreview,
    CatalogueUpload: ImportAnswer,
    MappingSuggestion: SuggestionView,
    QualityLink: QualityLinkView,
    NewQualityLink,
    SharedQuality,
    Shipment: ShipmentItem,
    ShipmentDetail: ShipmentPageDetail,
    Trace,
    LaneCourier: LaneView,
    Province: ProvinceView,
    CourierMonth: TrendView,
    CourierWeight: WeightView,
    CourierQuality: QualityView,
    CourierSilence: SilenceView,
    Endpoint: EndpointView,
    NewEndpoint: NewEndpointView,
    EndpointInput,
    EndpointPatch,
    Delivery: DeliveryView,
    LoggedDelivery,
    DeliveryDetail: OneDelivery,
    Replay: ReplayView,
  },
  namesAfterCalls: true,
  parameterExamples: PARAMETER_EXAMPLES,
  sampleToken: "PANEL_TOKEN",
  securitySchemes: {
    token: { type: "http", scheme: "bearer", description: "PANEL_TOKEN." },
    session: {
      type: "apiKey",
      in: "cookie",
      name: "waybill_session",
      description: "Of POST /panel/api/session. Behind HTTPS the name begins with __Host-.",
    },
  },
  security: [{ token: [] }, { session: [] }],
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

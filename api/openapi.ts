/** What the routes do not say in the OpenAPI document of the merchant API. */
import { TokenAnswer, TokenRequest } from "#api/auth/token.ts";
import { ChannelView } from "#api/channel/channel.ts";
import {
  CourierDeliveryTimes,
  DeliveryTimes,
  FastestCourier,
} from "#api/couriers/delivery-times.ts";
import { CourierEfficiency, EfficiencyIndex } from "#api/couriers/efficiency-index.ts";
import { BenchmarksUnavailable, Interval, LaneRequest } from "#api/couriers/lane-request.ts";
import { KeptPromises, OnTimeView } from "#api/couriers/on-time.ts";
import { CourierPromises, PromisedCourier, PromiseRequest } from "#api/couriers/promise.ts";
import { SMALL_BODY_BYTES } from "#api/http/body-limits.ts";
import { ErrorBody, ProblemDocument, Violation } from "#api/http/error-response.ts";
import { JobView } from "#api/jobs/job.ts";
import { ParcelJobView } from "#api/jobs/parcel-job-view.ts";
import { ConfirmView, TransmissionView } from "#api/labels/confirm.ts";
import { LabelAgain } from "#api/labels/label-again.ts";
import { LabelProblem } from "#api/labels/label-problem.ts";
import { LabelListed, LabelPage } from "#api/labels/list.ts";
import { TransmissionAgain } from "#api/labels/transmission.ts";
import { AcceptedParcels, OrderParcelPage } from "#api/parcels/collection.ts";
import { MEMBER_WORDS } from "#api/reference/member-words.ts";
import { SandboxPatch, SandboxPut, SandboxView } from "#api/sandbox/sandbox.ts";
import { CreatedShipment, CreatedShipments } from "#api/shipments/create.ts";
import { AcceptedImport, ImportBody } from "#api/shipments/import.ts";
import { NotificationAgain } from "#api/shipments/notification.ts";
import { AcceptedNotification } from "#api/shipments/notify.ts";
import { StockReleaseAgain } from "#api/shipments/release.ts";
import { ShipmentPage } from "#api/shipments/search.ts";
import {
  ExpectedDeliveryView,
  HistoryEntry,
  NotificationEntry,
  OrderItemView,
  ParcelView,
  ShipmentChanged,
  ShipmentDetail,
} from "#api/shipments/shipment-detail.ts";
import { StockRelease } from "#api/shipments/stock-release.ts";
import * as address from "#core/merchants/rules/address-check.ts";
import * as label from "#core/merchants/rules/label.ts";
import { NotificationBody } from "#core/merchants/rules/notification.ts";
import * as order from "#core/merchants/rules/order.ts";
import * as parcel from "#core/merchants/rules/order-parcel.ts";
import { StockReleaseBody } from "#core/merchants/rules/stock-release.ts";
import { type ErrorEntry, errorsOf } from "#core/platform/errors/error-catalogue.ts";
import { explanationOf } from "#core/platform/http/errors-page.ts";
import {
  type Api,
  EXAMPLE_REQUEST_ID,
  header,
  problemExample,
} from "#core/platform/openapi/document.ts";
import type { Content, Operation } from "#core/platform/openapi/operation.ts";
import { Warning } from "#core/platform/schema/unknown-members.ts";
import { ShipmentCorrection } from "#core/shipments/rules/correct.ts";
import { ImportCallbackView } from "#core/shipments/rules/import-callback.ts";
import { ImportResult, ImportSummary, ItemErrorView } from "#core/shipments/rules/import-result.ts";
import * as shipment from "#core/shipments/rules/shipment.ts";
import { ConsigneeView, ShipmentSummary } from "#core/shipments/rules/shipment-view.ts";
import { StatusSchema } from "#core/statuses/rules/status.ts";

const whole = { type: "integer" };
const RATE_HEADERS = {
  "X-RateLimit-Limit": header("Bucket size.", whole),
  "X-RateLimit-Remaining": header("Requests left until the next refill.", whole),
  "X-RateLimit-Reset": header("Unix timestamp of the refill.", whole),
  RateLimit: header(
    "The same as the IETF's draft says it: `r` requests left, refilled in `t` seconds.",
  ),
  "RateLimit-Policy": header(
    "`q` of `bucket`: the bucket's size. `q` of `refill`: requests added every `w` seconds.",
  ),
};
const ERROR_HEADERS = {
  "X-Error-Message": header("The message, in ASCII."),
  Link: header("Leads to the explanation of the code."),
};
const RETRY_AFTER = { "Retry-After": header("Seconds.", whole) };

export const MERCHANT_API: Api = {
  info: {
    title: "Waybill merchant API",
    version: "2.0.0",
    description:
      "Shipments, orders, labels, order parcels, address checks and courier benchmarks of a merchant channel. Tracking times are Europe/Rome local time without offset; other date-times are ISO 8601. A null member of a request counts as absent, unless the call says otherwise. A member of a body that is not known has no effect and is listed in `warnings` of the answer, in the header `X-Warnings` where the answer is a list; a query parameter that a call does not list is refused with 422 UNKNOWN_PARAMETER. Keys of mode `test` see the channel's shadow: a shipment whose tracking number begins with `TEST_DELIVERED`, `TEST_FAILED_THEN_DELIVERED`, `TEST_HELD`, `TEST_RETURNED`, `TEST_REFUSED`, `TEST_PICKUP_POINT`, `TEST_DELAYED`, `TEST_LOST`, `TEST_OUT_OF_ORDER`, `TEST_RENUMBERED` or `TEST_SILENT` lives so, an event a second, with real webhooks. Answers of 1 KiB and more are compressed for callers who send `Accept-Encoding: gzip`.",
  },
  tags: {
    auth: { name: "Authentication", description: "API keys are exchanged for access tokens." },
    channel: { name: "Channel", description: "What a key may use: registries, scopes, limits." },
    shipments: {
      name: "Shipments",
      description: "Shipments of the channel: create, search, read, release, notify.",
    },
    orders: { name: "Orders", description: "Orders of the channel, read only." },
    parcels: {
      name: "Order parcels",
      description: "Parcels of orders, by hash. The company must own the product api-parcels.",
    },
    labels: {
      name: "Labels",
      description: "Carrier labels, their confirmation, and what was voided.",
    },
    addresses: {
      name: "Addresses",
      description:
        "Postal addresses, checked against a geocoder or the national carrier's registry.",
    },
    couriers: { name: "Couriers", description: "Anonymous benchmarks of couriers on a lane." },
    jobs: { name: "Jobs", description: "Background jobs." },
    sandbox: { name: "Sandbox", description: "An entity for integration tests." },
  },
  components: {
    TokenRequest,
    Channel: ChannelView,
    Token: TokenAnswer,
    ErrorBody,
    ProblemDocument,
    Violation,
    Warning,
    LabelProblem,
    BenchmarksUnavailable,
    ShipmentSummary,
    ShipmentDetail,
    ShipmentChanged,
    ShipmentCorrection,
    ShipmentPage,
    Status: StatusSchema,
    Consignee: ConsigneeView,
    Parcel: ParcelView,
    OrderItem: OrderItemView,
    HistoryEntry,
    Notification: NotificationEntry,
    ShipmentsCreation: shipment.CreateBody,
    ShipmentsImport: ImportBody,
    NewShipment: shipment.ShipmentInput,
    NewConsignee: shipment.Consignee,
    NewParcel: shipment.Parcel,
    NewOrderItem: shipment.OrderItem,
    CreatedShipments,
    CreatedShipment,
    AcceptedImport,
    ImportSummary,
    ImportResult,
    ImportCallback: ImportCallbackView,
    ItemError: ItemErrorView,
    ImportJob: JobView,
    ParcelsJob: ParcelJobView,
    StockReleaseRequest: StockReleaseBody,
    StockRelease,
    NotificationRequest: NotificationBody,
    AcceptedNotification,
    Order: order.OrderView,
    OrderLine: order.OrderItemView,
    OrderParcel: parcel.OrderParcelView,
    OrderParcelPage,
    AcceptedParcels,
    ParcelsCreation: parcel.ParcelsCreation,
    ParcelUpdate: parcel.ParcelUpdate,
    LabelRequest: label.LabelRequest,
    LabelConsignee: label.LabelConsignee,
    LabelParcel: label.LabelParcel,
    LabelSender: label.LabelSender,
    Label: label.LabelView,
    LabelFormat: label.LabelFormat,
    ConfirmRequest: label.ConfirmRequest,
    Confirmation: ConfirmView,
    Transmission: TransmissionView,
    KeptPromises,
    OnTimeView,
    LabelAgain,
    LabelListed,
    LabelPage,
    TransmissionAgain,
    StockReleaseAgain,
    NotificationAgain,
    AddressCheckRequest: address.AddressCheckRequest,
    AddressCheck: address.AddressCheckView,
    LaneRequest,
    Interval,
    DeliveryTimes,
    FastestCourier,
    CourierDeliveryTimes,
    EfficiencyIndex,
    CourierEfficiency,
    ExpectedDelivery: ExpectedDeliveryView,
    PromiseRequest,
    CourierPromises,
    PromisedCourier,
    SandboxEntity: SandboxView,
    SandboxPut,
    SandboxPatch,
  },
  memberWords: MEMBER_WORDS,
  sampleToken: "the token of POST /v2/auth/token",
  securitySchemes: { accessToken: { type: "http", scheme: "bearer", bearerFormat: "JWT" } },
  security: [{ accessToken: [] }],
  errors: errorsOf("merchant"),
  nullIsAbsent: true,
  errorShape: (error, operation) => ({
    content: errorContents(error, operation),
    headers: {
      ...ERROR_HEADERS,
      ...(error.status === 429 && RATE_HEADERS),
      ...((error.status === 429 || error.status === 503) && RETRY_AFTER),
    },
  }),
  answerHeaders: (access) => (access === "public" ? {} : RATE_HEADERS),
  bodyLimitBytes: SMALL_BODY_BYTES,
};

/** Calls whose errors are problem documents share some errors with all calls, which come in the shorter error body. */
function errorContents(error: ErrorEntry, { problems }: Operation): Content[] {
  const { status, code, meaning, of } = error;
  const hasOwn = problems?.statuses.includes(status) === true;
  const example = problemExample(error, explanationOf("merchant", code) ?? "about:blank");
  if (status === 422) {
    const violations = code === "VALIDATION_FAILED" && { violations: [VIOLATION] };
    return [problem(hasOwn ? problems.schema : ProblemDocument, { ...example, ...violations })];
  }
  if (hasOwn && of === undefined) {
    const isShorterToo = "message" in problems.schema["properties"];
    return [problem(problems.schema, { ...example, ...(isShorterToo && { message: meaning }) })];
  }
  return [
    {
      schema: ErrorBody,
      example: { status, code, message: meaning, requestId: EXAMPLE_REQUEST_ID },
    },
  ];
}

const VIOLATION = { path: "limit", code: "OUT_OF_RANGE", message: "At most 100.", value: "101" };

function problem(schema: Content["schema"], example: unknown): Content {
  return { schema, example, mediaType: "application/problem+json" };
}

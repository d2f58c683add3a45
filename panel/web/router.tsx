/**
 * Every page with its address. The overview comes with the frame, so that the first page of most days needs nothing more;
 * the others are chunks of their own, loaded when they are first opened.
 */
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { isGuest } from "./api/guest.ts";
import { pageOf } from "./page-of.ts";
import { OverviewPage } from "./pages/overview/overview-page.tsx";
import { NotFoundPage } from "./parts/not-found-page.tsx";
import { PagePending } from "./parts/page-pending.tsx";
import { PageProblem } from "./parts/page-problem.tsx";
import { tabSearch } from "./parts/use-tab.ts";
import { isLoggedOut, meQuery, queries } from "./queries.ts";
import { Layout } from "./shell/layout.tsx";
import { firstPage } from "./shell/pages.ts";

/** What a page keeps in its address. */
function textsOf(
  search: Readonly<Record<string, unknown>>,
  names: readonly string[],
): Readonly<Record<string, string>> {
  const given = names.flatMap((name) => {
    // The router reads numbers out of the address.
    const text = String(search[name] ?? "");
    return text === "" ? [] : [[name, text] as const];
  });
  return Object.fromEntries(given);
}

const rootRoute = createRootRouteWithContext()({
  component: Outlet,
  notFoundComponent: NotFoundPage,
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: (search): { next?: string } =>
    typeof search["next"] === "string" ? { next: search["next"] } : {},
  component: pageOf(() => import("./pages/login/login-page.tsx"), "LoginPage"),
});

const invitationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/invitation/$token",
  component: pageOf(() => import("./pages/invitation/invitation-page.tsx"), "InvitationPage"),
});

/** For people without an account, who have the link. */
const sharedQualityRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/quality/$token",
  component: pageOf(() => import("./pages/quality/quality-page.tsx"), "QualityPage"),
});

/** Pages of people who are logged in. */
const insideRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "inside",
  component: Layout,
  beforeLoad: async ({ location }) => {
    if (isGuest()) throw redirect({ to: "/login", search: { next: location.href } });
    try {
      await queries.ensureQueryData(meQuery);
    } catch (error) {
      if (!isLoggedOut(error)) throw error;
      throw redirect({ to: "/login", search: { next: location.href } });
    }
  },
});

const startRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/",
  beforeLoad: async () => {
    throw redirect({ to: firstPage(await queries.ensureQueryData(meQuery)) });
  },
});

const overviewRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/overview",
  component: OverviewPage,
});

const homeRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/home",
  component: pageOf(() => import("./pages/home/home-page.tsx"), "HomePage"),
});

const webhooksRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/webhooks",
  component: pageOf(() => import("./pages/webhooks/webhooks-page.tsx"), "WebhooksPage"),
});

const webhookRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/webhooks/$id",
  validateSearch: (search) => textsOf(search, ["tab", "state", "q", "from", "to", "delivery"]),
  component: pageOf(() => import("./pages/webhooks/webhook-page.tsx"), "WebhookPage"),
});

const shipmentRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/shipments/$id",
  validateSearch: (search) => textsOf(search, ["asOf"]),
  component: pageOf(() => import("./pages/shipments/shipment-page.tsx"), "ShipmentPage"),
});

const benchmarksRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/benchmarks",
  validateSearch: (search) => textsOf(search, ["destCap", "originCap", "weightKg", "courier"]),
  component: pageOf(() => import("./pages/benchmarks/benchmarks-page.tsx"), "BenchmarksPage"),
});

const sqlRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/sql",
  component: pageOf(() => import("./pages/sql/sql-page.tsx"), "SqlPage"),
});

const deadLettersRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/dead-letters",
  component: pageOf(() => import("./pages/dead-letters/dead-letters-page.tsx"), "DeadLettersPage"),
});

const couriersRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/carriers",
  component: pageOf(() => import("./pages/couriers/couriers-page.tsx"), "CouriersPage"),
});

const courierRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/carriers/$code",
  validateSearch: tabSearch,
  component: pageOf(() => import("./pages/couriers/courier-page.tsx"), "CourierPage"),
});

const companiesRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/companies",
  component: pageOf(() => import("./pages/companies/companies-page.tsx"), "CompaniesPage"),
});

const companyRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/companies/$code",
  component: pageOf(() => import("./pages/companies/company-page.tsx"), "CompanyPage"),
});

const channelRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/channels/$code",
  validateSearch: tabSearch,
  component: pageOf(() => import("./pages/channels/channel-page.tsx"), "ChannelPage"),
});

const shipmentsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/shipments",
  validateSearch: (search) =>
    textsOf(search, [
      ...["q", "channel", "status", "courier"],
      ...["quietDays", "shipFrom", "shipTo", "sort"],
    ]),
  component: pageOf(() => import("./pages/shipments/shipments-page.tsx"), "ShipmentsPage"),
});

const inboxRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/inbox",
  validateSearch: (search) => textsOf(search, ["courier", "outcome", "code"]),
  component: pageOf(() => import("./pages/inbox/inbox-page.tsx"), "InboxPage"),
});

const requestsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/requests",
  validateSearch: (search) => textsOf(search, ["requestId", "status", "route"]),
  component: pageOf(() => import("./pages/requests/requests-page.tsx"), "RequestsPage"),
});

const accountsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/accounts",
  component: pageOf(() => import("./pages/accounts/accounts-page.tsx"), "AccountsPage"),
});

const auditRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/audit",
  component: pageOf(() => import("./pages/audit/audit-page.tsx"), "AuditPage"),
});

const meRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/me",
  component: pageOf(() => import("./pages/me/me-page.tsx"), "MePage"),
});

const alarmsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/alarms",
  component: pageOf(() => import("./pages/alarms/alarms-page.tsx"), "AlarmsPage"),
});

const jobsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/jobs",
  component: pageOf(() => import("./pages/jobs/jobs-page.tsx"), "JobsPage"),
});

const doctorRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/doctor",
  component: pageOf(() => import("./pages/doctor/doctor-page.tsx"), "DoctorPage"),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  invitationRoute,
  sharedQualityRoute,
  insideRoute.addChildren([
    startRoute,
    overviewRoute,
    homeRoute,
    webhooksRoute,
    webhookRoute,
    shipmentRoute,
    benchmarksRoute,
    sqlRoute,
    deadLettersRoute,
    couriersRoute,
    courierRoute,
    companiesRoute,
    companyRoute,
    channelRoute,
    shipmentsRoute,
    inboxRoute,
    requestsRoute,
    accountsRoute,
    auditRoute,
    meRoute,
    alarmsRoute,
    jobsRoute,
    doctorRoute,
  ]),
]);

export const router = createRouter({
  routeTree,
  defaultPreload: "intent",
  defaultPendingComponent: PagePending,
  defaultErrorComponent: PageProblem,
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

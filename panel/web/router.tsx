/** Every page with its address. Pages are chunks of their own, loaded when they are first opened. */
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from "@tanstack/react-router";
import { LoginPage } from "./pages/login/login-page.tsx";
import { NotFoundPage } from "./parts/not-found-page.tsx";
import { PagePending } from "./parts/page-pending.tsx";
import { PageProblem } from "./parts/page-problem.tsx";
import { isLoggedOut, meQuery, queries } from "./queries.ts";
import { Layout } from "./shell/layout.tsx";
import { firstPage } from "./shell/pages.ts";

const rootRoute = createRootRouteWithContext()({
  component: Outlet,
  notFoundComponent: NotFoundPage,
});

const loginRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/login",
  validateSearch: (search): { next?: string } =>
    typeof search["next"] === "string" ? { next: search["next"] } : {},
  component: LoginPage,
});

const invitationRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/invitation/$token",
  component: lazyRouteComponent(
    () => import("./pages/invitation/invitation-page.tsx"),
    "InvitationPage",
  ),
});

/** Pages of people who are logged in. */
const insideRoute = createRoute({
  getParentRoute: () => rootRoute,
  id: "inside",
  component: Layout,
  beforeLoad: async ({ location }) => {
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
    const { capabilities } = await queries.ensureQueryData(meQuery);
    throw redirect({ to: firstPage(capabilities) });
  },
});

const overviewRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/overview",
  component: lazyRouteComponent(() => import("./pages/overview/overview-page.tsx"), "OverviewPage"),
});

const webhooksRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/webhooks",
  component: lazyRouteComponent(() => import("./pages/webhooks/webhooks-page.tsx"), "WebhooksPage"),
});

const webhookRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/webhooks/$id",
  component: lazyRouteComponent(() => import("./pages/webhooks/webhook-page.tsx"), "WebhookPage"),
});

const shipmentRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/shipments/$id",
  component: lazyRouteComponent(
    () => import("./pages/shipments/shipment-page.tsx"),
    "ShipmentPage",
  ),
});

const benchmarksRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/benchmarks",
  validateSearch: (search) =>
    Object.fromEntries(
      (["destCap", "originCap", "weightKg", "courier"] as const).flatMap((name) => {
        // The router reads numbers out of the address.
        const text = String(search[name] ?? "");
        return text === "" ? [] : [[name, text]];
      }),
    ),
  component: lazyRouteComponent(
    () => import("./pages/benchmarks/benchmarks-page.tsx"),
    "BenchmarksPage",
  ),
});

const sqlRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/sql",
  component: lazyRouteComponent(() => import("./pages/sql/sql-page.tsx"), "SqlPage"),
});

const deadLettersRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/dead-letters",
  component: lazyRouteComponent(
    () => import("./pages/dead-letters/dead-letters-page.tsx"),
    "DeadLettersPage",
  ),
});

const carriersRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/carriers",
  component: lazyRouteComponent(() => import("./pages/carriers/carriers-page.tsx"), "CarriersPage"),
});

const carrierRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/carriers/$code",
  component: lazyRouteComponent(() => import("./pages/carriers/carrier-page.tsx"), "CarrierPage"),
});

const companiesRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/companies",
  component: lazyRouteComponent(
    () => import("./pages/companies/companies-page.tsx"),
    "CompaniesPage",
  ),
});

const companyRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/companies/$code",
  component: lazyRouteComponent(() => import("./pages/companies/company-page.tsx"), "CompanyPage"),
});

const channelRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/channels/$code",
  component: lazyRouteComponent(() => import("./pages/channels/channel-page.tsx"), "ChannelPage"),
});

const shipmentsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/shipments",
  component: lazyRouteComponent(
    () => import("./pages/shipments/shipments-page.tsx"),
    "ShipmentsPage",
  ),
});

const accountsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/accounts",
  component: lazyRouteComponent(() => import("./pages/accounts/accounts-page.tsx"), "AccountsPage"),
});

const auditRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/audit",
  component: lazyRouteComponent(() => import("./pages/audit/audit-page.tsx"), "AuditPage"),
});

const meRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/me",
  component: lazyRouteComponent(() => import("./pages/me/me-page.tsx"), "MePage"),
});

const jobsRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/jobs",
  component: lazyRouteComponent(() => import("./pages/jobs/jobs-page.tsx"), "JobsPage"),
});

const doctorRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/doctor",
  component: lazyRouteComponent(() => import("./pages/doctor/doctor-page.tsx"), "DoctorPage"),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  invitationRoute,
  insideRoute.addChildren([
    startRoute,
    overviewRoute,
    webhooksRoute,
    webhookRoute,
    shipmentRoute,
    benchmarksRoute,
    sqlRoute,
    deadLettersRoute,
    carriersRoute,
    carrierRoute,
    companiesRoute,
    companyRoute,
    channelRoute,
    shipmentsRoute,
    accountsRoute,
    auditRoute,
    meRoute,
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

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
  beforeLoad: () => {
    throw redirect({ to: "/overview" });
  },
});

const overviewRoute = createRoute({
  getParentRoute: () => insideRoute,
  path: "/overview",
  component: lazyRouteComponent(() => import("./pages/overview/overview-page.tsx"), "OverviewPage"),
});

const routeTree = rootRoute.addChildren([
  loginRoute,
  insideRoute.addChildren([startRoute, overviewRoute]),
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

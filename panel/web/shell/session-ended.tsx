/** When a session ends under an open page: a log-in in front of it, after which the visitor goes on where they were. */
import { useRouter } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { arrival } from "#panel/web/page-of.ts";
import { isLoggedOut, meQuery, queries } from "#panel/web/queries.ts";

const SessionDialog = lazy(async () => ({
  default: (await arrival(() => import("./session-dialog.tsx"))).SessionDialog,
}));

export function SessionEnded() {
  const [hasEnded, setHasEnded] = useState(false);
  useLoggedOut(useCallback(() => setHasEnded(true), []));
  const goOn = useGoOn();
  if (!hasEnded) return null;
  return (
    <Suspense>
      <SessionDialog
        onEntered={async () => {
          if (await goOn()) setHasEnded(false);
        }}
      />
    </Suspense>
  );
}

/** Tells of an answer to whatever the page has asked or sent that says that nobody is logged in. */
function useLoggedOut(onLoggedOut: () => void): void {
  useEffect(() => {
    const look = (error: unknown) => {
      if (isLoggedOut(error)) onLoggedOut();
    };
    const stopQueries = queries.getQueryCache().subscribe(({ type, query }) => {
      if (type === "updated") look(query.state.error);
    });
    const stopActions = queries.getMutationCache().subscribe(({ type, mutation }) => {
      if (type === "updated") look(mutation.state.error);
    });
    return () => {
      stopQueries();
      stopActions();
    };
  }, [onLoggedOut]);
}

/** @returns whether the visitor goes on where they were; else the page that stands is not theirs to see */
function useGoOn() {
  const router = useRouter();
  return async (): Promise<boolean> => {
    const before = queries.getQueryData(meQuery.queryKey);
    const now = await queries.fetchQuery({ ...meQuery, staleTime: 0 });
    // Somebody else begins at their own first page.
    if (JSON.stringify(before) !== JSON.stringify(now)) {
      location.assign("/");
      return false;
    }
    // A page that could not be shown is tried again; on one that stands, what was typed stays.
    const isBroken = ({
      state,
    }: {
      readonly state: { readonly data: unknown; readonly error: unknown };
    }) => state.data === undefined && state.error !== null;
    const wasBroken = queries.getQueryCache().getAll().some(isBroken);
    await queries.resetQueries({ predicate: isBroken });
    if (wasBroken) await router.invalidate();
    void queries.invalidateQueries();
    return true;
  };
}

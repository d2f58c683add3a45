/** When a session ends under an open page: a log-in in front of it, after which the visitor goes on where they were. */
import { Modal, Stack, Text } from "@mantine/core";
import { useRouter } from "@tanstack/react-router";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { useText } from "#panel/web/i18n/text.tsx";
import { isLoggedOut, meQuery, queries } from "#panel/web/queries.ts";

const LoginForms = lazy(async () => ({
  default: (await import("#panel/web/pages/login/login-forms.tsx")).LoginForms,
}));

/** In front of a form of the page. */
const Z_INDEX = 400;

export function SessionEnded() {
  const { t } = useText();
  const [hasEnded, setHasEnded] = useState(false);
  useLoggedOut(useCallback(() => setHasEnded(true), []));
  const goOn = useGoOn();
  return (
    <Modal
      opened={hasEnded}
      onClose={() => {}}
      title={t.session.ended}
      withCloseButton={false}
      zIndex={Z_INDEX}
      // What the page shows is for those who are logged in.
      overlayProps={{ backgroundOpacity: 1 }}
    >
      <Stack>
        <Text size="sm">{t.session.endedText}</Text>
        <Suspense>
          <LoginForms
            onEntered={async () => {
              if (await goOn()) setHasEnded(false);
            }}
          />
        </Suspense>
      </Stack>
    </Modal>
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

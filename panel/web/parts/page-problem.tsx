import { Alert, Button, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { ApiProblem } from "#panel/web/api/call.ts";
import { problemText } from "#panel/web/i18n/problem-text.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { faultText } from "./fault-of.ts";
import { NotFoundPage } from "./not-found-page.tsx";

/** What a page shows when it cannot be shown. */
export function PageProblem({ error, reset }: ErrorComponentProps) {
  // What a role does not include is not there for it.
  const isNotTheirs = error instanceof ApiProblem && [403, 404].includes(error.status);
  if (isNotTheirs) return <NotFoundPage />;
  return <ProblemNote error={error} onRetry={reset} />;
}

interface ProblemNoteProps {
  readonly error: unknown;
  readonly onRetry?: () => void;
}

/** The problem of a call, where its answer would stand. */
export function ProblemNote({ error, onRetry }: ProblemNoteProps) {
  const { t } = useText();
  if (!error) return null;
  const violations = error instanceof ApiProblem ? error.violations : [];
  return (
    <Alert color="red" icon={<IconAlertTriangle aria-hidden />} role="alert">
      <Stack gap="xs" align="start">
        <Text size="sm">{problemText(t, error)}</Text>
        {violations.map((violation) => (
          <Text key={`${violation.path} ${violation.message}`} size="sm">
            <b>{violation.path}</b> {faultText(violation)}
          </Text>
        ))}
        {onRetry && (
          <Button size="xs" variant="default" onClick={onRetry}>
            {t.app.retry}
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

import { Alert, Button, Stack, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import type { ErrorComponentProps } from "@tanstack/react-router";
import { ApiProblem } from "#panel/web/api/call.ts";
import { useText } from "#panel/web/i18n/text.tsx";
import { NotFoundPage } from "./not-found-page.tsx";

/** What a page shows when it cannot be shown. */
export function PageProblem({ error, reset }: ErrorComponentProps) {
  if (error instanceof ApiProblem && error.status === 404) return <NotFoundPage />;
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
  const isAway = error instanceof ApiProblem && error.status === 0;
  const detail = error instanceof Error ? error.message : String(error);
  const violations = error instanceof ApiProblem ? error.violations : [];
  return (
    <Alert color="red" icon={<IconAlertTriangle aria-hidden />} role="alert">
      <Stack gap="xs" align="start">
        <Text size="sm">{isAway ? t.app.unreachable : detail}</Text>
        {violations.map(({ path, message }) => (
          <Text key={`${path} ${message}`} size="sm">
            <b>{path}</b> {message}
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

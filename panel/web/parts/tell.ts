import { notifications } from "@mantine/notifications";
import { problemText } from "#panel/web/i18n/problem-text.ts";
import { wordsNow } from "#panel/web/i18n/text.tsx";

const PROBLEM_SHOWN_MS = 8_000;

/** Says briefly that something has been done. */
export function tell(message: string): void {
  notifications.show({ message, color: "teal", closeButtonProps: closeButton() });
}

/** Says that something could not be done, and why. */
export function tellProblem(error: Error): void {
  tellFailure(problemText(wordsNow(), error));
}

/** The same in words of the page. */
export function tellFailure(message: string): void {
  const autoClose = PROBLEM_SHOWN_MS;
  notifications.show({ message, color: "red", autoClose, closeButtonProps: closeButton() });
}

function closeButton() {
  return { "aria-label": wordsNow().common.close };
}

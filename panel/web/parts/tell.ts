import { notifications } from "@mantine/notifications";

/** Says briefly that something has been done. */
export function tell(message: string): void {
  notifications.show({ message, color: "teal" });
}

/** Says that something could not be done, and why. */
export function tellProblem(error: Error): void {
  notifications.show({ message: error.message, color: "red", autoClose: 8_000 });
}

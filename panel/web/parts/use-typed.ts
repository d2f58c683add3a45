import { useDebouncedCallback } from "@mantine/hooks";
import { useRouter } from "@tanstack/react-router";

const TYPING_MS = 300;

/**
 * A change of the address that waits until a person stops typing. Whoever has gone on to another page meanwhile stays
 * there.
 */
export function useTyped<T>(change: (asked: T) => void): (asked: T) => void {
  const router = useRouter();
  const changeHere = useDebouncedCallback((asked: T, path: string) => {
    if (router.latestLocation.pathname === path) change(asked);
  }, TYPING_MS);
  return (asked) => changeHere(asked, router.latestLocation.pathname);
}

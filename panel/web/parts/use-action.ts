/** A change or a question that a form or a button sends. */
import {
  type UseMutationOptions,
  type UseMutationResult,
  useMutation,
} from "@tanstack/react-query";
import { useCallback, useRef } from "react";

/**
 * As `useMutation`, but it does not start again while a call is pending: a button is busy only after the next render, and the
 * second click of a double click, or a second Enter, comes before that.
 */
export function useAction<Answer, Wanted = void>(
  options: UseMutationOptions<Answer, Error, Wanted>,
): UseMutationResult<Answer, Error, Wanted> {
  const action = useMutation(options);
  const { mutateAsync } = action;
  const isUnderWay = useRef(false);
  const mutate = useCallback<typeof action.mutate>(
    (...wanted) => {
      if (isUnderWay.current) return;
      isUnderWay.current = true;
      const release = () => {
        isUnderWay.current = false;
      };
      mutateAsync(...wanted).then(release, release);
    },
    [mutateAsync],
  );
  return { ...action, mutate };
}

/** A list that comes page by page: the rows so far, and the call for more when the end of the table is near. */
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

export function usePaged<T>(
  queryKey: QueryKey,
  ask: (cursor: string, signal: AbortSignal) => Promise<ListPage<T>>,
) {
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage } =
    useInfiniteQuery({
      queryKey,
      queryFn: ({ signal, pageParam }) => ask(pageParam, signal),
      initialPageParam: "",
      getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
    });
  const rows = useMemo(() => data?.pages.flatMap(({ items }) => items) ?? [], [data]);
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { rows, error, isLoading: isPending || isFetchingNextPage, onEnd };
}

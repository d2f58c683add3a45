/** A list that comes page by page: the rows so far, and the call for more when the end of the table is near. */
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import { useCallback, useMemo } from "react";

interface ListPage<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

type ItemOf<Page> = Page extends ListPage<infer T> ? T : never;

/** @param everyMs asks again for all pages that are there; 0 = only when asked to */
export function usePaged<Page extends ListPage<unknown>>(
  queryKey: QueryKey,
  ask: (cursor: string, signal: AbortSignal) => Promise<Page>,
  everyMs = 0,
) {
  const { data, error, isPending, hasNextPage, isFetchingNextPage, fetchNextPage } =
    useInfiniteQuery({
      queryKey,
      queryFn: ({ signal, pageParam }) => ask(pageParam, signal),
      initialPageParam: "",
      getNextPageParam: ({ nextCursor }) => nextCursor ?? undefined,
      refetchInterval: everyMs === 0 ? false : everyMs,
    });
  const pages = data?.pages;
  const rows = useMemo(() => pages?.flatMap(({ items }) => items as ItemOf<Page>[]) ?? [], [pages]);
  const onEnd = useCallback(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  return { rows, pages, error, isLoading: isPending || isFetchingNextPage, onEnd };
}

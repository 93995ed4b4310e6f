/**
 * Does `work` for every item, `lanes` at a time, in their order. The first failure, or an abort, lets
 * nothing more begin; it is thrown when what had begun is over.
 */
export async function runLanes<Item>(
  items: readonly Item[],
  { lanes, signal }: { readonly lanes: number; readonly signal: AbortSignal },
  work: (item: Item) => Promise<void>,
): Promise<void> {
  const left = items.values();
  let failure: { readonly reason: unknown } | undefined;
  const runLane = async (): Promise<void> => {
    for (const item of left) {
      if (failure || signal.aborted) return;
      try {
        await work(item);
      } catch (reason) {
        failure ??= { reason };
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, items.length) }, runLane));
  signal.throwIfAborted();
  if (failure) throw failure.reason;
}

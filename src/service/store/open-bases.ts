import type { VirtualBase } from '../../media/serve/virtual.ts';

/** ISOs that are open. */
export type OpenBases = {
  /** @returns the same, whose reads are noted */
  readonly add: (base: VirtualBase, onFailure: () => void) => VirtualBase;
  /** It is closed when nobody has read from it for a while: downloads of it go on. */
  readonly retire: (base: VirtualBase) => void;
  readonly close: () => Promise<void>;
};

/** Milliseconds; a client that takes no byte for so long has lost its connection before. */
const IDLE = 300_000;

export function createOpenBases(idle = IDLE): OpenBases {
  const open = new Set<VirtualBase>();
  const usedAt = new Map<VirtualBase, number>();
  const retired = new Set<VirtualBase>();
  const closeIdle = (): void => {
    for (const base of retired) {
      if (performance.now() - (usedAt.get(base) ?? 0) < idle) continue;
      retired.delete(base);
      usedAt.delete(base);
      open.delete(base);
      base.close().catch(() => undefined); // nobody reads from it
    }
  };
  return {
    add(base, onFailure) {
      const noted: VirtualBase = {
        ...base,
        fill(bytes, offset, signal) {
          usedAt.set(noted, performance.now());
          const filling = base.fill(bytes, offset, signal);
          filling?.catch(() => {
            if (!signal.aborted) onFailure();
          });
          return filling;
        },
      };
      open.add(noted);
      closeIdle();
      return noted;
    },
    retire(base) {
      usedAt.set(base, performance.now());
      retired.add(base);
      closeIdle();
    },
    async close() {
      for (const base of open) await base.close();
    },
  };
}

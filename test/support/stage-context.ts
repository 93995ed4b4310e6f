import type { StageContext } from '../../src/engine/stage.ts';

/** A context that nobody listens to, but for its warnings. */
export const createStageContext = (
  signal: AbortSignal = new AbortController().signal,
  warn: (message: string) => void = () => undefined,
): StageContext => ({ signal, warn, onProgress: () => undefined });

import { withoutUndefined } from '../../base/lists.ts';
import type { EventListener } from '../../engine/engine.ts';
import type { CliHost } from '../host.ts';
import { createProgress, type LogFormat } from './progress.ts';

export type Watched = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
  readonly warn: (message: string) => void;
  readonly emit: EventListener;
};

/** Draws work that is not a stage of a build as one, under this name. */
export async function runWithProgress<Result>(
  {
    stage,
    logFormat,
    host,
  }: { readonly stage: string; readonly logFormat: LogFormat; readonly host: CliHost },
  work: (watched: Watched) => Promise<Result>,
): Promise<Result> {
  const { listener, close } = createProgress(host, logFormat);
  const started = host.now();
  listener({ type: 'stage-started', stage });
  try {
    const result = await work({
      signal: host.signal,
      onProgress(bytes, total) {
        listener({ type: 'stage-progress', stage, bytes, ...withoutUndefined({ total }) });
      },
      emit: listener,
      warn(message) {
        listener({ type: 'warning', message });
      },
    });
    listener({ type: 'stage-done', stage, milliseconds: host.now() - started });
    return result;
  } finally {
    close();
  }
}

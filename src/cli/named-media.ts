import { withoutUndefined } from '../base/lists.ts';
import type { RandomAccess } from '../base/random-access.ts';
import type { EventListener } from '../engine/index.ts';
import type { IsoImage } from '../iso/index.ts';
import { useMedium, useSource } from '../media/open.ts';
import { isElsewhere } from '../outputs/read/open.ts';
import { hostPlacesOf, type CliHost } from './host.ts';
import { OUTPUT_STAGES } from './terminal/meters.ts';
import { createProgress, type LogFormat } from './terminal/progress.ts';

/* This file owns work that is shown with its progress, and media as the command line names them. */

export type Watched = {
  readonly signal: AbortSignal;
  readonly onProgress: (bytes: number, total?: number) => void;
  readonly warn: (message: string) => void;
  readonly emit: EventListener;
};

type WatchedStage = {
  readonly stage: string;
  readonly logFormat: LogFormat;
  readonly host: CliHost;
  /** Describes the rest of an interrupted run, if it is not the amount that progress counts. */
  readonly describeLeft?: () => string | undefined;
};

/** Shows work that is not a stage of a build as a stage with this name. */
export async function runWithProgress<Result>(
  { stage, logFormat, host, describeLeft }: WatchedStage,
  work: (watched: Watched) => Promise<Result>,
): Promise<Result> {
  const { listener, close } = createProgress(host, logFormat);
  const started = host.now();
  if (describeLeft || OUTPUT_STAGES.has(stage)) host.continuation?.begin(describeLeft);
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
    host.continuation?.end();
    listener({ type: 'stage-done', stage, milliseconds: host.now() - started });
    return result;
  } finally {
    close();
  }
}

/** Description of the argument `<iso>` of every command that opens media by `useNamed`. */
export const ISO_ARGUMENT = 'ISO: a file, a block device, or an https://, oci:// or s3:// address';

/** Opens a medium as the command line names it, works with it, and closes it; `name` may be printed. */
export async function useNamed<Result>(
  text: string,
  host: CliHost,
  work: (source: RandomAccess, name: string) => Promise<Result>,
): Promise<Result> {
  const { listener, close } = createProgress(host, 'plain');
  try {
    return await useWatched(text, { ...host, emit: listener }, work);
  } finally {
    close();
  }
}

export const useIso = <Result>(
  text: string,
  host: CliHost,
  work: (iso: IsoImage, name: string) => Promise<Result>,
): Promise<Result> =>
  useNamed(text, host, (source, name) => useMedium(source, (iso) => work(iso, name)));

/** Opens a medium inside `runWithProgress`, works with it, and closes it; `name` may be printed. */
export const useWatched = <Result>(
  text: string,
  host: CliHost & Pick<Watched, 'emit'>,
  work: (source: RandomAccess, name: string) => Promise<Result>,
): Promise<Result> =>
  useSource(text, { ...hostPlacesOf(host), signal: host.signal, emit: host.emit }, (source) =>
    work(source, isElsewhere(text) ? source.path : text),
  );

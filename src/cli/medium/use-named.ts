import type { IsoImage } from '../../iso/read/open.ts';
import type { RandomAccess } from '../../base/random-access.ts';
import { useMedium } from '../../media/open.ts';
import { isElsewhere, useSource } from '../../outputs/read/open.ts';
import { placesOf, type CliHost } from '../host.ts';
import { createProgress } from '../terminal/progress.ts';
import type { Watched } from '../terminal/run-with-progress.ts';

/** What `<iso>` of these commands may be. */
export const ISO_ARGUMENT = 'ISO: a file, a block device, or an https://, oci:// or s3:// address';

/** Does something with a medium as the command line names it, and closes it; `name` may be printed. */
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

/** The same for an ISO image. */
export const useIso = <Result>(
  text: string,
  host: CliHost,
  work: (iso: IsoImage, name: string) => Promise<Result>,
): Promise<Result> =>
  useNamed(text, host, (source, name) => useMedium(source, (iso) => work(iso, name)));

/** The same inside of `runWithProgress`. */
export const useWatched = <Result>(
  text: string,
  host: CliHost & Pick<Watched, 'emit'>,
  work: (source: RandomAccess, name: string) => Promise<Result>,
): Promise<Result> =>
  useSource(text, { ...placesOf(host), signal: host.signal, emit: host.emit }, (source) =>
    work(source, isElsewhere(text) ? source.path : text),
  );

import { SealiftError } from '../../base/errors.ts';
import { parseIgnition } from '../../ignition/config.ts';
import { readCoreosLive } from '../../iso/coreos/live.ts';
import type { IsoImage } from '../../iso/read/open.ts';
import { formatCauses } from '../../iso/read/source.ts';
import { attempt, type Attempt } from '../attempt.ts';
import { type MediaIndex, readIndex } from '../index/media-index.ts';
import { useMedium, type Medium } from '../open-medium.ts';
import { readBootstrapIgnition, readEmbeddedIgnition } from '../read-ignition.ts';
import { listIgnitionParts, type IgnitionPart } from './ignition-parts.ts';
import type { Compared } from './list-changes.ts';

/** A config, and its text as it is on the medium. */
export type ComparedConfig = {
  readonly parts: ReadonlyMap<string, Compared<IgnitionPart>>;
  readonly text: string;
};

/** What of a medium is compared with another one: its index, kernel arguments and Ignition configs. */
export type ComparedMedium = {
  /** Bytes. */
  readonly size: number;
  /** No value where sealift did not make it. */
  readonly index: Attempt<MediaIndex | undefined>;
  /** No value where it is not a live ISO of CoreOS; the problem says what it lacks. */
  readonly kernelArguments: Attempt<string>;
  /** No value where there is no config. */
  readonly embedded: Attempt<ComparedConfig | undefined>;
  readonly bootstrap: Attempt<ComparedConfig | undefined>;
};

/**
 * Reads what of a medium is compared, and no blob of its registry.
 *
 * @throws ConfigError `iso.unreadable`; IntegrityError where not even the directories can be read
 */
export const readCompared = (medium: Medium): Promise<ComparedMedium> =>
  useMedium(medium, async (iso) => {
    const kernelArguments = await readKernelArguments(iso);
    const isLive = kernelArguments.problem === undefined;
    const read = async (
      name: string,
      readText: (iso: IsoImage) => Promise<string | undefined>,
    ): Promise<Attempt<ComparedConfig | undefined>> =>
      isLive ? attempt(async () => parseConfig(await readText(iso), name)) : {};
    return {
      size: iso.fileSize,
      index: await attempt(() => readIndex(iso)),
      kernelArguments,
      embedded: await read('config of the embed area', readEmbeddedIgnition),
      bootstrap: await read('bootstrap config', readBootstrapIgnition),
    };
  });

async function readKernelArguments(iso: IsoImage): Promise<Attempt<string>> {
  try {
    return { value: (await readCoreosLive(iso)).kargs.text };
  } catch (error) {
    if (!(error instanceof SealiftError) || error.code !== 'base-iso.not-coreos') throw error;
    return { problem: error.cause instanceof Error ? formatCauses(error.cause) : error.message };
  }
}

function parseConfig(text: string | undefined, name: string): ComparedConfig | undefined {
  if (text === undefined) return undefined;
  return { text, parts: listIgnitionParts(parseIgnition(text, name)) };
}

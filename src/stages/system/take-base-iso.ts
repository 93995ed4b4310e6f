import { join } from 'node:path';
import { hexOf } from '../../base/digest.ts';
import { DiskError } from '../../base/errors.ts';
import type { Stage, StageContext } from '../../engine/stage.ts';
import { sleep } from '../../base/wait.ts';
import { lockOutput } from '../../base/disk/lease.ts';
import {
  takeGivenIso,
  type BaseIso,
  type FetchGivenTools,
  type GivenBaseIso,
} from '../../openshift/release/base-iso.ts';

export type TakeBaseIsoTools = Pick<FetchGivenTools, 'http' | 'digests' | 'tls'> & {
  readonly workDir: string;
};

/**
 * A live ISO that the user names. A file may have changed since, so it is looked at each time; what was
 * downloaded or unpacked is found by digest.
 *
 * @throws what `takeGivenIso` throws
 */
export const takeBaseIso: Stage<{ readonly given: GivenBaseIso }, BaseIso, TakeBaseIsoTools> = {
  name: 'take base ISO',
  async run({ given }, { workDir, ...parts }, context) {
    const directory = join(workDir, 'cache', 'base');
    const tools = { ...parts, ...context };
    if ('file' in given || given.sha256 === undefined) return takeGivenIso(given, directory, tools);
    const unlock = await waitForLock(join(directory, `${hexOf(given.sha256)}.lock`), context);
    try {
      return await takeGivenIso(given, directory, tools);
    } finally {
      await unlock();
    }
  },
};

const PAUSE_MS = 500;

/** Two builds of one work directory would write the same partial download: the other's is waited for. */
async function waitForLock(
  path: string,
  { signal, onProgress }: StageContext,
): Promise<() => Promise<void>> {
  for (;;) {
    try {
      return await lockOutput(path);
    } catch (error) {
      if (!(error instanceof DiskError) || error.code !== 'output.locked') throw error;
      onProgress(0, undefined, 'another build fetches it');
      await sleep(PAUSE_MS, signal);
    }
  }
}

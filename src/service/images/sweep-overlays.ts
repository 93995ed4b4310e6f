import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { sweepDirectory } from '../../base/disk/aside.ts';
import { isErrno } from '../../base/errors.ts';
import { sleep, untilAborted } from '../../base/wait.ts';
import type { InfraEnv } from '../infra-envs/infra-env.ts';
import type { State } from '../state/state.ts';

/** The beginning of the name of its file. */
export const labelOverlay = ({ id, revision }: Pick<InfraEnv, 'id' | 'revision'>): string =>
  `${id}.${revision}.`;

const LABEL = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.(\d+)\./;

type Sweep = {
  readonly state: Pick<State, 'read'>;
  /** Of all overlays of this process. */
  readonly directory: string;
};

/**
 * Removes the overlays of InfraEnvs that are gone and of revisions before the present one: whoever changed or
 * removed them at another replica did not see these. Those of an ISO that is not in the store stay, because it
 * may come back.
 */
export async function sweepOverlays({ state, directory }: Sweep): Promise<void> {
  await sweepDirectory(directory);
  for (const name of await listNames(directory)) {
    const [, id, revision] = LABEL.exec(name) ?? [];
    if (id === undefined) continue;
    const record = await state.read('infra-envs', id);
    if (record && record.revision <= Number(revision)) continue;
    await rm(join(directory, name), { force: true });
  }
}

const PAUSE_MS = 3_600_000;

/** At the start and every hour, until the signal is aborted. @param warn told why, where one did not succeed */
export async function keepSwept(
  sweep: Sweep,
  { signal, warn }: { readonly signal: AbortSignal; readonly warn: (message: string) => void },
): Promise<void> {
  while (!signal.aborted) {
    await untilAborted(sweepOverlays(sweep), signal).catch((error: unknown) => {
      const reason = error instanceof Error ? error.message : String(error);
      if (!signal.aborted) warn(`old overlays are left for an hour: ${reason}`);
    });
    await sleep(PAUSE_MS, signal).catch(() => undefined);
  }
}

async function listNames(directory: string): Promise<readonly string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return [];
    throw error;
  }
}

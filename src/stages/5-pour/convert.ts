import { rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { nameAside, sweepAside } from '../../base/disk/aside.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { syncDirectory } from '../../base/disk/files.ts';
import { runProcess } from '../../base/process.ts';
import type { Stage } from '../../engine/index.ts';
import type { DiskImageRequest } from '../disk-request.ts';

/* A copy of a disk image in the format of QEMU, by QEMU's own program. */

/** Refuses a copy at the place of a foreign file, before anything is poured. */
export async function claimQcow2({
  qcow2: path,
  inputs,
  workDir,
  force,
}: DiskImageRequest): Promise<void> {
  if (path === undefined) return;
  const isReplaceable = (): Promise<boolean> => Promise.resolve(false);
  await claimOutput(
    { path, inputs, workDirs: [workDir] },
    { force, expected: 'no file', isReplaceable },
  );
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

/** Converts a poured image; the copy has its name only when it is whole. Returns its path. */
export const convertToQcow2: Stage<
  { readonly output: string; readonly qcow2: string },
  string,
  unknown
> = {
  name: 'convert to qcow2',
  async run({ output, qcow2 }, _tools, { signal }) {
    await sweepAside(qcow2);
    const aside = await nameAside(qcow2);
    try {
      const formats = ['-f', 'raw', '-O', 'qcow2'];
      await runProcess('qemu-img', ['convert', ...formats, output, aside], {
        env: { PATH },
        signal,
      });
      await rename(aside, qcow2);
    } finally {
      await rm(aside, { force: true });
    }
    await syncDirectory(dirname(qcow2));
    return qcow2;
  },
};

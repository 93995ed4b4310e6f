import { dirname } from 'node:path';
import { sweepAside } from '../../base/disk/aside.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { makeDirectory, syncDirectory } from '../../base/disk/files.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { runProcess } from '../../base/process.ts';
import type { Stage } from '../../engine/index.ts';
import { refuseNameOf } from '../../outputs/file/claim.ts';
import type { DiskImageRequest } from '../disk-request.ts';

/* A copy of a disk image in the format of QEMU, by QEMU's own program. */

/** Refuses a copy at the place of a foreign file or of a file of the build itself, before anything is poured. */
export async function claimQcow2({
  qcow2: path,
  output,
  inputs,
  workDir,
  force,
}: DiskImageRequest): Promise<void> {
  if (path === undefined) return;
  await refuseNameOf(output, path);
  const isReplaceable = (): Promise<boolean> => Promise.resolve(false);
  await claimOutput(
    { path, inputs, workDirs: [workDir] },
    { force, expected: 'no file', isReplaceable },
  );
}

const PATH = '/usr/local/bin:/usr/bin:/bin';

type Conversion = {
  readonly output: string;
  readonly qcow2: string;
  /** Permission bits of the copy, which it also has while it is written. */
  readonly mode: number;
};

/** Converts a poured image; the copy has its name only when it is whole. Returns its path. */
export const convertToQcow2: Stage<Conversion, string, unknown> = {
  name: 'convert to qcow2',
  async run({ output, qcow2, mode }, _tools, { signal }) {
    await makeDirectory(dirname(qcow2));
    await sweepAside(qcow2);
    await publishNew(qcow2, { mode }, async (_file, aside) => {
      const formats = ['-f', 'raw', '-O', 'qcow2'];
      // It writes into the file that is there, which keeps its permissions.
      await runProcess('qemu-img', ['convert', ...formats, output, aside], {
        env: { PATH },
        signal,
      });
    });
    await syncDirectory(dirname(qcow2));
    return qcow2;
  },
};

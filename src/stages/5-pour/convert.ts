import { dirname, join } from 'node:path';
import { digestOf, hexOf } from '../../base/digest.ts';
import { sweepAside } from '../../base/disk/aside.ts';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { readStamp } from '../../base/disk/file-digests.ts';
import {
  makeDirectory,
  readFileIfPresent,
  syncDirectory,
  writeFileAtomic,
} from '../../base/disk/files.ts';
import { publishNew } from '../../base/disk/publish.ts';
import { runProcess } from '../../base/process.ts';
import { formatCanonicalJson, formatReadableJson } from '../../base/text/json.ts';
import type { Stage } from '../../engine/index.ts';
import { refuseNameOf } from '../../outputs/file/claim.ts';
import { decodeJson, ifFaultless } from '../../shape/decode.ts';
import { FREE, LEFT_OUT, list, record, type TypeOf } from '../../shape/shape.ts';
import type { DiskImageRequest } from '../disk-request.ts';

/* A copy of a disk image in the format of QEMU, by QEMU's own program. */

/**
 * Refuses a copy at the place of a foreign file or of a file of the build itself, before anything is poured. The
 * copy of the last build of this output may be replaced, unless a program such as a virtual machine wrote to it.
 */
export async function claimQcow2({
  qcow2: path,
  output,
  inputs,
  workDir,
  force,
}: DiskImageRequest): Promise<void> {
  if (path === undefined) return;
  await refuseNameOf(output, path);
  const isReplaceable = async (): Promise<boolean> => {
    const found = await identify(path);
    const made = await readCopies(workDir, { output, qcow2: path });
    return made.some((copy) => found !== undefined && isSameCopy(copy, found));
  };
  await claimOutput(
    { path, inputs, workDirs: [workDir] },
    { force, expected: 'the unchanged copy of an earlier build of this output', isReplaceable },
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
export const convertToQcow2: Stage<Conversion, string, { readonly workDir: string }> = {
  name: 'convert to qcow2',
  async run({ output, qcow2, mode }, { workDir }, { signal }) {
    const names = { output, qcow2 };
    await makeDirectory(dirname(qcow2));
    await sweepAside(qcow2);
    await publishNew(qcow2, { mode }, async (_file, aside) => {
      const formats = ['-f', 'raw', '-O', 'qcow2'];
      // It writes into the file that is there, which keeps its permissions.
      await runProcess('qemu-img', ['convert', ...formats, output, aside], {
        env: { PATH },
        signal,
      });
      await recordCopies(workDir, names, [await identify(aside), await identify(qcow2)]);
    });
    await syncDirectory(dirname(qcow2));
    return qcow2;
  },
};

type Names = Pick<Conversion, 'output' | 'qcow2'>;

/** Identifies a file under any name; a later write changes it. */
const COPY = record({ inode: FREE, size: FREE, modified: FREE }, LEFT_OUT);

type Copy = TypeOf<typeof COPY>;

/** The new copy and the one that it replaces: after a kill, either has the name. */
const COPIES = record({ copies: list(COPY) }, LEFT_OUT);

async function identify(path: string): Promise<Copy | undefined> {
  const stamp = await readStamp(path);
  return stamp && { inode: stamp.inode, size: stamp.size, modified: stamp.modified };
}

const isSameCopy = (a: Copy, b: Copy): boolean =>
  a.inode === b.inode && a.size === b.size && a.modified === b.modified;

const recordOf = (workDir: string, { output, qcow2 }: Names): string => {
  const key = hexOf(digestOf(formatCanonicalJson({ output, qcow2 }))).slice(0, 32);
  return join(workDir, 'finished', `${key}.qcow2.json`);
};

async function readCopies(workDir: string, names: Names): Promise<readonly Copy[]> {
  const bytes = await readFileIfPresent(recordOf(workDir, names));
  return (bytes && ifFaultless(decodeJson(COPIES, bytes)))?.copies ?? []; // damaged: none is known
}

const recordCopies = (
  workDir: string,
  names: Names,
  copies: readonly (Copy | undefined)[],
): Promise<void> =>
  writeFileAtomic(
    recordOf(workDir, names),
    formatReadableJson({ ...names, copies: copies.filter((copy) => copy !== undefined) }),
  );

import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { claimOutput } from '../../base/disk/claim-output.ts';
import { digestOf } from '../../base/digest.ts';
import { UsageError } from '../../base/errors.ts';
import { writeFileAtomic } from '../../base/disk/files.ts';
import { readRegularFile } from '../../base/disk/open-file.ts';
import type { IsoPlace } from '../../stages/pour/claim-iso.ts';
import type { SideFile, SideFiles } from './upgrade-iso-request.ts';

const SEAL = /^# Made by sealift\. Without this line the file is (sha256:[0-9a-f]{64})\.\n/;

/** A text that says by itself whether anybody has changed it since it was made. */
export const sealSideFile = (text: string): string =>
  `# Made by sealift. Without this line the file is ${digestOf(Buffer.from(text))}.\n${text}`;

export const listSideFiles = ({ resources, machineConfig, hosts }: SideFiles): SideFile[] =>
  [resources, machineConfig, hosts].filter((file) => file !== undefined);

/**
 * Decides, before anything is poured, whether the files beside an ISO may be written. There may be
 * nothing yet, or what an earlier build made and nobody changed; anything else only with `force`.
 *
 * @throws UsageError `output.reserved` where the ISO has the name of one; what `claimOutput` throws
 */
export async function claimSideFiles(
  files: SideFiles,
  { output, inputs, workDir, force }: IsoPlace,
): Promise<void> {
  for (const { path } of listSideFiles(files)) {
    if (path === output) throw takesOutput(path);
    await claimOutput(
      { path, inputs, workDirs: [workDir] },
      {
        force,
        expected: 'an unchanged file of an earlier build',
        isReplaceable: () => isUnchanged(path),
      },
    );
  }
}

const takesOutput = (path: string): UsageError =>
  new UsageError('output.reserved', `"${path}" is the name of a file beside the ISO`, {
    expected: 'another name for the ISO',
    found: basename(path),
    hint: 'name the ISO with the ending .iso',
  });

/**
 * Pouring takes hours, in which somebody may have put a file there: the places are claimed again.
 *
 * @throws DiskError `disk.full`, ...; what `claimSideFiles` throws
 */
export async function writeSideFiles(files: SideFiles, place: IsoPlace): Promise<void> {
  await claimSideFiles(files, place);
  for (const { path, text } of listSideFiles(files)) await writeFileAtomic(path, text, 0o644);
}

/** Bytes; many times what the resources of a cluster have. */
const MAX_SIZE = 64 << 20;

/** Regular, as `claimOutput` has seen. */
async function isUnchanged(path: string): Promise<boolean> {
  if ((await stat(path)).size > MAX_SIZE) return false;
  const text = (await readRegularFile(path))?.toString('utf8') ?? '';
  const digest = SEAL.exec(text)?.[1];
  return digest !== undefined && digestOf(Buffer.from(text.replace(SEAL, ''))) === digest;
}

import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { digestOf, hexOf } from '../../base/digest.ts';
import { nameAside } from '../../base/disk/aside.ts';
import { cacheFile, findCached, type FileInput } from '../../base/disk/file-digests.ts';
import { digestFile, makeDirectory, readFileIfPresent } from '../../base/disk/files.ts';
import { createFile, writeNewFile } from '../../base/disk/open-file.ts';
import { useTemporaryFolder } from '../../base/disk/temporary.ts';
import { IntegrityError, ToolError } from '../../base/errors.ts';
import { runProcess } from '../../base/process.ts';
import type { ByteRange, RandomAccess } from '../../base/random-access.ts';
import { formatCanonicalJson } from '../../base/text/json.ts';

/*
 * Edits a copy of CoreOS's boot file system with e2fsprogs, without root and without a loop device: our menu
 * entry at the end of grub.cfg, and no other entries.
 */

/** Programs of the administrator are in the folders that users do not search. */
const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const TIMEOUT_MS = 120_000;
const PACKAGES = new Map([
  ['debugfs', 'e2fsprogs'],
  ['e2fsck', 'e2fsprogs'],
  ['qemu-img', 'qemu-utils or qemu-img'],
]);

/**
 * Requires the programs of a disk image and returns their names.
 *
 * @throws ToolError `disk-image.no-tool`
 */
export async function findDiskTools({
  qcow2,
  signal,
  path = PATH,
}: {
  readonly qcow2: boolean;
  readonly signal: AbortSignal;
  /** Folders of programs. */
  readonly path?: string;
}): Promise<readonly string[]> {
  const programs = ['debugfs', 'e2fsck', ...(qcow2 ? ['qemu-img'] : [])];
  for (const program of programs) {
    const version = program === 'qemu-img' ? '--version' : '-V';
    await runProcess(program, [version], {
      env: { PATH: path },
      timeout: TIMEOUT_MS,
      signal,
    }).catch((error: unknown) => {
      if (!(error instanceof ToolError) || error.code !== 'tool.missing') throw error;
      throw missingTool(program);
    });
  }
  return programs;
}

const missingTool = (program: string): ToolError =>
  new ToolError('disk-image.no-tool', `a disk image needs the program "${program}"`, {
    hint: `install the package ${PACKAGES.get(program) ?? program}`,
  });

export type BootEdit = {
  readonly metal: Pick<RandomAccess, 'read'>;
  /** Digest of the metal image. */
  readonly of: string;
  readonly boot: ByteRange;
  /** Text for the end of grub.cfg. */
  readonly menu: string;
  /** Seconds since 1970: the time of the new file, and of the last write. */
  readonly epoch: number;
  /** Folder of the edited copy. */
  readonly directory: string;
  readonly signal: AbortSignal;
};

const MENU = '/grub2/grub.cfg';
const ENTRIES = '/loader/entries';

/**
 * Copies the boot file system out of a metal image and edits it. Same inputs and same e2fsprogs, same bytes.
 *
 * @throws IntegrityError `metal-image.boot-filesystem`; ToolError
 */
export async function editBootPartition(edit: BootEdit): Promise<FileInput> {
  const { of, menu, epoch, directory, signal } = edit;
  const key = hexOf(digestOf(formatCanonicalJson({ of, menu, epoch, form: 1 })));
  const path = join(directory, `${key}-boot.img`);
  const known = await findCached(path);
  if (known) return known;
  await makeDirectory(directory);
  const aside = await nameAside(path);
  try {
    await copyBoot(edit, aside);
    await useTemporaryFolder((folder) => editCopy(aside, folder, edit));
    return await cacheFile(aside, path, await digestFile(aside, signal));
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
}

const PIECE = 1 << 20;

/** Zeros stay holes. */
async function copyBoot({ metal, boot, signal }: BootEdit, path: string): Promise<void> {
  const file = await createFile(path);
  try {
    await file.truncate(boot.size);
    const zeros = Buffer.alloc(PIECE);
    for (let done = 0; done < boot.size; done += PIECE) {
      signal.throwIfAborted();
      const size = Math.min(PIECE, boot.size - done);
      const bytes = await metal.read(boot.offset + done, size);
      if (!bytes.equals(zeros.subarray(0, size))) await file.write(bytes, 0, size, done);
    }
  } finally {
    await file.close();
  }
}

async function editCopy(image: string, folder: string, edit: BootEdit): Promise<void> {
  const { menu, epoch, signal } = edit;
  await checkFileSystem(image, 'is damaged', signal);
  /** debugfs ends with 0 even if a command fails: its results are read back. */
  const debugfs = async (...commands: readonly string[]): Promise<string> => {
    const script = await nameAside(join(folder, 'commands'));
    await writeNewFile(script, `${commands.join('\n')}\n`);
    const { stdout } = await runProcess('debugfs', ['-w', '-f', script, image], {
      cwd: folder,
      env: { PATH, E2FSPROGS_FAKE_TIME: String(epoch) },
      timeout: TIMEOUT_MS,
      signal,
    });
    return stdout;
  };
  await debugfs(`dump ${MENU} old.cfg`);
  const old = await readFileIfPresent(join(folder, 'old.cfg'));
  if (!old || old.length === 0) throw refuse(`has no ${MENU}`);
  const wanted = Buffer.concat([old, Buffer.from(menu)]);
  await writeNewFile(join(folder, 'new.cfg'), wanted);
  const entries = await listEntries(debugfs);
  await debugfs(
    ...entries.map((name) => `rm ${ENTRIES}/${name}`),
    `rm ${MENU}`,
    `write new.cfg ${MENU}`,
    `set_inode_field ${MENU} mode 0100644`,
    `set_inode_field ${MENU} uid 0`,
    `set_inode_field ${MENU} gid 0`,
    `dump ${MENU} made.cfg`,
  );
  const made = await readFileIfPresent(join(folder, 'made.cfg'));
  if (!made?.equals(wanted)) throw refuse(`did not take the new ${MENU}: is it full?`);
  if ((await listEntries(debugfs)).length > 0) throw refuse('keeps boot entries that were removed');
  await checkFileSystem(image, `is damaged by the new ${MENU}`, signal);
}

/** Bits of e2fsck's exit code (e2fsck(8)): errors left, and a file system that it cannot open. */
const HAS_ERRORS = 4 | 8;

async function checkFileSystem(image: string, problem: string, signal: AbortSignal): Promise<void> {
  let reason: string | undefined;
  await runProcess('e2fsck', ['-fn', image], {
    env: { PATH },
    timeout: TIMEOUT_MS,
    signal,
    onFailure(output, exitCode = 0) {
      if ((exitCode & HAS_ERRORS) !== 0) reason = findReason(output, image);
    },
  }).catch((error: unknown) => {
    if (reason === undefined) throw error;
    throw refuse(`${problem}: e2fsck reports "${reason}"`);
  });
}

/** The first finding, without version, headings and the answers to questions. */
const findReason = (output: string, image: string): string =>
  output
    .split('\n')
    .map((line) => line.trim())
    .find((line) => line !== '' && !/^(?:e2fsck \d|Pass \d)/.test(line))
    ?.replace(/\.?\s+[A-Z][\w ]*\? no$/, '')
    .replaceAll(image, 'the file system')
    .replace(/^e2fsck: /, '') ?? 'errors';

/** Entries of the boot loader specification; the names come from the image and go into a command. */
async function listEntries(
  debugfs: (...commands: readonly string[]) => Promise<string>,
): Promise<readonly string[]> {
  const listed = await debugfs(`ls -p ${ENTRIES}`);
  return listed.split('\n').flatMap((line) => {
    const name = /^\/\d+\/10\d{4}\/\d+\/\d+\/(.*)\/\d*\/$/.exec(line)?.[1];
    if (name?.endsWith('.conf') !== true) return [];
    if (/^[\w.+-]+$/.test(name)) return [name];
    throw refuse(`has a boot entry with an unusual name: ${JSON.stringify(name)}`);
  });
}

const refuse = (problem: string): IntegrityError =>
  new IntegrityError(
    'metal-image.boot-filesystem',
    `partition "boot" of the metal image ${problem}`,
    { hint: 'give the "metal" image of CoreOS for x86_64, which coreos-stream.json names' },
  );

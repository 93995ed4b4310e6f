import { mkdtemp, rm, type FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Digest } from '../../base/digest.ts';
import { copyToNew } from '../../base/disk/copy.ts';
import type { FileInput, FileDigests } from '../../base/disk/file-digests.ts';
import { digestOpenFile, makeDirectory, writeFileAtomic } from '../../base/disk/files.ts';
import { openListed, pathOfOpen, readOwnFile } from '../../base/disk/open-file.ts';
import { IntegrityError, ToolError } from '../../base/errors.ts';
import { runProcess } from '../../base/process.ts';
import type { Sealed, Stage, StageContext } from '../../engine/index.ts';
import { parseIgnition } from '../../ignition/index.ts';

export type RunInstallerInput = {
  readonly installer: FileInput;
  /** The subcommand and its flags, without `--dir`. */
  readonly args: readonly string[];
  /** Files below the directory that the installer runs on; they may hold the pull secret. */
  readonly files: readonly { readonly path: string; readonly text: Sealed }[];
  /** Variables besides PATH and HOME; absent if no others are needed. */
  readonly environment?: Readonly<Record<string, string>>;
};

export type RunInstallerTools = {
  readonly workDir: string;
  readonly digests: FileDigests;
  /** Milliseconds after which the installer and all that it started end; 5 minutes by default. */
  readonly installerLimit?: number;
};

/**
 * Runs the installer for `unconfigured-agent.ign` as it writes it. The installer draws ids and keys at
 * random, so its result is stored and reused: a build that continues, or is repeated, gives the same medium.
 *
 * It sees its own directory (0700, removed in any case) and, from the environment, only what the inputs
 * contain.
 */
export const runInstaller: Stage<RunInstallerInput, string, RunInstallerTools> = {
  name: 'run installer',
  reuse: { kind: 'drawn' },
  async run(input, tools, context) {
    await makeDirectory(tools.workDir);
    const directory = await mkdtemp(join(tools.workDir, 'installer-'));
    try {
      const assets = join(directory, 'assets');
      await makeDirectory(assets, 0o700);
      for (const { path, text } of input.files) {
        await makeDirectory(dirname(join(assets, path)), 0o700);
        await writeFileAtomic(join(assets, path), text.reveal(), 0o600);
      }
      const own = join(directory, 'openshift-install');
      const installer = await openInstaller(input.installer, own, { ...tools, ...context });
      try {
        const program = pathOfOpen(installer);
        await execute({ ...input, program, assets }, { ...tools, ...context });
      } finally {
        await installer.close();
      }
      return await readOutput(assets);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
};

/**
 * Opens the installer so that the executed file is the one that the result is stored under: the open file is
 * hashed and then executed. Only we can write to it: a file outside of the work directory is copied.
 */
async function openInstaller(
  { path, digest }: FileInput,
  own: string,
  { workDir, digests, signal }: RunInstallerTools & StageContext,
): Promise<FileHandle> {
  const isInside = path.startsWith(`${workDir}/`);
  if (!isInside) await copyToNew(path, own, signal);
  const file = await openListed(isInside ? path : own);
  try {
    if (!isInside) await file.chmod(0o700);
    const found = await digestOpenFile(file, signal);
    if (found === digest) return file;
    await digests.forget(path);
    throw explainChange({ path, digest, found });
  } catch (error) {
    await file.close();
    throw error;
  }
}

const explainChange = ({
  path,
  digest,
  found,
}: Pick<FileInput, 'path' | 'digest'> & { readonly found: Digest }): IntegrityError =>
  new IntegrityError('installer.changed', `installer "${path}" changed during the build`, {
    expected: digest,
    found,
    hint: 'run the same command again when nothing writes to the file',
  });

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

type Execution = RunInstallerInput & { readonly program: string; readonly assets: string };

async function execute(
  { program, assets, installer, args, environment }: Execution,
  { installerLimit, signal }: RunInstallerTools & StageContext,
): Promise<void> {
  await runProcess(program, [...args, '--dir', assets], {
    cwd: assets,
    env: { ...environment, PATH, HOME: assets },
    shownAs: installer.path,
    timeout: installerLimit ?? INSTALLER_LIMIT_MS,
    signal,
  });
}

/** Running the installer takes seconds; a hanging one must not hang a nightly build. */
const INSTALLER_LIMIT_MS = 300_000;

const OUTPUT = 'unconfigured-agent.ign';

/** Reads the output, and checks that it is an Ignition config, because it is stored permanently. */
async function readOutput(assets: string): Promise<string> {
  const bytes = await readOwnFile(join(assets, OUTPUT));
  if (bytes) return checkIgnition(bytes.toString('utf8'));
  throw new ToolError('installer.no-output', 'the installer wrote no unconfigured-agent.ign', {
    hint: 'check that the installer belongs to this release',
  });
}

function checkIgnition(text: string): string {
  parseIgnition(text, OUTPUT);
  return text;
}

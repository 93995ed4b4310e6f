import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { FileInput } from '../base/file-input.ts';
import { digestFile, makeDirectory, readFileIfPresent, writeFileAtomic } from '../base/files.ts';
import { IntegrityError, ToolError } from '../base/errors.ts';
import { runProcess } from '../base/process.ts';
import type { Sealed, Stage, StageContext } from '../engine/stage.ts';
import { parseIgnition } from '../ignition/config.ts';
import type { FileDigests } from '../openshift/files/file-digests.ts';

export type RunInstallerInput = {
  readonly installer: FileInput;
  /** The subcommand and its flags, without `--dir`. */
  readonly args: readonly string[];
  /** Below the directory that it runs on; they may hold the pull secret. */
  readonly files: readonly { readonly path: string; readonly text: Sealed }[];
  /** Besides PATH and HOME; absent where there is nothing to say. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Never shown, whatever the installer prints. */
  readonly pullSecret?: Sealed;
};

export type RunInstallerTools = {
  readonly workDir: string;
  readonly digests: FileDigests;
  /** Milliseconds after which the installer and all that it started end; 5 minutes by default. */
  readonly installerLimit?: number;
};

/** Running the installer takes seconds; a hanging one must not hang a nightly build. */
const INSTALLER_LIMIT_MS = 300_000;

/**
 * `unconfigured-agent.ign` as the installer writes it. The installer draws ids and keys at random, so its
 * result is kept and used again: a build that continues, or is made again, gives the same medium.
 *
 * It sees a directory of its own (0700, removed in any case) and of the environment only what the inputs say.
 *
 * @throws ToolError `tool.failed`, `tool.timeout`, `installer.no-output`; IntegrityError
 * `installer.changed`, `ignition.malformed`
 */
export const runInstaller: Stage<RunInstallerInput, string, RunInstallerTools> = {
  name: 'run installer',
  reuse: { kind: 'drawn' },
  async run(input, tools, context) {
    await makeDirectory(tools.workDir);
    const directory = await mkdtemp(join(tools.workDir, 'installer-'));
    try {
      await chmod(directory, 0o700);
      for (const { path, text } of input.files) {
        await makeDirectory(dirname(join(directory, path)), 0o700);
        await writeFileAtomic(join(directory, path), text.reveal(), 0o600);
      }
      await requireUnchanged(input.installer, tools);
      await execute(directory, input, { ...tools, ...context });
      return await readOutput(directory);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  },
};

/** What is executed is what the result is kept under. */
async function requireUnchanged(
  { path, digest }: FileInput,
  { digests }: RunInstallerTools,
): Promise<void> {
  const found = await digestFile(path);
  if (found === digest) return;
  await digests.forget(path);
  throw new IntegrityError('installer.changed', `installer "${path}" changed during the build`, {
    expected: digest,
    found,
    hint: 'run the same command again when nothing writes to the file',
  });
}

const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

async function execute(
  directory: string,
  { installer, args, environment, pullSecret }: RunInstallerInput,
  { installerLimit, signal }: RunInstallerTools & StageContext,
): Promise<void> {
  await runProcess(installer.path, [...args, '--dir', directory], {
    cwd: directory,
    env: { ...environment, PATH, HOME: directory },
    timeout: installerLimit ?? INSTALLER_LIMIT_MS,
    signal,
    secrets: pullSecret === undefined ? [] : [pullSecret.reveal()],
  });
}

const OUTPUT = 'unconfigured-agent.ign';

/** What is kept for good should be an Ignition config. */
async function readOutput(directory: string): Promise<string> {
  const bytes = await readFileIfPresent(join(directory, OUTPUT));
  if (bytes) return checkIgnition(bytes.toString('utf8'));
  throw new ToolError('installer.no-output', 'the installer wrote no unconfigured-agent.ign', {
    hint: 'check that the installer belongs to this release',
  });
}

function checkIgnition(text: string): string {
  parseIgnition(text, OUTPUT);
  return text;
}

import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createHash } from 'node:crypto';
import { writeFileAtomic, readFileIfPresent } from '../base/files.ts';
import { ToolError } from '../base/errors.ts';
import { runProcess } from '../base/process.ts';
import { formatValidIgnition } from '../ignition/format-valid.ts';
import { parseIgnition, textFile, type File, type IgnitionConfig } from '../ignition/config.ts';
import {
  planInstallerInputs,
  supportsInteractiveFlag,
} from '../openshift/installer/installer-inputs.ts';
import {
  adaptUnconfigured,
  renderEmbeddedUnconfigured,
  type EmbeddedInput,
} from '../openshift/node/unconfigured-ignition.ts';

/** Running the installer takes seconds; a hanging one must not hang a nightly build. */
const INSTALLER_LIMIT_MS = 300_000;

const NAME = 'unconfigured configuration';

export type InstallerTools = {
  readonly installer: string;
  readonly workDir: string;
  readonly signal: AbortSignal;
  /** Milliseconds after which the installer and all that it started end; 5 minutes by default. */
  readonly limit?: number;
};

export type UnconfiguredInput = EmbeddedInput & {
  /** NMStateConfig documents, for the installer. */
  readonly nmstate?: string;
};

/** The user's configuration without an installer, as JSON text. */
export function renderEmbedded(input: EmbeddedInput): string {
  return formatValidIgnition(renderEmbeddedUnconfigured(input), NAME);
}

/**
 * The user's configuration as the release's own installer makes it, fitted to the medium. The
 * installer sees a directory of its own (0700, removed in any case) and no environment of ours.
 *
 * @throws ToolError `tool.failed`, `tool.timeout`, `installer.no-output`; IntegrityError
 */
export async function renderWithInstaller(
  input: UnconfiguredInput,
  tools: InstallerTools,
): Promise<string> {
  await mkdir(tools.workDir, { recursive: true });
  const directory = await mkdtemp(join(tools.workDir, 'installer-'));
  try {
    await chmod(directory, 0o700);
    const { arch } = input.release;
    for (const { path, text } of planInstallerInputs({ ...input, arch })) {
      await mkdir(dirname(join(directory, path)), { recursive: true, mode: 0o700 });
      await writeFileAtomic(join(directory, path), text, 0o600);
    }
    await runInstaller(directory, input, tools);
    const text = await readOutput(join(directory, 'unconfigured-agent.ign'));
    const config = adaptUnconfigured(parseIgnition(text, 'unconfigured-agent.ign'), input);
    return formatValidIgnition(settleInfraEnvId(config, input.release.digestReference), NAME);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function runInstaller(
  directory: string,
  input: UnconfiguredInput,
  tools: InstallerTools,
): Promise<void> {
  const flag = input.interactive && supportsInteractiveFlag(input.release.version);
  const args = ['agent', 'create', 'unconfigured-ignition', ...(flag ? ['--interactive'] : [])];
  await runProcess(tools.installer, [...args, '--dir', directory], {
    cwd: directory,
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: directory },
    timeout: tools.limit ?? INSTALLER_LIMIT_MS,
    group: true,
    signal: tools.signal,
    secrets: input.pullSecret === undefined ? [] : [input.pullSecret],
  });
}

async function readOutput(path: string): Promise<string> {
  const bytes = await readFileIfPresent(path);
  if (bytes) return bytes.toString('utf8');
  throw new ToolError('installer.no-output', 'the installer wrote no unconfigured-agent.ign', {
    hint: 'check that the installer belongs to this release',
  });
}

const SERVICE_ENVIRONMENT = '/usr/local/share/assisted-service/assisted-service.env';

/**
 * The installer draws a random id for the infrastructure environment. Ours comes from the release's
 * digest: the same inputs give the same medium, and a resumed build finds the layout it began with.
 */
function settleInfraEnvId(config: IgnitionConfig, seed: string): IgnitionConfig {
  const files = config.storage?.files ?? [];
  return {
    ...config,
    storage: { ...config.storage, files: files.map((file) => settleFile(file, seed)) },
  };
}

function settleFile(file: File, seed: string): File {
  const source = file.contents?.source ?? '';
  const match = /^data:[^,]*;base64,(.*)$/s.exec(source);
  if (file.path !== SERVICE_ENVIRONMENT || !match) return file;
  const text = Buffer.from(match[1] ?? '', 'base64').toString('utf8');
  const settled = text.replace(/^INFRA_ENV_ID=.*$/m, `INFRA_ENV_ID=${formatUuid(seed)}`);
  const { contents } = textFile(file.path, settled, file.mode ?? 0o600);
  return contents === undefined ? file : { ...file, contents };
}

/** RFC 9562 5.8, version 8: bits of a SHA-256. */
function formatUuid(seed: string): string {
  const bytes = createHash('sha256').update(`infra-env ${seed}`).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x80;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [8, 12, 16, 20, 32].map((end, i) => hex.slice([0, 8, 12, 16, 20][i], end)).join('-');
}

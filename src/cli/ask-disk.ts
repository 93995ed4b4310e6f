import { basename, resolve } from 'node:path';
import { readInputFile, readListed } from '../base/disk/files.ts';
import { UsageError } from '../base/errors.ts';
import { withoutUndefined } from '../base/lists.ts';
import type { ConfigNames } from '../config/load.ts';
import { isDeployScript } from '../openshift/node/deployment.ts';
import type { GivenBaseIso } from '../openshift/release/base-iso.ts';
import { isHere } from '../outputs/place.ts';
import type { DeploymentIsoRequest, DiskImageRequest } from '../stages/disk-request.ts';
import { readLiveIsoRequest, type LiveIsoOptions } from './ask-appliance.ts';
import { isAddress, readTrustedAddress } from './ask-installation.ts';
import type { CliHost } from './host.ts';
import { refuseOption } from './options.ts';

/* This file owns how options and configuration become the requests of a disk image and of the ISO that deploys it. */

export const DISK_OUTPUT = 'appliance.raw';

export type DiskImageOptions = LiveIsoOptions & {
  readonly metalImage?: string;
  /** GiB. */
  readonly size?: number;
  readonly qcow2?: string;
};

export async function readDiskImageRequest(
  names: ConfigNames,
  { size, qcow2, ...options }: DiskImageOptions,
  host: CliHost,
): Promise<DiskImageRequest> {
  const { output = DISK_OUTPUT } = options;
  const asked = await readDisk(names, { ...options, output, product: 'disk-image' }, host);
  requireHere(asked, output);
  const diskSize = size ?? asked.config.diskSizeGB;
  return {
    ...asked,
    ...withoutUndefined({
      diskSize,
      qcow2: qcow2 === undefined ? undefined : resolve(host.cwd, qcow2),
    }),
  };
}

/** A live ISO's request, with the disk; hosts keep the partition, so none copies the registry. */
async function readDisk(
  names: ConfigNames,
  { metalImage: text, ...options }: LiveIsoOptions & Pick<DiskImageOptions, 'metalImage'>,
  host: CliHost,
) {
  const given = requireMetal(text);
  const asked = await readLiveIsoRequest(names, options, host);
  const metalImage = readMetal(given, host.cwd);
  const access = {
    ...asked.config,
    build: { ...asked.config.build, registryData: 'medium' as const },
  };
  return {
    ...asked,
    config: access,
    access,
    metalImage,
    inputs: [...asked.inputs, ...('file' in metalImage ? [metalImage.file] : [])],
  };
}

export const DEPLOYMENT_OUTPUT = 'deployment.iso';
export const DEFAULT_TARGET = '/dev/sda';

export type DeploymentOptionsGiven = LiveIsoOptions & {
  readonly metalImage?: string;
  readonly targetDevice?: string;
  readonly postScript?: string;
  readonly sparseClone?: boolean;
  readonly dryRun?: boolean;
};

/** The request of an ISO that writes the disk image, which is always as small as possible. */
export async function readDeploymentRequest(
  names: ConfigNames,
  {
    targetDevice = DEFAULT_TARGET,
    postScript,
    sparseClone,
    dryRun,
    ...options
  }: DeploymentOptionsGiven,
  host: CliHost,
): Promise<DeploymentIsoRequest> {
  requireDevice(targetDevice);
  const script = postScript === undefined ? undefined : readScript(resolve(host.cwd, postScript));
  const { output = DEPLOYMENT_OUTPUT } = options;
  const asked = await readDisk(names, { ...options, output, product: 'deployment-iso' }, host);
  if (dryRun === true) requireLogin(asked.config);
  return {
    ...asked,
    inputs: [...asked.inputs, ...(script ? [script.path] : [])],
    deployment: {
      targetDevice,
      isSparse: sparseClone ?? false,
      isDryRun: dryRun ?? false,
      ...(script && { postScript: { name: basename(script.path), bytes: script.bytes } }),
    },
  };
}

function requireDevice(path: string): void {
  if (/^\/dev\/[\w./:@+-]+$/.test(path)) return;
  throw refuseOption('usage.target-device', path, {
    expected: 'the path of a disk on the machine, /dev/...',
    hint: 'name it as the machine does, best by a link in /dev/disk/by-path',
  });
}

/** The script is on the path of the live system; its name is a word of the shell. */
function readScript(path: string): { readonly path: string; readonly bytes: Uint8Array } {
  const name = basename(path);
  if (!/^\w[\w.-]*$/.test(name) || isDeployScript(name)) {
    throw refuseOption('usage.post-script', name, {
      expected: 'a name of letters, digits, ".", "_" and "-", other than deploy.sh',
      hint: 'rename the script',
    });
  }
  const rules = { domain: 'post-script', hint: 'name a file' };
  return { path, bytes: readListed(path, rules, () => readInputFile(path, rules)) };
}

function requireLogin({ sshKey, userCorePass }: DeploymentIsoRequest['config']): void {
  if (sshKey !== undefined || userCorePass !== undefined) return;
  throw new UsageError('usage.dry-run', 'a dry run needs a way to log in as core', {
    expected: 'sshKey or userCorePass in the configuration',
    found: 'neither',
    hint: 'set sshKey or userCorePass',
  });
}

function requireMetal(text: string | undefined): string {
  if (text !== undefined && text !== '') return text;
  throw new UsageError('usage.metal-image', 'a disk image needs the metal image of CoreOS', {
    expected: '--metal-image <file|url>',
    hint: 'take the address at architectures.x86_64.artifacts.metal in what "openshift-install coreos print-stream-json" prints',
  });
}

function requireHere(place: Pick<DiskImageRequest, 'output' | 'device'>, output: string): void {
  if (isHere(place)) return;
  throw new UsageError('usage.disk-output', 'a disk image is written to a file or a block device', {
    expected: 'the name of a file or a device',
    found: output,
    hint: 'build a file, and copy it',
  });
}

const readMetal = (text: string, cwd: string): GivenBaseIso =>
  isAddress(text) ? readTrustedAddress(text, 'metal image') : { file: resolve(cwd, text) };
